"""Where a program for each device went wrong: the line that its author wrote, not the one where a value first has no
meaning.

Each case is a plain function, and one for each of four devices with a mistake in the line that says BUG.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify.diagnostics import Mismatch
from hlo_verify.passes.diagnose import manual_programs, wrong_offsets
from hlo_verify.report import Finding
from tests.support.lowering import Placed, floats

MESH = AbstractMesh((4,), ("i",), axis_types=(AxisType.Auto,))
VECTOR, MATRIX = (8,), (8, 8)
Body = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """`whole` is right and `wrong` is not, for arguments of those shapes and placements."""

    whole: Body
    wrong: Body
    shapes: tuple[tuple[int, ...], ...]
    given: tuple[P, ...]
    result: P
    code: Mismatch
    why: str = ""


def finding(case: Case) -> Finding:
    """What is said of the one result."""
    placed = Placed(MESH, case.given, case.result, floats(*case.shapes))
    (result,) = hlo_verify.verify(*placed.pair(case.whole, case.wrong), refute=False).results
    assert result.finding is not None
    return result.finding


def line_of(body: Body) -> str:
    """The file and line of the mistake in a function."""
    lines, start = inspect.getsourcelines(body)
    (bug,) = [n for n, line in enumerate(lines, start) if "# BUG" in line]
    return f"{__file__}:{bug}"


def bias_in_the_sum(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
    y = x @ w
    y = y + b
    return jax.lax.psum(y, "i")  # BUG: b is added once on every device


def scaled_by_rank(x: jax.Array) -> jax.Array:
    scale = jnp.where(jax.lax.axis_index("i") == 0, 0.5, 1.0)  # BUG
    return jnp.tanh(x) * scale


def mean_of_means(x: jax.Array) -> jax.Array:
    y = jnp.sum(jnp.tanh(x)) / x.shape[0]
    y = jax.lax.psum(y, "i")
    return y / 2  # BUG: there are four devices


def mean_of_quotients(x: jax.Array, n: jax.Array) -> jax.Array:
    mean = jnp.sum(x * n) / jnp.sum(n)  # BUG
    return jax.lax.pmean(mean, "i")


def mean_of_products(x: jax.Array, y: jax.Array) -> jax.Array:
    ones, others = jnp.mean(jnp.tanh(x), axis=0), jnp.mean(jnp.sin(y), axis=0)  # BUG
    return jax.lax.pmean(jnp.sum(ones * others), "i")


def mean_of_the_next_layer(x: jax.Array, w: jax.Array, v: jax.Array) -> jax.Array:
    """No mean of means: what follows is a mean over devices of another sum."""
    y = jnp.tanh(x @ w)  # BUG: of a part
    return jax.lax.pmean(jnp.sum(jnp.tanh(y @ v)), "i")


def one_addend_reduced(x: jax.Array, y: jax.Array) -> jax.Array:
    a = jax.lax.psum(jnp.sum(jnp.sin(x)), "i")
    b = jnp.sum(jnp.cos(y))  # BUG
    return a + b


def shifted_back(x: jax.Array) -> jax.Array:
    y = jax.lax.ppermute(x, "i", [(0, 3), (1, 0), (2, 1), (3, 2)])  # BUG: the other way round
    return jnp.sin(y)


def chosen(x: jax.Array, w: jax.Array, n: jax.Array) -> jax.Array:
    return jnp.tanh(jnp.sum(jnp.where(n.astype(jnp.int32)[:, None] == jnp.arange(8), x @ w, 0.0), axis=1))


def chosen_in_parts(x: jax.Array, w: jax.Array, n: jax.Array) -> jax.Array:
    local = n.astype(jnp.int32) - jax.lax.axis_index("i") * 2
    looked_up = jnp.take_along_axis(x @ w, jnp.clip(local, 0, 1)[:, None], axis=1, mode="clip")[:, 0]
    mine = (local >= 0) & (local < 2)
    row = jax.lax.psum(jnp.where(mine, looked_up, 0.0), "i")
    return jnp.sin(row)  # BUG


def sum_of_another(x: jax.Array) -> jax.Array:
    local = jnp.sum(jnp.tanh(x)) / 8  # BUG: of the squares
    return jax.lax.psum(local, "i")


def maximum_in_place_of_a_sum(x: jax.Array, y: jax.Array) -> jax.Array:
    local = jnp.max((jnp.tanh(x) - y) ** 2) / 2  # BUG: the mean of the squares
    return jax.lax.pmean(local, "i")


def norm(x: jax.Array) -> jax.Array:
    """Both programs call this: it is right in one of them."""
    return x / jnp.sqrt(jnp.sum(x * x))


def norm_of_a_part(x: jax.Array) -> jax.Array:
    y = jnp.tanh(x)
    return norm(y)  # BUG: of the device's own part


def looked_up_elsewhere(x: jax.Array) -> jax.Array:
    start = jax.lax.axis_index("i") * 3  # BUG: each has two
    return jnp.tanh(jax.lax.dynamic_slice_in_dim(x, start, 2))


def masked_elsewhere(x: jax.Array, n: jax.Array) -> jax.Array:
    first = jax.lax.axis_index("i") + 2  # BUG: times 2
    local = n.astype(jnp.int32) - first
    mine = jnp.logical_and(local >= 0, local < 2)
    return jax.lax.psum(jnp.where(mine, x[jnp.clip(local, 0, 1)], 0.0), "i")


CASES = {
    "what is complete is summed too": Case(
        lambda x, w, b: x @ w + b,
        bias_in_the_sum,
        (MATRIX, MATRIX, VECTOR),
        (P(None, "i"), P("i"), P()),
        P(),
        Mismatch.REDUCED_TWICE,
        manual_programs.TWICE,
    ),
    "devices have different factors": Case(
        jnp.tanh, scaled_by_rank, (VECTOR,), (P("i"),), P("i"), Mismatch.WRONG_FACTOR, wrong_offsets.NUMBERS
    ),
    "the last of two factors": Case(
        lambda x: jnp.mean(jnp.tanh(x)), mean_of_means, (VECTOR,), (P("i"),), P(), Mismatch.WRONG_FACTOR
    ),
    "parts are joined after a quotient": Case(
        lambda x, n: jnp.sum(x * n) / jnp.sum(n),
        mean_of_quotients,
        (VECTOR, VECTOR),
        (P("i"), P("i")),
        P(),
        Mismatch.JOINED_LATE,
        "is of what was made of parts",
    ),
    "parts are joined after a product": Case(
        lambda x, y: jnp.sum(jnp.mean(jnp.tanh(x), axis=0) * jnp.mean(jnp.sin(y), axis=0)),
        mean_of_products,
        (MATRIX, MATRIX),
        (P("i"), P("i")),
        P(),
        Mismatch.JOINED_LATE,
    ),
    "a mean that follows is of something else": Case(
        lambda x, w, v: jnp.sum(jnp.tanh(jnp.tanh(x @ w) @ v)),
        mean_of_the_next_layer,
        (MATRIX, MATRIX, MATRIX),
        (P(None, "i"), P("i"), P(None, "i")),
        P(),
        Mismatch.NEVER_REDUCED,
    ),
    "one of two addends is left a part": Case(
        lambda x, y: jnp.sum(jnp.sin(x)) + jnp.sum(jnp.cos(y)),
        one_addend_reduced,
        (VECTOR, VECTOR),
        (P("i"), P("i")),
        P(),
        Mismatch.NEVER_REDUCED,
        manual_programs.UNREDUCED,
    ),
    "sent the wrong way": Case(
        lambda x: jnp.sin(jnp.roll(x, 2)), shifted_back, (VECTOR,), (P("i"),), P("i"), Mismatch.WRONG_DEVICES
    ),
    "an offset at which no shard starts": Case(
        jnp.tanh, looked_up_elsewhere, (VECTOR,), (P(),), P("i"), Mismatch.WRONG_PLACE, "where 2*d is expected"
    ),
    "an offset that is added to, not multiplied": Case(
        lambda x, n: jnp.take(x, n.astype(jnp.int32), mode="clip"),
        masked_elsewhere,
        (VECTOR, VECTOR),
        (P("i"), P()),
        P(),
        Mismatch.WRONG_PLACE,
        "offset d + 2 where 2*d is expected",
    ),
    "after what was looked up in parts": Case(
        chosen, chosen_in_parts, (MATRIX, MATRIX, VECTOR), (P(), P(None, "i"), P()), P(), Mismatch.DIFFERS
    ),
    "what is summed is another": Case(
        lambda x: jnp.mean(jnp.tanh(x) ** 2), sum_of_another, (VECTOR,), (P("i"),), P(), Mismatch.DIFFERS
    ),
    "a maximum is taken where a sum is wanted": Case(
        lambda x, y: jnp.mean((jnp.tanh(x) - y) ** 2),
        maximum_in_place_of_a_sum,
        (VECTOR, VECTOR),
        (P("i"), P("i")),
        P(),
        Mismatch.DIFFERS,
    ),
    "a function that both call": Case(
        lambda x: norm(jnp.tanh(x)), norm_of_a_part, (VECTOR,), (P("i"),), P("i"), Mismatch.NEVER_REDUCED
    ),
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", CASES)
def test_the_line_and_the_kind_of_a_mistake(name: str) -> None:
    case = CASES[name]
    found = finding(case)
    assert found.location == line_of(case.wrong)
    assert found.code is case.code
    assert case.why in found.nearest
