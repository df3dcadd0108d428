"""Numbers that depend on constants alone take no more memory than they may, on however many devices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from hlo_verify.evaluate.maps import Array
from hlo_verify.limits import Limits, in_force, limit_of
from hlo_verify.passes.chain import rounded_tables
from hlo_verify.passes.chain.closed_values import Closed, closed_values, enclosures
from hlo_verify.passes.chain.rounded_tables import parts
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Module
from hlo_verify.session import Session

DEVICES, ELEMENTS = 512, 64
MODULE = f"""
module attributes {{mhlo.num_partitions = {DEVICES} : i32}} {{
  func.func public @main(%x: tensor<{ELEMENTS}xf32>) -> tensor<{ELEMENTS}xf32> {{
    %i = stablehlo.iota dim = 0 : tensor<{ELEMENTS}xf32>
    %u = stablehlo.partition_id : tensor<ui32>
    %n = stablehlo.convert %u : (tensor<ui32>) -> tensor<f32>
    %d = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> tensor<{ELEMENTS}xf32>
    %a = stablehlo.cosine %i : tensor<{ELEMENTS}xf32>
    %b = stablehlo.add %a, %d : tensor<{ELEMENTS}xf32>
    %c = stablehlo.sine %b : tensor<{ELEMENTS}xf32>
    %y = stablehlo.multiply %x, %c : tensor<{ELEMENTS}xf32>
    return %y : tensor<{ELEMENTS}xf32>
  }}
}}
"""


def held(most: int) -> dict[str, np.ndarray]:
    module = load(MODULE)
    values = closed_values(module.main).values()
    with in_force(replace(Limits(), enclosed_elements=most), {}):
        return {str(name): array for name, array in enclosures(module, values, DEVICES, Session()).items()}


@pytest.mark.parametrize(
    "most", [ELEMENTS - 1, DEVICES * ELEMENTS, 2 * DEVICES * ELEMENTS, limit_of("enclosed_elements")]
)
def test_the_numbers_of_all_devices_fit_together(most: int) -> None:
    """It was a limit of each tensor, of one device: 24 GB for a module with 512."""
    found = held(most)
    assert sum(array.size for array in found.values()) <= most
    assert bool(found) == (most >= DEVICES * ELEMENTS)
    assert all(len(array) == DEVICES for array in found.values())


def test_what_it_takes_is_on_the_account() -> None:
    """A wrong module may cost ten times its proof: the look for tables was beside that."""
    module, session = load(MODULE), Session()
    session.meter.begin(1e9)
    enclosures(module, closed_values(module.main).values(), DEVICES, session)
    assert session.meter.spent >= DEVICES * ELEMENTS


def test_no_tables_are_looked_for_in_what_many_devices_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are numbers of a module for one device; those of all devices were computed, and left."""
    looked_at: list[int] = []

    def noted(module: Module, values: Iterable[Closed], devices: int, session: Session) -> dict[str, Array]:
        looked_at.append(devices)
        return {}

    monkeypatch.setattr(rounded_tables, "enclosures", noted)
    module = load(MODULE)
    parts(module, replace(module, partitions=1), (DEVICES, 1), Session())
    assert not looked_at
    parts(replace(module, partitions=1), module, (1, DEVICES), Session())
    assert looked_at == [1]


@pytest.mark.parametrize("depends", [False, True])
def test_a_region_is_handed_what_depends_on_arguments(depends: bool) -> None:
    """A gradient's region is handed what was computed on the way forward. That is left out, with what the region is
    handed of it, and the numbers that the region computes of constants are found: a check ended in a KeyError."""
    mesh = AbstractMesh((2,), ("d",), axis_types=(AxisType.Auto,))

    def body(x: jax.Array, table: jax.Array) -> jax.Array:
        return x * jnp.cos(jnp.arange(4.0) + lax.axis_index("d")) * jnp.sin(table)

    def function(x: jax.Array) -> jax.Array:
        y = x * x if depends else x
        return jax.shard_map(body, mesh=mesh, in_specs=(P("d"), P("d")), out_specs=P("d"))(y, jnp.sqrt(jnp.arange(8.0)))

    module = load(jax.jit(function).trace(jax.ShapeDtypeStruct((8,), jnp.float32)).lower().as_text())
    values = [value for value in closed_values(module.main).values() if value.is_computed]
    found = enclosures(module, values, 1, Session())
    cosines = [found[value.name] for value in values if value.op.name == "cosine"]
    sines = [found[value.name] for value in values if value.op.name == "sine"]
    assert len(cosines) == len(sines) == 1
    for got, expected in (
        (cosines[0], np.cos(np.arange(4) + np.arange(2)[:, None])),
        (sines[0], np.sin(np.sqrt(np.arange(8.0))).reshape(2, 4)),
    ):
        assert np.all(got["low"] <= expected) and np.all(expected <= got["high"])
