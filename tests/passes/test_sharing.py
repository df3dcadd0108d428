"""Layers that repeat are derived once, and one that differs is not taken for the others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.ops.values import Context, Value, positions
from hlo_verify.passes.interpret import run
from hlo_verify.passes.load import load
from hlo_verify.passes.repetition import Keys, cuts
from hlo_verify.passes.sharing import Sharing
from hlo_verify.terms import algebra
from hlo_verify.terms.term import tensor

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
    found = cuts(module.main, Keys())
    producers = {op.results[0]: op.name for op in module.main.ops}
    assert {producers[v] for v in found} == {"add"}
    assert len(found) >= LAYERS - 2
    report = hlo_verify.verify(LOGICAL, PARTITIONED)
    assert report.verdict is Verdict.PROVED
    assert sum(stage.shared for stage in report.stages) > len(report.stages) / 2


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
    assert hlo_verify.verify(LOGICAL, broken).verdict is Verdict.UNKNOWN


def test_layer_that_uses_an_earlier_one_is_not_proved() -> None:
    broken = _broken(4, "%x4, %w4", "%x2, %w4")
    assert hlo_verify.verify(LOGICAL, broken).verdict is Verdict.UNKNOWN


def test_layers_exchanged_are_not_proved() -> None:
    def layer(n: int) -> list[str]:
        weights = {2: 3, 3: 2}.get(n, n)
        return [line.replace(f"%w{n}", f"%w{weights}").replace(f"%v{n}", f"%v{weights}") for line in _layer(n)]

    broken = _program(layer, "8x3", "3x8", False)
    assert hlo_verify.verify(LOGICAL, broken).verdict is Verdict.UNKNOWN


def test_layers_of_another_form_are_proved_too() -> None:
    """The second half of the layers adds the other way round: those are interpreted, and meet the same cuts."""

    def layer(n: int) -> list[str]:
        lines = _layer(n)
        if n >= LAYERS // 2:
            lines[-1] = f"%x{n + 1} = stablehlo.add %y{n}, %x{n} : {X}"
        return lines

    mixed = _program(layer, "8x3", "3x8", False)
    assert hlo_verify.verify(LOGICAL, mixed).verdict is Verdict.PROVED


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
    once = Sharing(frozenset(), Keys())
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
