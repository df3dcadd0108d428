"""A bitcast is what numpy finds in memory, in the evaluator and in the prover; with other layouts it means nothing."""

from __future__ import annotations

import math
import random
import re
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from hlo_verify.diagnostics import Unsupported
from hlo_verify.evaluate import dense, evaluate
from hlo_verify.evaluate.blocks import of_devices
from hlo_verify.passes.chain.pair_programs import pair_of_wholes
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.load import load
from hlo_verify.report import Verdict

SHAPES = ((4, 6), (24,), (2, 3, 4), (1, 4, 6), (4, 1, 6, 1), (3, 2, 2, 2), (8, 3))


def spelled(shape: tuple[int, ...], minor_to_major: tuple[int, ...], more: str = "", dtype: str = "f32") -> str:
    layout = f"{{{','.join(map(str, minor_to_major))}{more}}}" if shape or more else ""
    return f"{dtype}[{','.join(map(str, shape))}]{layout}"


def module(given: str, wanted: str, *, fused: bool = False) -> str:
    cast = f"%y = {wanted} fusion(%x), kind=kLoop, calls=%f" if fused else f"%y = {wanted} bitcast(%x)"
    body = f"%f (p: {given}) -> {wanted} {{\n  %p = {given} parameter(0)\n  ROOT %b = {wanted} bitcast(%p)\n}}\n\n"
    entry = f"ENTRY %main (x: {given}) -> {wanted} {{\n  %x = {given} parameter(0)\n  ROOT {cast}\n}}\n"
    return f"HloModule m\n\n{body if fused else ''}{entry}"


def in_memory(array: Any, layout: tuple[int, ...], shape: tuple[int, ...], target: tuple[int, ...]) -> Any:
    """The array laid out by strides of one layout, read by strides of another."""
    memory = np.zeros(array.size, array.dtype)
    strided(memory, array.shape, layout)[...] = array
    return np.array(strided(memory, shape, target))


def strided(memory: Any, shape: tuple[int, ...], minor_to_major: tuple[int, ...]) -> Any:
    strides, step = [0] * len(shape), memory.itemsize
    for dimension in minor_to_major:
        strides[dimension], step = step, step * shape[dimension]
    return np.lib.stride_tricks.as_strided(memory, shape, strides)


def cases() -> list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    chosen = random.Random(0)
    orders = {shape: list(permutations(range(len(shape)))) for shape in SHAPES}
    pairs = [(a, b) for a in SHAPES for b in SHAPES]
    return [(a, chosen.choice(orders[a]), b, chosen.choice(orders[b])) for a, b in pairs for _ in range(2)]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("fused", [False, True])
def test_it_reads_memory(fused: bool) -> None:
    array = np.arange(24, dtype=np.float64)
    for shape, layout, result, target in cases():
        text = module(spelled(shape, layout), spelled(result, target), fused=fused)
        x = array.reshape(shape)
        found = evaluate(load(text), [of_devices(x[None])], 1)
        assert not found.unknown, text
        [blocks] = found.results
        assert blocks is not None
        np.testing.assert_array_equal(dense(blocks, 0), in_memory(x, layout, result, target), text)


def test_the_prover_knows_it_for_the_transpose_that_it_is() -> None:
    cast = module(spelled((4, 6), (0, 1)), spelled((6, 4), (1, 0)))
    transposed = cast.replace("bitcast(%x)", "transpose(%x), dimensions={1,0}")
    reshaped = cast.replace("bitcast(%x)", "reshape(%x)")
    assert prove(*pair_of_wholes(load(transposed), load(cast))).verdict is Verdict.PROVED
    assert prove(*pair_of_wholes(load(reshaped), load(cast))).verdict is not Verdict.PROVED


