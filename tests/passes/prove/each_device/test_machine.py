"""What each device holds is what it holds where the program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from hlo_verify.evaluate import dense, evaluate, of_dense
from hlo_verify.ops.values import Value
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.each_device.compare import EachDevice, each_device
from hlo_verify.program.ir import Module
from hlo_verify.session import Session
from tests.passes.prove.each_device.programs import PROGRAMS, on
from tests.support.evaluate import Evaluator


def walked(logical: Module, partitioned: Module, session: Session) -> EachDevice:
    found = each_device(logical, partitioned, session)
    assert found is not None
    return found


def assert_computed(module: Module) -> None:
    """Of a global module, on each device what an evaluation that shares nothing with the walk finds."""
    generator = np.random.default_rng(0)
    given = [generator.integers(-3, 4, type_.shape) / 4.0 for type_ in module.main.argument_types]
    wanted = evaluate(module, [of_dense(x) for x in given], 1)
    assert not wanted.unknown
    with Session().on() as session:
        found = walked(module, module, session)
        tensors = {argument.term.atom.tensor: x for argument, x in zip(found.arguments, given, strict=True)}  # type: ignore[union-attr]
        evaluator = Evaluator(tensors)
        for n, result in enumerate(wanted.results):
            assert result is not None
            for value in dict.fromkeys(found.found[n]):
                assert isinstance(value, Value)
                plain = evaluator.value(value).astype(float)
                np.testing.assert_allclose(plain, np.broadcast_to(dense(result, 0), plain.shape), rtol=1e-9, atol=1e-9)


def lowered(local: Callable[..., Any], placed: Any) -> Module:
    return load(placed.lowered(placed.mapped(local)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    program = PROGRAMS[name]
    assert_computed(lowered(program.local(), program.placed))


HALVES = ((0, 3), (1, 2))
COLLECTIVES: dict[str, Callable[[jax.Array], jax.Array]] = {
    "sum": lambda x: lax.psum(x, "i"),
    "sum of a group": lambda x: lax.psum(x, "i", axis_index_groups=HALVES),
    "maximum": lambda x: lax.pmax(x * x, "i"),
    "minimum": lambda x: lax.pmin(x, "i"),
    "scatter": lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
    "scatter in groups": lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True, axis_index_groups=HALVES),
    "gather": lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
    "gather in groups": lambda x: lax.all_gather(x, "i", axis=0, axis_index_groups=HALVES).sum(0),
    "exchange": lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
    "exchange in groups": lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True, axis_index_groups=HALVES),
    "pass on": lambda x: lax.ppermute(x, "i", [(0, 2), (2, 1), (1, 3), (3, 0)]),
    "pass on to some": lambda x: lax.ppermute(x, "i", [(0, 2), (3, 1)]) + 0 * lax.axis_index("i"),
    "number": lambda x: x * (lax.axis_index("i") - 1) // 2,
    "loop": lambda x: lax.fori_loop(0, 5, lambda t, c: lax.ppermute(c, "i", [(0, 1), (1, 0), (2, 3)]) + t, x),
    "loop of its own length": lambda x: lax.fori_loop(0, lax.axis_index("i"), lambda t, c: c * c + t, x),
    "branch": lambda x: lax.switch(lax.axis_index("i") ^ 1, [lambda y, n=n: y * n for n in range(3)], x),
    "branch on data": lambda x: lax.cond(x[0, 0] > 0, lambda y: y + 1, lambda y: y * y, x),
    "window": lambda x: lax.dynamic_slice(x, (0, 2 * lax.axis_index("i")), (2, 3)),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name: str) -> None:
    assert_computed(lowered(COLLECTIVES[name], on({"i": 4}, P("i"), P("i"), (8, 8))))


@pytest.mark.parametrize("manual", [{"a"}, {"b"}, {"a", "b"}])
def test_regions_over_some_axes(manual: set[str]) -> None:
    placed = on({"a": 2, "b": 2}, P("a", "b"), P("a", "b"), (4, 4))
    spec = P(*(axis if axis in manual else None for axis in "ab"))

    def whole(x: jax.Array) -> jax.Array:
        y = jax.shard_map(
            lambda y: jnp.sin(y) * lax.all_gather(y.sum(), tuple(sorted(manual))).sum(),
            mesh=placed.mesh,
            in_specs=spec,
            out_specs=spec,
            axis_names=manual,
        )(jnp.cos(x))
        return y @ y

    assert_computed(load(placed.lowered(whole)))


UNEVEN = """
module @m attributes {{mhlo.num_partitions = {partitions} : i32}} {{
  func.func public @main(%x: tensor<{rows}x3xf32> {given}) -> (tensor<{rows}x3xf32> {given}) {{
    %y = stablehlo.sine %x : tensor<{rows}x3xf32>
    return %y : tensor<{rows}x3xf32>
  }}
}}
"""


def test_partitioned_unevenly() -> None:
    """What lies past the end of an argument is arbitrary, and nothing is asked of it."""
    split = '{mhlo.sharding = "{devices=[3,1]<=[3]}"}'
    logical, partitioned = (load(UNEVEN.format(rows=rows, partitions=3, given=split)) for rows in (7, 3))
    with Session().on() as session:
        found = walked(logical, partitioned, session)
        assert found.proves(0)
        assert len({value.term for value in found.found[0]}) == 3
