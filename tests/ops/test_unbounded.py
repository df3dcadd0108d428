"""Loops that go round until data say it is enough are matched where both modules go on under the same condition."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.prove.reports import LOOPS_END
from hlo_verify.report import Report
from tests.ops.test_matching import COLUMNS, ROWS, Function, regional, verdict
from tests.support.pairs import REPLICATED, module, on

State = tuple[jax.Array, jax.Array]


def total(x: jax.Array) -> jax.Array:
    return lax.psum(jnp.sum(x), "x")


def iterated(
    multiply: Function,
    norm: Function = jnp.sum,
    most: int | None = None,
    tolerance: float = 0.5,
    step: int = 1,
) -> Function:
    """Multiply until the rows are small, or at the most so often; give the rows and how often it was."""

    def function(h: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        def goes_on(state: State) -> Any:
            n, h = state
            large = norm(h * h) > tolerance
            return large if most is None else large & (n < most)

        def turn(state: State) -> State:
            n, h = state
            return n + step, jnp.tanh(multiply(h, w))

        n, last = lax.while_loop(goes_on, turn, (jnp.int32(0), h))
        return last, n

    return function


def by_columns(h: jax.Array, w: jax.Array) -> jax.Array:
    return lax.all_gather(h, "x", axis=1, tiled=True) @ w


SHAPES = (2, 8), (8, 8)
GIVEN, WANTED = (COLUMNS, COLUMNS), (COLUMNS, P())


def local(**asked: Any) -> Function:
    return regional(iterated(by_columns, **{"norm": total} | asked), GIVEN, WANTED)


@pytest.mark.parametrize("most", [None, 1000])
def test_columns(most: int | None) -> None:
    assert verdict(iterated(jnp.matmul, most=most), local(most=most), *SHAPES) is Verdict.PROVED


WRONG = {
    "each device ends by itself": {"norm": jnp.sum},
    "another tolerance": {"tolerance": 0.25},
    "another number of turns at the most": {"most": 999},
    "turns are counted twice": {"step": 2},
    "no end but by data": {"most": None},
    "the largest of the sums": {"norm": lambda x: lax.pmax(jnp.sum(x), "x")},
}


@pytest.mark.parametrize("name", WRONG)
def test_another_end(name: str) -> None:
    wrong = local(**{"most": 1000} | WRONG[name])
    assert verdict(iterated(jnp.matmul, most=1000), wrong, *SHAPES) is Verdict.UNKNOWN


def test_rows_end_apart_where_nothing_is_sent() -> None:
    """Each device goes on until its own rows are small: no loop over all rows does that."""

    def apart(h: jax.Array, w: jax.Array) -> jax.Array:
        return iterated(jnp.matmul)(h, w)[0]

    def until_the_first_are_small(h: jax.Array, w: jax.Array) -> jax.Array:
        return iterated(jnp.matmul, norm=lambda h: jnp.sum(h[:2]))(h, w)[0]

    given = (ROWS, P())
    for reference in (apart, until_the_first_are_small):
        assert verdict(reference, regional(apart, given, ROWS), (8, 4), (4, 4)) is Verdict.UNKNOWN
    each = regional(apart, given, ROWS)
    assert verdict(each, each, (8, 4), (4, 4)) is Verdict.PROVED


def test_what_devices_go_on_by_differs() -> None:
    """Copies that start the same are different once one device goes on."""

    def copies(is_same: bool) -> Function:
        def region(h: jax.Array, w: jax.Array) -> jax.Array:
            tolerance = 0.5 if is_same else 0.5 * (1 + lax.axis_index("x"))
            small = lax.while_loop(lambda h: jnp.sum(h * h) > tolerance, lambda h: jnp.tanh(h @ w), h)
            return lax.psum(small, "x") / 4

        return regional(region, (P(), P()), P())

    def reference(h: jax.Array, w: jax.Array) -> jax.Array:
        return lax.while_loop(lambda h: jnp.sum(h * h) > 0.5, lambda h: jnp.tanh(h @ w), h)

    shapes = (2, 4), (4, 4)
    assert verdict(reference, copies(True), *shapes) is Verdict.PROVED
    assert verdict(copies(True), copies(False), *shapes) is Verdict.UNKNOWN
    assert verdict(copies(False), reference, *shapes) is Verdict.UNKNOWN
    assert verdict(reference, copies(False), *shapes) is Verdict.UNKNOWN


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_what_is_counted_in_another_type(dtype: str) -> None:
    """A counter of 8 bits never reaches 200: neither loop may be taken for the other."""

    def counted(dtype: str) -> Function:
        def function(x: jax.Array) -> jax.Array:
            start = jnp.zeros((), dtype), x
            return lax.while_loop(lambda c: jnp.sum(c[1]) < 10, lambda c: (c[0] + 1, c[1] + c[0] + 1), start)[1]

        return function

    pair = counted("int32"), regional(counted(dtype), P(), P())
    assert verdict(*pair, (4,)) is (Verdict.PROVED if dtype == "int32" else Verdict.UNKNOWN)


TYPE = "tensor<4xi32>"


def _loop(condition: str, step: int = 1, dtype: str = "i8", line: str = "") -> str:
    """A loop of which nothing is used, that goes on under a condition."""
    return f"""
    %zero{line} = stablehlo.constant dense<0> : tensor<{dtype}>
    %w{line}:2 = stablehlo.while(%i = %zero{line}, %z = %a) : tensor<{dtype}>, {TYPE}
    cond {{
      {condition}
      stablehlo.return %p : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<{step}> : tensor<{dtype}>
      %j = stablehlo.add %i, %one : tensor<{dtype}>
      %s = stablehlo.add %z, %a : {TYPE}
      %z1 = stablehlo.popcnt %s : {TYPE}
      stablehlo.return %j, %z1 : tensor<{dtype}>, {TYPE}
    }} loc("model.py":7:1)"""


def _until(most: int, direction: str = "LT", dtype: str = "i8") -> str:
    return f"""%n = stablehlo.constant dense<{most}> : tensor<{dtype}>
      %p = stablehlo.compare {direction}, %i, %n : (tensor<{dtype}>, tensor<{dtype}>) -> tensor<i1>"""


OF_DATA = f"""%first = stablehlo.slice %z [0:1] : ({TYPE}) -> tensor<1xi32>
      %value = stablehlo.reshape %first : (tensor<1xi32>) -> tensor<i32>
      %five = stablehlo.constant dense<5> : tensor<i32>
      %p = stablehlo.compare LT, %value, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>"""
FOR_EVER = "%p = stablehlo.constant dense<true> : tensor<i1>"
PLAIN = f"\n    %y = stablehlo.negate %a : {TYPE}\n    return %y : {TYPE}"


def _report(logical: str, partitioned: str) -> Report:
    where = f"{TYPE} {on(REPLICATED)}"
    whole, local = (
        module(f"%a: {where}", where, logical, devices=2),
        module(f"%a: {TYPE}", TYPE, partitioned, devices=2),
    )
    return hlo_verify.verify(whole, local, refute=False)


@pytest.mark.parametrize(
    ("loop", "is_assumed"),
    [
        pytest.param(_loop(_until(100)), False, id="so many turns"),
        pytest.param(_loop(_until(1000, dtype="i32"), dtype="i32"), False, id="more turns than are written out"),
        pytest.param(_loop(OF_DATA), True, id="data"),
        pytest.param(_loop(_until(126, "LE"), step=3), True, id="a counter that overflows"),
        pytest.param(
            _loop(_until(1000, dtype="i32"), dtype="i32", line="1") + _loop(OF_DATA, line="2"),
            True,
            id="two loops of one line",
        ),
    ],
)
def test_that_a_loop_ends_on_which_nothing_hangs_is_an_assumption(loop: str, is_assumed: bool) -> None:
    report = _report(PLAIN, loop + PLAIN)
    assert report.verdict is Verdict.PROVED
    assert (LOOPS_END in report.assumptions) == is_assumed


def test_a_loop_that_both_modules_have_ends_in_both_or_in_neither() -> None:
    both = _loop(OF_DATA) + f"\n    return %w#1 : {TYPE}"
    report = _report(both, both)
    assert report.verdict is Verdict.PROVED and LOOPS_END not in report.assumptions


@pytest.mark.parametrize("condition", [FOR_EVER, _until(127, "LE")])
def test_what_never_ends_gives_no_result(condition: str) -> None:
    (result,) = _report(PLAIN, _loop(condition) + PLAIN).results
    assert result.verdict is Verdict.UNKNOWN
    assert "may hang at while: a loop that never ends" in result.reason
