"""An exchange whose extent is data is a function of what all devices send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import Array, lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed
from tests.support.pairs import FOUR, module, on

DEVICES = 4
MESH = AbstractMesh((DEVICES,), ("x",))


def exchanged(x: Array, out: Array, sizes: Array, offsets: Array) -> Array:
    return lax.ragged_all_to_all(x, out, offsets, sizes, offsets, sizes, axis_name="x")


def on_one_device(x: Array, out: Array, sizes: Array, offsets: Array) -> Array:
    """The same, but for what one device sends: of all that the others get something."""
    other = jnp.where(lax.axis_index("x") == 2, 2 * x, x)
    return exchanged(other, out, sizes, offsets)


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (exchanged, Verdict.PROVED),
        (on_one_device, Verdict.UNKNOWN),
        (lambda x, out, sizes, offsets: exchanged(x, out, offsets, sizes), Verdict.UNKNOWN),
        (lambda x, out, sizes, offsets: exchanged(x, 2 * out, sizes, offsets), Verdict.UNKNOWN),
        (
            lambda x, out, sizes, offsets: lax.ppermute(exchanged(x, out, sizes, offsets), "x", [(0, 1), (1, 0)]),
            Verdict.UNKNOWN,
        ),
    ],
    ids=["right", "one device sends something else", "other sizes", "other output", "to another device"],
)
def test_depends_on_all_devices(local: Callable[..., Any], expected: Verdict) -> None:
    shapes = [((8 * DEVICES, 3), jnp.float32)] * 2 + [((DEVICES * DEVICES,), jnp.int32)] * 2
    placed = Placed(MESH, P("x"), P("x"), [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes])
    one, other = (placed.lowered(placed.mapped(function), "tpu") for function in (exchanged, local))
    assert hlo_verify.verify(one, other, refute=False).verdict is expected


RAGGED = """
 %s0 = stablehlo.constant dense<0> : tensor<4xi32>
 %s1 = stablehlo.constant dense<1> : tensor<4xi32>
 %z = stablehlo.constant dense<0.0> : tensor<2xf32>
 %r = stablehlo.custom_call @ragged_all_to_all(%x, %z, %s0, %s1, %s0, %s1) {api_version = 4 : i32, backend_config = {
   replica_groups = GROUPS}} : (tensor<2xf32>, tensor<2xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<2xf32>
 return %r : tensor<2xf32>"""  # noqa: E501
ALL = "dense<> : tensor<0x0xi64>"
WRITTEN = "dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (f"{ALL}, channel_id = 1 : i64", f"{ALL}, channel_id = 7 : i64", Verdict.PROVED),
        (f"{ALL}, channel_id = 1 : i64", ALL, Verdict.UNKNOWN),
        ("dense<[[0]]> : tensor<1x1xi64>, channel_id = 1 : i64", "dense<[[0]]> : tensor<1x1xi64>", Verdict.UNKNOWN),
        (
            f"{ALL}, channel_id = 1 : i64",
            f"{WRITTEN}, channel_id = 1 : i64",
            Verdict.PROVED,
        ),
        (f"{ALL}, channel_id = 1 : i64", 'dense<[0, 1]> : tensor<2xi64>, channel_id = "1"', Verdict.UNKNOWN),
    ],
    ids=["another number", "no channel", "no channel, one group", "all in words", "no groups"],
)
def test_without_a_channel_replicas_are_meant(first: str, second: str, expected: Verdict) -> None:
    """Which with one replica are each device alone."""
    given = f"%x: tensor<8xf32> {on(FOUR)}"
    found = f"tensor<8xf32> {on(FOUR)}"
    region = (
        'sdy.mesh @mesh = <["x"=4]>\n'
        '%r = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] '
        'manual_axes={"x"} (%a: tensor<2xf32>) {BODY} : (tensor<8xf32>) -> tensor<8xf32>\nreturn %r : tensor<8xf32>'
    )
    mesh, _, body = region.partition("\n")
    local = RAGGED.replace("%x", "%a").replace("return %r", "sdy.return %r")
    whole = module(given, found, body.replace("BODY", "\n" + local.replace("GROUPS", first) + "\n"))
    whole = whole.replace("func.func", mesh + "\nfunc.func", 1)
    parts = module("%x: tensor<2xf32>", "tensor<2xf32>", RAGGED.replace("GROUPS", second))
    assert hlo_verify.verify(whole, parts, refute=False).verdict is expected
