"""Layers that repeat are derived once, and one that differs is not taken for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.ops.values import Context, Value, positions
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.interpret import run
from hlo_verify.passes.prove.layer_sharing import Sharing
from hlo_verify.passes.prove.layers import Keys, boundaries
from hlo_verify.terms import algebra
from hlo_verify.terms.term import tensor
from tests.support.lowering import Placed, floats

LAYERS = 7
X, H = "tensor<4x8xf32>", "tensor<4x6xf32>"

Lines = Callable[[int], list[str]]


def _dot(result: str, a: str, b: str, types: str) -> str:
    return f"{result} = stablehlo.dot_general {a}, {b}, contracting_dims = [1] x [0] : {types}"


def _program(layer: Lines, w: str, v: str, sharded: bool) -> str:
    def on(sharding: str) -> str:
        return f' {{mhlo.sharding = "{sharding}"}}' if sharded else ""

    arguments = [f"%x0: {X}{on('{replicated}')}"]
    for n in range(LAYERS):
        arguments += [
            f"%w{n}: tensor<{w}xf32>{on('{devices=[1,2]0,1}')}",
            f"%v{n}: tensor<{v}xf32>{on('{devices=[2,1]0,1}')}",
        ]
    body = [line for n in range(LAYERS) for line in layer(n)]
    return (
        "module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {\n"
        f"func.func public @main({', '.join(arguments)}) -> ({X}{on('{replicated}')}) {{\n"
        + "\n".join(body)
        + f"\nreturn %x{LAYERS} : {X}\n}}\n}}\n"
    )


def _logical_layer(n: int) -> list[str]:
    return [
        _dot(f"%a{n}", f"%x{n}", f"%w{n}", f"({X}, tensor<8x6xf32>) -> {H}"),
        f"%h{n} = stablehlo.tanh %a{n} : {H}",
        _dot(f"%y{n}", f"%h{n}", f"%v{n}", f"({H}, tensor<6x8xf32>) -> {X}"),
        f"%x{n + 1} = stablehlo.add %x{n}, %y{n} : {X}",
    ]


def _layer(n: int) -> list[str]:
    half = "tensor<4x3xf32>"
    return [
        _dot(f"%a{n}", f"%x{n}", f"%w{n}", f"({X}, tensor<8x3xf32>) -> {half}"),
        f"%h{n} = stablehlo.tanh %a{n} : {half}",
        _dot(f"%p{n}", f"%h{n}", f"%v{n}", f"({half}, tensor<3x8xf32>) -> {X}"),
        f'%y{n} = "stablehlo.all_reduce"(%p{n}) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, '
        f"channel_handle = #stablehlo.channel_handle<handle = {n + 1}, type = 1>, use_global_device_ids}}> ({{\n"
        "^bb0(%l: tensor<f32>, %r: tensor<f32>):\n%s = stablehlo.add %l, %r : tensor<f32>\n"
        f"stablehlo.return %s : tensor<f32>\n}}) : ({X}) -> {X}",
        f"%x{n + 1} = stablehlo.add %x{n}, %y{n} : {X}",
    ]


LOGICAL = _program(_logical_layer, "8x6", "6x8", True)
PARTITIONED = _program(_layer, "8x3", "3x8", False)


def _broken(at: int, old: str, new: str) -> str:
    """The partitioned module with every `old` of one layer's text replaced."""

    def layer(n: int) -> list[str]:
        lines = _layer(n)
        if n != at:
            return lines
        changed = [line.replace(old, new) for line in lines]
        assert changed != lines
        return changed

    return _program(layer, "8x3", "3x8", False)


def test_equal_layers_are_derived_once() -> None:
    module = load(LOGICAL)
    found = boundaries(module.main, Keys())
    producers = {op.results[0]: op.name for op in module.main.ops}
    assert {producers[v] for v in found} == {"add"}
    assert len(found) >= LAYERS - 2
    report = hlo_verify.verify(LOGICAL, PARTITIONED, refute=False)
    assert report.verdict is Verdict.PROVED
    assert sum(stage.shared for stage in report.stages) > len(report.stages) / 2