@pytest.mark.parametrize(
    "text",
    [
        module(spelled((16, 256), (1, 0), ":T(8,128)"), spelled((2, 2, 8, 128), (3, 2, 1, 0))),
        module(spelled((16, 256), (1, 0)), spelled((2, 2, 8, 128), (3, 2, 1, 0), ":T(8,128)")),
        module(spelled((16, 256), (1, 0), ":T(8,128)S(1)"), spelled((16, 1, 256), (2, 1, 0), ":T(8,128)")),
        module(spelled((4, 6), (1, 0)), spelled((4, 6), (1, 0), dtype="s32")),
        module(spelled((4, 6), (1, 0)), spelled((4, 12), (1, 0), dtype="bf16")),
    ],
)
def test_what_it_is_not_known_for(text: str) -> None:
    found = prove(*pair_of_wholes(load(text), load(text)))
    assert found.verdict is Verdict.UNKNOWN
    assert {each.code for each in found.unsupported} == {Unsupported.OPERATION}


def test_memory_spaces_are_no_order() -> None:
    text = module(spelled((4, 6), (0, 1), ":S(1)"), spelled((6, 4), (1, 0), ":S(5)"))
    assert [op.name for op in load(text).main.ops] == ["transpose"]


TILES = ("", ":T(128)", ":T(8,128)", ":T(1,128)", ":T(2,128)", ":T(8,128)(2,1)", ":T(4)", ":T(2,4)", ":T(1,4)(2,1)")
SINGLE = ((), (1,), (1, 1))


def tiled(array: Any, minor_to_major: tuple[int, ...], tiles: str) -> Any:
    """What memory holds, 0 where nothing is: tiles are of the last dimensions, then of what those made of them."""
    lying = array.transpose(minor_to_major[::-1])
    for text in re.findall(r"\(([\d,]+)\)", tiles):
        tile = [int(n) for n in text.split(",")]
        lying = lying.reshape((1,) * (len(tile) - lying.ndim) + lying.shape)
        first = lying.ndim - len(tile)
        padding = [(0, 0)] * first + [(0, -n % t) for n, t in zip(lying.shape[first:], tile, strict=True)]
        lying = np.pad(lying, padding)
        halves = [part for n, t in zip(lying.shape[first:], tile, strict=True) for part in (n // t, t)]
        lying = lying.reshape(lying.shape[:first] + tuple(halves))
        order = [*range(first), *range(first, lying.ndim, 2), *range(first + 1, lying.ndim, 2)]
        lying = lying.transpose(order)
    return lying.reshape(-1)


def test_tiles_that_lie_alike() -> None:
    """Of all pairs of layouts: what a bitcast becomes holds what memory holds, and most of what could be known is."""
    chosen, known, alike = random.Random(0), 0, 0
    groups: list[tuple[tuple[int, ...], ...]] = [SHAPES, ((4, 1), (4,), (1, 4), (4, 1, 1)), SINGLE, ((4, 6), (6, 1, 4))]
    for _ in range(200):
        (given, wanted), (before, after) = (chosen.choices(options, k=2) for options in (chosen.choice(groups), TILES))
        after = chosen.choice((before, after))
        orders = [tuple(chosen.sample(range(len(shape)), len(shape))) for shape in (given, wanted)]
        if not before and not after:
            continue
        text = module(spelled(given, orders[0], before), spelled(wanted, orders[1], after))
        x = np.arange(1.0, math.prod(given) + 1).reshape(given)
        found = evaluate(load(text), [of_devices(x[None])], 1)
        memory, count = tiled(x, orders[0], before), math.prod(given)
        if not found.unknown:
            known += 1
            [blocks] = found.results
            assert blocks is not None
            y = dense(blocks, 0)
            assert np.array_equal(tiled(y, orders[1], after)[: len(memory)], memory) or count == 1, text
        numbers = np.arange(1.0, count + 1).reshape(wanted)
        where = tiled(numbers, orders[1], after)
        alike += len(where) == len(memory) and np.array_equal(where == 0, memory == 0)
    assert known > 0.6 * alike > 20, (known, alike)
