"""What is larger than a number for some arguments is among the large values, whatever is seen of it at zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlo_verify.passes.chain.reached import large_values
from hlo_verify.passes.load.load import load

MOST = 1e9


def is_large(program: Callable[..., Any]) -> bool:
    """Whether the result is, of a program of numbers and a count."""
    arguments = jax.ShapeDtypeStruct((4,), "float32"), jax.ShapeDtypeStruct((), "int32")
    module = load(jax.jit(program).lower(*arguments).as_text())
    return module.main.results[0] in large_values(module, 1, MOST, ())


def looped(turns: Callable[[Any], Any], turn: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    def program(x: Any, n: Any) -> Any:
        def body(carried: Any) -> Any:
            i, y = carried
            return i + 1, turn(i, y, n)

        return lax.while_loop(lambda carried: carried[0] < turns(n), body, (0, x))[1]

    return program


def unless_late(i: Any, y: Any, n: Any) -> Any:
    return jnp.where(i > 3, -1e30, y)


def in_a_branch(i: Any, y: Any, n: Any) -> Any:
    return lax.cond(i < n + 2, lambda: unless_late(i, y, n), lambda: y)


LARGE: dict[str, Callable[..., Any]] = {
    "a constant": lambda x, n: x + 1e30,
    "no number": lambda x, n: x + jnp.nan,
    "one that is chosen somewhere": lambda x, n: jnp.where(jnp.arange(4) > 2, jnp.inf, x),
    "one that an argument chooses": lambda x, n: jnp.where(n > 3, jnp.inf, x),
    "in a turn": looped(lambda n: 6, unless_late),
    "in a turn that arguments decide on": looped(lambda n: n + 2, unless_late),
    "in a turn, where a branch is taken": looped(lambda n: 6, in_a_branch),
}
SMALL: dict[str, Callable[..., Any]] = {
    "an argument": lambda x, n: x + 1e3,
    "one that is chosen nowhere": lambda x, n: jnp.where(jnp.arange(4) > 5, jnp.inf, x),
    "one that is divided by": lambda x, n: x / 1e30,
    "a variance, of which there may be none": lambda x, n: x * lax.rsqrt(x.var() + 1e-5),
    "in no turn": looped(lambda n: 3, unless_late),
}


@pytest.mark.parametrize("program", LARGE.values(), ids=LARGE)
def test_large(program: Callable[..., Any]) -> None:
    assert is_large(program)


@pytest.mark.parametrize("program", SMALL.values(), ids=SMALL)
def test_small(program: Callable[..., Any]) -> None:
    assert not is_large(program)