@pytest.mark.drawn(1)
@pytest.mark.parametrize("at", [0, 1, 3, LAYERS - 1])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%x{n}, %y{n}", "%x{n}, %p{n}"),  # not reduced
        ("%x{n}, %y{n}", "%y{n}, %y{n}"),  # no residual
        ("%x{n}, %w{n}", "%x{n}, %w{m}"),  # another layer's weights
        ("%h{n}, %v{n}", "%h{n}, %v{m}"),
        ("[[0, 1]]", "[[0], [1]]"),  # groups of one
        ("tanh", "logistic"),
        ("stablehlo.add %x", "stablehlo.subtract %x"),
    ],
)
def test_layer_that_differs_is_not_proved(at: int, old: str, new: str) -> None:
    other = at - 1 if at else 1
    broken = _broken(at, old.format(n=at), new.format(n=at, m=other))
    if new == "[[0], [1]]":
        broken = broken.replace("dense<[[0], [1]]> : tensor<1x2xi64>", "dense<[[0], [1]]> : tensor<2x1xi64>")
    assert hlo_verify.verify(LOGICAL, broken, refute=False).verdict is Verdict.UNKNOWN


def test_layer_that_uses_an_earlier_one_is_not_proved() -> None:
    broken = _broken(4, "%x4, %w4", "%x2, %w4")
    assert hlo_verify.verify(LOGICAL, broken, refute=False).verdict is Verdict.UNKNOWN


@pytest.mark.slow
def test_layers_exchanged_are_not_proved() -> None:
    def layer(n: int) -> list[str]:
        weights = {2: 3, 3: 2}.get(n, n)
        return [line.replace(f"%w{n}", f"%w{weights}").replace(f"%v{n}", f"%v{weights}") for line in _layer(n)]

    broken = _program(layer, "8x3", "3x8", False)
    assert hlo_verify.verify(LOGICAL, broken, refute=False).verdict is Verdict.UNKNOWN


def test_layers_of_another_form_are_proved_too() -> None:
    """The second half of the layers adds the other way round: those are interpreted, and meet the same boundaries."""

    def layer(n: int) -> list[str]:
        lines = _layer(n)
        if n >= LAYERS // 2:
            lines[-1] = f"%x{n + 1} = stablehlo.add %y{n}, %x{n} : {X}"
        return lines

    mixed = _program(layer, "8x3", "3x8", False)
    assert hlo_verify.verify(LOGICAL, mixed, refute=False).verdict is Verdict.PROVED


def _terms(body: str, results: int) -> tuple[list[object], list[object]]:
    """The results of a module over `%x, %y, %z`, interpreted plainly and with sharing."""
    kinds = ", ".join([X] * results)
    names = ", ".join(f"%r{n}" for n in range(results))
    text = f"func.func public @main(%x: {X}, %y: {X}, %z: {X}) -> ({kinds}) {{\n{body}\nreturn {names} : {kinds}\n}}"
    module = load(text)
    values = [
        Value(kind, algebra.read(tensor("argument", name, kind.dtype, kind.shape), positions(kind.shape)))
        for name, kind in zip(module.argument_names, module.main.argument_types, strict=True)
    ]
    plain = run(module.main, values, Context(None, 1, 1, run))
    once = Sharing(frozenset(), Keys(), module.main)
    shared = once.run(module.main, values, Context(None, 1, 1, run))
    return [value.term for value in plain], [once.resolve(value).term for value in shared]


@pytest.mark.parametrize(
    ("body", "results"),
    [
        (f"%r0 = stablehlo.tanh %x : {X}\n%r1 = stablehlo.tanh %y : {X}\n%r2 = stablehlo.tanh %x : {X}", 3),
        (f"%r0 = stablehlo.multiply %x, %y : {X}\n%r1 = stablehlo.multiply %z, %z : {X}", 2),
        (f"%r0 = stablehlo.subtract %x, %x : {X}\n%r1 = stablehlo.subtract %x, %y : {X}", 2),
        (f"%r0 = stablehlo.subtract %x, %y : {X}\n%r1 = stablehlo.subtract %y, %x : {X}", 2),
        (
            f"%a = stablehlo.multiply %x, %y : {X}\n%r0 = stablehlo.maximum %a, %z : {X}\n"
            f"%b = stablehlo.multiply %z, %x : {X}\n%r1 = stablehlo.maximum %b, %z : {X}\n"
            f"%r2 = stablehlo.maximum %b, %y : {X}",
            3,
        ),
    ],
)
def test_shared_terms_are_those_of_the_interpreter(body: str, results: int) -> None:
    plain, shared = _terms(body, results)
    assert plain == shared


