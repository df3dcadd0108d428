"""Ranks that meet: each collective means what it means under `jax.vmap`, whatever the program is around it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from hlo_verify import InputError, Plan, Verdict, check
from hlo_verify.plans import Run

RANKS = 4


@jax.custom_jvp
def bent(x: Any) -> Any:
    return lax.psum(jnp.sin(x), "d")


bent.defjvp(lambda primals, tangents: (bent(*primals), tangents[0]))

COLLECTIVES: dict[str, Callable[[Any], Any]] = {
    "psum": lambda x: lax.psum(x, "d") + lax.psum(2, "d"),
    "the size of an axis": lambda x: x * lax.psum(1, "d") + lax.axis_size("d"),
    "the size of an axis in a loop": lambda x: lax.fori_loop(0, 2, lambda _, y: y * lax.psum(1, "d"), x),
    "the size of an axis alone": lambda x: lax.psum(1, "d"),
    "no axis": lambda x: {"a": (2 * x, x), "b": None},
    "psum of a tree": lambda x: lax.psum({"a": x, "b": x[0]}, "d"),
    "pmean": lambda x: lax.pmean(x, "d"),
    "pmax": lambda x: lax.pmax(x, "d") - lax.pmin(x, "d"),
    "all_gather": lambda x: lax.all_gather(x, "d", axis=1),
    "all_gather, tiled": lambda x: lax.all_gather(x, "d", axis=1, tiled=True),
    "psum_scatter": lambda x: lax.psum_scatter(x, "d", scatter_dimension=0, tiled=True),
    "psum_scatter of one": lambda x: lax.psum_scatter(x[:4], "d", scatter_dimension=0),
    "ppermute": lambda x: lax.ppermute(x, "d", [(0, 2), (1, 0), (3, 1), (2, 3)]),
    "all_to_all": lambda x: lax.all_to_all(x[:4], "d", 0, 1),
    "all_to_all, tiled": lambda x: lax.all_to_all(x, "d", 0, 1, tiled=True),
    "axis_index": lambda x: x * lax.axis_index("d"),
    "in a jit, with a gradient": jax.jit(jax.grad(lambda x: jnp.sum(lax.psum(x, "d") ** 2 * lax.axis_index("d")))),
    "under checkpoint": jax.checkpoint(lambda x: jnp.tanh(lax.psum(x, "d"))),
    "under custom_jvp": bent,
}


@pytest.mark.drawn(8)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_collective_means_what_jax_says(name: str) -> None:
    function = COLLECTIVES[name]
    x = np.float32(np.random.default_rng(3).normal(size=(RANKS, 8, 4)))
    plan = Plan(
        takes="x", mesh={"d": RANKS}, ranks=[[Run(function, f"x/{n}", "y")] for n in range(RANKS)], returns="y@*"
    )
    expected = jax.jit(jax.vmap(function, axis_name="d"))(x)
    found = jax.jit(plan)(list(x))
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def test_who_is_sent_nothing_has_zeros() -> None:
    plan = Plan(
        takes="x",
        mesh={"d": 3},
        ranks=[[Run(lambda x: lax.ppermute(x, "d", [(0, 2), (2, 1)]), f"x[{n}/3]", "y")] for n in range(3)],
        returns="y@*",
    )
    np.testing.assert_array_equal(plan(np.float32([1, 2, 3])), [[0], [3], [1]])


GROUPS = {
    "a": [[0, 3], [1, 4], [2, 5]],
    "b": [[0, 1, 2], [3, 4, 5]],
    ("a", "b"): [[0, 1, 2, 3, 4, 5]],
    ("b", "a"): [[0, 3, 1, 4, 2, 5]],
}


@pytest.mark.parametrize("axes", GROUPS, ids=str)
def test_axes_of_a_mesh(axes: Any) -> None:
    def function(x: Any) -> Any:
        return lax.all_gather(x, axes), lax.axis_index(axes), lax.psum(x, axes)

    x = np.float32(np.random.default_rng(3).normal(size=(6, 2)))
    plan = Plan(
        takes="x", mesh={"a": 2, "b": 3}, ranks=[[Run(function, f"x/{n}", "y")] for n in range(6)], returns="y@*"
    )
    gathered, index, total = plan(list(x))
    for group in GROUPS[axes]:
        for place, number in enumerate(group):
            np.testing.assert_array_equal(gathered[number], x[group])
            np.testing.assert_allclose(total[number], x[group].sum(0), rtol=1e-5)
            assert index[number] == place


def rank(n: int, reduce: Callable[..., Any] = lax.psum) -> Callable[..., Any]:
    """A rank of a matrix product by hand: it takes its own part of what is contracted."""

    @jax.jit
    def part(x: Any, w: Any) -> Any:
        return reduce(x[:, 2 * n : 2 * n + 2] @ w[2 * n : 2 * n + 2], "d")

    return part


def plan_of(*programs: Any) -> Plan:
    return Plan(
        takes=("x", "w"), mesh={"d": RANKS}, ranks=[[Run(each, ("x", "w"), "y")] for each in programs], returns="y@*"
    )


X, W = jax.ShapeDtypeStruct((3, 8), jnp.float32), jax.ShapeDtypeStruct((8, 5), jnp.float32)


ORDERS = {
    "one group comes later": "b a, b a, a b, a b",
    "a chain of ranks": "a b, b a, b a, b a",
    "two and two": "a b, b a, a b, b a",
}
"""Along which axis of two each rank meets others first: for each a way through."""


@pytest.mark.parametrize("name", ORDERS)
def test_ranks_meet_along_two_axes_in_orders_of_their_own(name: str) -> None:
    def meet(axis: str) -> Run:
        return Run(lambda x: lax.psum(x, axis), "x", axis)

    ranks = [[meet(axis) for axis in order.split()] for order in ORDERS[name].split(", ")]
    plan = Plan(takes="x", mesh={"a": 2, "b": 2}, ranks=ranks, returns=("a@*", "b@*"))
    assert check(lambda x: (2 * x, x + x), plan, jax.ShapeDtypeStruct((3,), jnp.float32)).verdict is Verdict.PROVED


def test_ranks_that_wait_in_a_ring_along_two_axes() -> None:
    def meet(axis: str) -> Run:
        return Run(lambda x: lax.psum(x, axis), "x", axis)

    ranks = [[meet(axis) for axis in order] for order in ("ab", "ba", "ba", "ab")]
    plan = Plan(takes="x", mesh={"a": 2, "b": 2}, ranks=ranks, returns=("a@*", "b@*"))
    with pytest.raises(InputError, match="ranks meet in different collectives: one is at psum over a"):
        jax.jit(plan)(jnp.ones(3))


@pytest.mark.parametrize("returns", ["y@1", "y@01"])
def test_the_rank_of_a_result_is_a_number(returns: str) -> None:
    plan = Plan(takes="x", ranks=[[], [Run(jnp.sin, "x", "y")]], returns=returns)
    np.testing.assert_allclose(jax.jit(plan)(jnp.ones(3)), np.sin(np.ones(3)), rtol=1e-6)


def test_ranks_written_by_hand() -> None:
    right = plan_of(*map(rank, range(RANKS)))
    assert check(jnp.matmul, right, X, W).verdict is Verdict.PROVED
    wrong = check(jnp.matmul, plan_of(*map(rank, (0, 1, 2, 2))), X, W, refute=False)
    assert wrong.verdict is Verdict.UNKNOWN


NEVER: dict[str, tuple[Plan, str]] = {
    "one is not there": (
        plan_of(*map(rank, range(3)), lambda x, w: x @ w),
        "the plan never ends: rank 0 waits in step 1 .psum over d in part, .*rank 3 has ended",
    ),
    "another collective": (
        plan_of(*map(rank, range(3)), rank(3, lax.pmax)),
        "ranks meet in different collectives: one is at psum over d in part",
    ),
    "other shapes": (
        plan_of(*map(rank, range(3)), rank(3, lambda y, d: lax.psum(y[:2], d))),
        r"with float32\(3, 5\), another at psum .* with float32\(2, 5\)",
    ),
    "an axis that is not there": (
        plan_of(*[rank(0, lambda y, d: lax.psum(y, "e"))] * 4),
        "unbound axis name: e.*; the plan's mesh has the axes d",
    ),
    "a cast": (
        plan_of(*[rank(0, lambda y, d: lax.psum(lax.pcast(y, d, to="varying"), d))] * 4),
        r"rank 0, step 1: .*lax\.pcast.*check_vma=False.*leave it out",
    ),
    "a cast in a loop": (
        plan_of(*[rank(0, lambda y, d: lax.fori_loop(0, 2, lambda _, z: lax.pcast(z, d, to="varying"), y))] * 4),
        r"lax\.pcast.*check_vma=False",
    ),
    "a cast to what is not closed": (
        plan_of(*[rank(0, lambda y, d: lax.pcast(y, d, to="unreduced"))] * 4),
        r"lax\.pcast.*check_vma=False",
    ),
    "no mesh": (
        Plan(takes=("x", "w"), ranks=[[Run(rank(0), ("x", "w"), "y")]], returns="y"),
        r"unbound axis name: d.*; the axes .*Plan\(\.\.\., mesh=",
    ),
    "two send to one": (
        plan_of(*[rank(0, lambda y, d: lax.ppermute(y, d, [(0, 1), (2, 1)]))] * 4),
        "sends twice to one rank, or from one",
    ),
    "in a loop": (
        plan_of(*[lambda x, w: lax.fori_loop(0, 2, lambda _, y: lax.psum(y, "d"), x @ w)] * 4),
        "ranks meet inside of scan",
    ),
}


@pytest.mark.parametrize("case", NEVER)
def test_ranks_that_do_not_meet(case: str) -> None:
    plan, message = NEVER[case]
    with pytest.raises(InputError, match=message):
        check(jnp.matmul, plan, X, W)


def test_a_program_that_meets_nobody_is_named_in_the_report() -> None:
    """The size of an axis is the number of ranks along it: a sum of one part is no sum of all."""

    def scaled(x: Any, by: Any) -> Any:
        return x * by * lax.psum(1, "d")

    def plan(by: float) -> Plan:
        steps = [[Run(scaled, ("x", by), "y")] for _ in range(RANKS)]
        return Plan(takes="x", mesh={"d": RANKS}, ranks=steps, returns="y@*")

    assert check(lambda x: x, plan(1 / RANKS), X).verdict is Verdict.PROVED
    wrong = check(lambda x: x, plan(1 / 2), X, refute=False)
    assert wrong.verdict is Verdict.UNKNOWN
    assert f"{Path(__file__).name}:{scaled.__code__.co_firstlineno + 1}" in str(wrong)
    assert "rank0/scaled" in str(wrong)
