"""Loops that do anything else than what was written out are no loops of it, whoever made them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace

import jax
import numpy as np
import pytest
from jax import lax

from hlo_verify.evaluate import dense, evaluate, of_dense
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.rolling import rolled
from hlo_verify.passes.prove.written_out import is_written_out
from hlo_verify.program.ir import Function, Module, Op, functions, value_types
from tests.passes.prove.each_device.ring_attention import Ring
from tests.passes.prove.test_rolling import LOCAL, PLACED


def _edited(function: Function, n: int, edit: Op) -> Function:
    """A function with its n-th operation, those of regions counted, replaced by another one."""
    count = [n]

    def ops(of: Function) -> Iterator[Op]:
        for op in of.ops:
            count[0] -= 1
            if count[0] == -1:
                yield edit
            else:
                yield replace(op, regions=tuple(replace(each, ops=tuple(ops(each))) for each in op.regions))

    return replace(function, ops=tuple(ops(function)))


OTHERS = {"add": "maximum", "multiply": "add", "maximum": "minimum"}


def _edits(function: Function, draw: random.Random) -> Iterator[Function]:
    """Functions that differ in one operation: in an operand, an attribute or a region, or in what a turn hands on."""
    types = value_types(function)
    every = [op for each in functions(function) for op in each.ops]
    for n, op in enumerate(every):
        for q, v in enumerate(op.operands):
            before = [w for other in every[:n] for w in other.results if types[w] == types[v] and w != v]
            if before:
                operands = (*op.operands[:q], draw.choice(before), *op.operands[q + 1 :])
                yield _edited(function, n, replace(op, operands=operands))
        value = op.attributes.get("value")
        if value is not None and value.dtype != bool:
            yield _edited(function, n, replace(op, attributes={**op.attributes, "value": value + value.dtype.type(1)}))
            yield _edited(function, n, replace(op, attributes={**op.attributes, "value": value * value.dtype.type(2)}))
        if op.name == "while":
            body = op.regions[1]
            k = draw.randrange(1, len(body.results))
            alike = [v for v, w in zip(body.results, op.types, strict=True) if w == op.types[k]]
            results = (*body.results[:k], draw.choice([*alike, body.arguments[k]]), *body.results[k + 1 :])
            yield _edited(function, n, replace(op, regions=(op.regions[0], replace(body, results=results))))
        if op.name in OTHERS:
            yield _edited(function, n, replace(op, name=OTHERS[op.name]))
        if "source_target_pairs" in op.attributes:
            back = op.attributes["source_target_pairs"][:, ::-1]
            yield _edited(function, n, replace(op, attributes={**op.attributes, "source_target_pairs": back}))


def _results(module: Module, given: list[np.ndarray]) -> list[np.ndarray]:
    found = evaluate(module, [of_dense(a) for a in given], 1).results
    assert all(each is not None for each in found)
    return [dense(each, 0) for each in found if each is not None]


def _check(module: Module, shapes: list[tuple[int, ...]], edits: int) -> None:
    """Loops are what was written out, and edited ones are not but where they compute the same."""
    loops = rolled(module)
    assert loops is not None
    assert is_written_out(loops.main, module.main)
    draw = random.Random(os.environ["HLO_VERIFY_SEED"])
    given = [np.random.default_rng(n).standard_normal(shape) for n, shape in enumerate(shapes)]
    right = _results(module, given)
    edited = list(_edits(loops.main, draw))
    assert len(edited) > 10
    draw.shuffle(edited)
    taken = [each for each in edited[:edits] if is_written_out(each, module.main)]
    assert len(taken) < len(edited[:edits]) / 4
    for each in taken:
        same = zip(_results(replace(module, main=each), given), right, strict=True)
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in same)


@pytest.mark.parametrize("name", [name for name in LOCAL if name != "kept"])
def test_other_loops(name: str) -> None:
    module = load(PLACED.lowered(PLACED.mapped(LOCAL[name])))
    _check(module, [a.shape for a in PLACED.arguments], 200)


@pytest.mark.parametrize("mask", ["", "compared"])
def test_other_rings(mask: str) -> None:
    _check(load(Ring(devices=4, mask=mask).pair()[1]), [(8, 2)] * 3, 200)


def test_regions_that_choose_otherwise_are_no_turns() -> None:
    """The fourth turn chooses the other value, in a region inside of a region."""

    def local(x: jax.Array, w: jax.Array) -> jax.Array:
        h = x
        for t in range(6):

            def best(a: jax.Array, b: jax.Array, t: int = t) -> jax.Array:
                return lax.cond(a > b, lambda: b if t == 3 else a, lambda: a if t == 3 else b)

            most = lax.reduce(h, np.float32(-np.inf), best, (0,))
            h = h @ w + most
        return h

    module = load(PLACED.lowered(PLACED.mapped(local)))
    found = rolled(module)
    assert found is None or is_written_out(found.main, module.main)
    assert found is None