def test_results_without_meaning_are_not_shared() -> None:
    body = "\n".join(
        f'%r{n} = "stablehlo.custom_call"(%{name}) {{call_target_name = "mystery"}} : ({X}) -> {X}'
        for n, name in enumerate("xyx")
    )
    _, shared = _terms(body, 3)
    assert len(set(shared)) == 3


def _marked(marked: bool, second: str) -> str:
    """Layers, and two more results: tanh(w) is added to both, in one module marked by a custom call."""
    kind, layers = "tensor<4xf32>", 10
    names = ["%w", "%v", "%x0", *(f"%a{n}" for n in range(layers))]
    placed = ' {mhlo.sharding = "{replicated}"}' if marked else ""
    body = []
    for n in range(layers):
        body += [
            f"%t{n} = stablehlo.tanh %x{n} : {kind}",
            f"%u{n} = stablehlo.multiply %t{n}, %a{n} : {kind}",
            f"%x{n + 1} = stablehlo.add %x{n}, %u{n} : {kind}",
        ]
    body += [f"%g = stablehlo.tanh %w : {kind}", f"%h = stablehlo.tanh {second} : {kind}"]
    for n, name in enumerate("gh"):
        if marked:
            body.append(f"%m{n} = stablehlo.custom_call @MoveToHost(%{name}) : ({kind}) -> {kind}")
        body.append(f"%r{n} = stablehlo.add %a{n}, %{f'm{n}' if marked else name} : {kind}")
    arguments = ", ".join(f"{name}: {kind}{placed}" for name in names)
    return (
        "module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {\n"
        f"func.func public @main({arguments}) -> ({', '.join([kind + placed] * 3)}) {{\n"
        + "\n".join(body)
        + f"\nreturn %x{layers}, %r0, %r1 : {kind}, {kind}, {kind}\n}}\n}}\n"
    )


def test_a_tensor_that_only_one_side_may_rename() -> None:
    """Behind the custom call, w is a tensor like any other constant; without it, one of the operands of a layer."""
    logical = _marked(True, "%w")
    assert hlo_verify.verify(logical, _marked(False, "%w"), refute=False).verdict is Verdict.PROVED
    assert hlo_verify.verify(logical, _marked(False, "%v"), refute=False).verdict is Verdict.UNKNOWN


def _twice(part: bool, weights: str) -> str:
    """Layers z = y + y of y = (tanh(z) * z) @ W, and z of the first layer twice more, summed twice over two devices."""
    kind, half, layers = "tensor<4xf32>", "tensor<2xf32>", 10
    table = "tensor<2x4xf32>" if part else "tensor<4x4xf32>"
    placed = "" if part else ' {mhlo.sharding = "{replicated}"}'
    split = "" if part else ' {mhlo.sharding = "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}"}'

    def dot(result: str, u: str, w: str) -> str:
        return _dot(result, u, w, f"({half if part else kind}, {table}) -> {kind}").replace("[1] x", "[0] x")

    def total(result: str, of: str, groups: str, size: str) -> str:
        return (
            f'{result} = "stablehlo.all_reduce"({of}) <{{replica_groups = dense<{groups}> : tensor<{size}xi64>, '
            f"channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}}> ({{\n"
            "^bb0(%l: tensor<f32>, %r: tensor<f32>):\n%s = stablehlo.add %l, %r : tensor<f32>\n"
            f"stablehlo.return %s : tensor<f32>\n}}) : ({kind}) -> {kind}"
        )

    body = [f"%one = stablehlo.constant dense<1.0> : {kind}"]
    if part:
        body += [
            "%id = stablehlo.partition_id : tensor<ui32>",
            "%starts = stablehlo.constant dense<[0, 0, 2, 2]> : tensor<4xi32>",
            "%at = stablehlo.dynamic_slice %starts, %id, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>",
            "%start = stablehlo.reshape %at : (tensor<1xi32>) -> tensor<i32>",
        ]
    for n in range(layers):
        body += [f"%t{n} = stablehlo.tanh %z{n} : {kind}", f"%u{n} = stablehlo.multiply %t{n}, %z{n} : {kind}"]
        if part:
            body.append(f"%h{n} = stablehlo.dynamic_slice %u{n}, %start, sizes = [2] : ({kind}, tensor<i32>) -> {half}")
            body += [dot(f"%p{n}", f"%h{n}", f"%w{n}"), total(f"%y{n}", f"%p{n}", "[[0, 2], [1, 3]]", "2x2")]
        else:
            body.append(dot(f"%y{n}", f"%u{n}", f"%w{n}"))
        body += [f"%a{n} = stablehlo.multiply %y{n}, %one : {kind}", f"%z{n + 1} = stablehlo.add %a{n}, %y{n} : {kind}"]
    results = [f"%z{layers}", "%z1", "%z1"]
    if part:
        for n, w in enumerate(("%w0", weights)):
            body += [dot(f"%q{n}", "%h0", w), total(f"%r{n}", f"%q{n}", "[[0, 1, 2, 3]]", "1x4")]
        results[1:] = ["%r0", "%r1"]
    arguments = ", ".join([f"%z0: {kind}{placed}", *(f"%w{n}: {table}{split}" for n in range(layers))])
    return (
        "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
        f"func.func public @main({arguments}) -> ({', '.join([kind + placed] * 3)}) {{\n"
        + "\n".join(body)
        + f"\nreturn {', '.join(results)} : {kind}, {kind}, {kind}\n}}\n}}\n"
    )


