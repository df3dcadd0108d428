"""What is summed over all parameters of equal layers, and over others, is proved in layers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.in_layers import Layered
from hlo_verify.passes.prove.prove import by_layers
from hlo_verify.session import Session

LAYERS = 7
S = "tensor<f32>"
SHAPES = {"w": (8, 6), "v": (6,), "head": (4, 6, 4), "table": (10, 6), "bias": (4,)}
"""Of a layer's two parameters, and of others that no layer has."""


def _tensor(shape: tuple[int, ...]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def _names(order: tuple[str, ...]) -> list[str]:
    """The parameters in the order in which they are added, with those of all layers where `layers` says."""
    layers = [f"{name}{n}" for n in range(LAYERS) for name in ("w", "v")]
    return [name for part in order for name in (layers if part == "layers" else [part])]


def _square(name: str, shape: tuple[int, ...], of: str, reduced: bool) -> list[str]:
    kind, over = _tensor(shape), ", ".join(map(str, range(len(shape))))
    lines = [
        f"%q_{name} = stablehlo.multiply %{name}, %{of} : {kind}",
        f"%p_{name} = stablehlo.reduce(%q_{name} init: %zero) applies stablehlo.add across dimensions = [{over}] : "
        f"({kind}, {S}) -> {S}",
    ]
    if reduced:
        lines.append(
            f'%t_{name} = "stablehlo.all_reduce"(%p_{name}) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, '
            "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({\n"
            "^bb0(%l: tensor<f32>, %r: tensor<f32>):\n%s = stablehlo.add %l, %r : tensor<f32>\n"
            f"stablehlo.return %s : tensor<f32>\n}}) : ({S}) -> {S}"
        )
    return lines


def _program(order: tuple[str, ...], sharded: bool, fault: Callable[[str], str] = str) -> str:
    """The root of the sum of the squares of all parameters, added one by one; `fault` changes a parameter's lines."""
    arguments, body, last = [], [f"%zero = stablehlo.constant dense<0.0> : {S}"], "zero"
    for name in _names(order):
        shape = SHAPES[name.rstrip("0123456789")]
        if not sharded:
            shape = (shape[0] // 2, *shape[1:])
        split = f' {{mhlo.sharding = "{{devices=[2{",1" * (len(shape) - 1)}]0,1}}"}}' if sharded else ""
        arguments.append(f"%{name}: {_tensor(shape)}{split}")
        lines = _square(name, shape, name, not sharded)
        lines.append(f"%s_{name} = stablehlo.add %{last}, %{'p' if sharded else 't'}_{name} : {S}")
        body += map(fault, lines)
        last = f"s_{name}"
    body.append(f"%r = stablehlo.sqrt %{last} : {S}")
    same = ' {mhlo.sharding = "{replicated}"}' if sharded else ""
    return (
        "module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {\n"
        f"func.func public @main({', '.join(arguments)}) -> ({S}{same}) {{\n"
        + "\n".join(body)
        + f"\nreturn %r : {S}\n}}\n}}\n"
    )


def _derived(order: tuple[str, ...], fault: Callable[[str], str] = str) -> Layered:
    session = Session()
    with session.on():
        found = by_layers(load(_program(order, True)), load(_program(order, False, fault)), session)
    assert found is not None
    return found


ORDERS = [
    ("layers",),
    ("head", "layers"),
    ("layers", "head"),
    ("layers", "head", "table"),
    ("head", "layers", "table"),
    ("table", "layers", "head"),
    ("layers", "bias", "head", "table"),
    ("bias", "layers", "head", "table"),
]


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_a_norm_over_all_parameters_is_proved_in_layers(order: tuple[str, ...]) -> None:
    assert _derived(order).report.verdict is Verdict.PROVED


FAULTS = {
    "a layer's weight for the next one's": (
        "%q_w3 = stablehlo.multiply %w3, %w3",
        "%q_w3 = stablehlo.multiply %w3, %w4",
    ),
    "a layer is left out": ("add %s_w4, %t_v4", "add %s_w4, %zero"),
    "a layer is added twice": ("add %s_w4, %t_v4", "add %s_w4, %t_v3"),
    "not reduced in a layer": ("add %s_w4, %t_v4", "add %s_w4, %p_v4"),
    "not reduced behind all layers": ("%t_head :", "%p_head :"),
    "what is behind all layers is left out": ("%t_head :", "%zero :"),
}


@pytest.mark.parametrize("order", ORDERS[2:], ids="-".join)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_norm_that_is_another_one_is_not_proved(fault: str, order: tuple[str, ...]) -> None:
    old, new = FAULTS[fault]
    assert _program(order, False, lambda line: line.replace(old, new)) != _program(order, False)
    assert _derived(order, lambda line: line.replace(old, new)).report.verdict is Verdict.UNKNOWN
