"""An argument in the place of a value: where it is given that value, the modules compute what they did before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from hlo_verify.evaluate import dense, evaluate, of_dense
from hlo_verify.passes.cut.cut import cut
from hlo_verify.passes.load.load import load
from hlo_verify.program.approximations import read
from hlo_verify.program.ir import Module, fresh_in, functions, value_types
from tests.support.lowering import Placed, floats

PLACED = Placed(AbstractMesh((4,), ("i",), axis_types=(AxisType.Auto,)), P("i"), P("i"), floats((8, 4)))


def straight(x: Any, inner: Any, reduce: Any) -> Any:
    with jax.named_scope("named"):
        m = inner(reduce(x))
    return x * m + jnp.sin(m)


def branched(x: Any, inner: Any, reduce: Any) -> Any:
    """Used in a branch, and computed before it."""
    with jax.named_scope("named"):
        m = inner(reduce(x))
    return lax.cond(x.shape[1] > 2, lambda: x + m, lambda: x - m) * lax.cond(m[0] > 0, lambda: m, lambda: -m)


def looped(x: Any, inner: Any, reduce: Any) -> Any:
    """Used in every turn of a loop."""
    with jax.named_scope("named"):
        m = inner(reduce(x))
    return lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y + m), x)


def in_a_branch(x: Any, inner: Any, reduce: Any) -> Any:
    """Computed in a branch."""

    def branch() -> Any:
        with jax.named_scope("named"):
            m = inner(reduce(x))
        return x - m

    return lax.cond(reduce(x)[0] > -100, branch, lambda: x)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "straight": straight,
    "used in a branch": branched,
    "used in a loop": looped,
    "computed in a branch": in_a_branch,
}


def _modules(function: Any) -> tuple[Module, Module]:
    whole = lambda x: function(x, jnp.cos, lambda x: x.sum(0))  # noqa: E731
    local = lambda x: function(x, jnp.cos, lambda x: lax.psum(x.sum(0), "i"))  # noqa: E731
    first, second = PLACED.pair(whole, local)
    return load(first.encode()), load(second.encode())


def _result(module: Module, devices: int, *arguments: Any) -> Any:
    found = evaluate(module, [of_dense(each) for each in arguments], devices)
    return dense(found.results[0], 0)


@pytest.mark.parametrize("which", FUNCTIONS)
def test_given_the_value_itself_they_compute_what_they_did(which: str) -> None:
    modules = _modules(FUNCTIONS[which])
    made = cut(*modules, read("named = named"))
    x = np.random.default_rng(0).standard_normal((8, 4)) / 4
    value = np.cos(x.sum(0))
    for before, after in zip(modules, (made.logical, made.partitioned), strict=True):
        assert after.declared == 1 and after.argument_names[-1] == "named"
        expected = _result(before, 1, x)
        np.testing.assert_allclose(_result(after, 1, x, value), expected)
        assert not np.allclose(_result(after, 1, x, value + 1), expected)


@pytest.mark.parametrize("which", FUNCTIONS)
def test_every_value_has_one_name(which: str) -> None:
    made = cut(*_modules(FUNCTIONS[which]), read("named = named"))
    for module in (made.logical, made.partitioned):
        names = [name for each in functions(module.main) for name in each.arguments]
        names += [name for each in functions(module.main) for op in each.ops for name in op.results]
        assert len(names) == len(set(names)) == len(value_types(module.main))
        assert fresh_in(module.main).one() not in names


def test_the_module_itself_is_left_as_it_was() -> None:
    modules = _modules(straight)
    before = [module.main for module in modules]
    cut(*modules, read("named = named"))
    assert [module.main for module in modules] == before