def test_a_cut_of_a_cut_that_one_operation_computes() -> None:
    """The sum over all devices is twice y, which is z: both are cut, and z is known by y alone."""
    logical = _twice(False, "")
    assert hlo_verify.verify(logical, _twice(True, "%w0"), refute=False).verdict is Verdict.PROVED
    assert hlo_verify.verify(logical, _twice(True, "%w3"), refute=False).verdict is Verdict.UNKNOWN


BLOCKS = 3
"""Steps of a layer's loop, each with two columns of the rows and two rows of the weight."""


def _looped(steps: Callable[[int], int], weight: Callable[[int], int]) -> tuple[str, str]:
    """Layers that add up their products block by block, in a loop each, on rows that are split over two devices."""

    def whole(x: jax.Array, *weights: jax.Array) -> jax.Array:
        for w in weights:
            x = x + jnp.tanh(x @ w)
        return x

    def local(x: jax.Array, *weights: jax.Array) -> jax.Array:
        for n in range(LAYERS):
            w = weights[weight(n)]

            def add_block(t: Any, total: jax.Array, x: jax.Array = x, w: jax.Array = w) -> jax.Array:
                columns = lax.dynamic_slice_in_dim(x, 2 * t, 2, 1)
                return total + columns @ lax.dynamic_slice_in_dim(w, 2 * t, 2, 0)

            x = x + jnp.tanh(lax.fori_loop(0, steps(n), add_block, jnp.zeros_like(x)))
        return x

    weights = floats(*[(2 * BLOCKS, 2 * BLOCKS)] * LAYERS)
    split, same = P("x"), P()
    on_both = Placed(AbstractMesh((2,), ("x",)), (split, *[same] * LAYERS), split, [*floats((8, 2 * BLOCKS)), *weights])
    on_each = jax.jit(local, keep_unused=True).lower(*floats((4, 2 * BLOCKS)), *weights).as_text()
    alone, two = (f"mhlo.num_partitions = {n} : i32" for n in (1, 2))
    assert alone in on_each
    return on_both.lowered(whole), on_each.replace(alone, two)


def test_loops_of_equal_layers_are_derived_once() -> None:
    report = hlo_verify.verify(*_looped(lambda _: BLOCKS, lambda n: n), refute=False)
    assert report.verdict is Verdict.PROVED
    loops = [stage for stage in report.stages if stage.operation == "while"]
    assert sum(stage.shared for stage in loops) >= LAYERS / 2


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 4])
def test_a_loop_that_differs_is_not_taken_for_the_others(at: int) -> None:
    short = _looped(lambda n: BLOCKS - (n == at), lambda n: n)
    other = _looped(lambda _: BLOCKS, lambda n: n - (n == at))
    for pair in (short, other):
        assert hlo_verify.verify(*pair, refute=False).verdict is Verdict.UNKNOWN
