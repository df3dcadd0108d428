"""Plans: several programs that compute one function, and wrong ones, which are refused or refuted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_verify import InputError, Plan, Verdict, check
from hlo_verify.diagnostics import Input
from hlo_verify.plans import Accumulate, Join, Receive, Run, Send

F32 = jnp.float32
X, W = jax.ShapeDtypeStruct((4, 3), F32), jax.ShapeDtypeStruct((3, 3), F32)


def layer(w: Any, x: Any) -> Any:
    return jnp.tanh(x @ w)


def both(params: Any, x: Any) -> Any:
    return layer(params[1], layer(params[0], x))


def two(
    first: str = "params/0", second: str = "params/1", sent: str = "h", rows: tuple[str, str] = ("[0/2]", "[1/2]")
) -> Plan:
    """Two stages, two microbatches, with some names that may be wrong."""
    return Plan(
        takes=("params", "x"),
        ranks=[
            [
                Run(layer, (first, f"x{rows[0]}"), "h"),
                Run(layer, (first, f"x{rows[1]}"), "k"),
                (Send(sent, 1), Send("k" if sent == "h" else "h", 1)),
            ],
            [
                (Receive("h", 0), Receive("k", 0)),
                Run(layer, (second, "h"), "a"),
                Run(layer, [second, "k"], "b"),
                Join(["a", "b"], "y"),
            ],
        ],
        returns="y",
    )


def test_stages_with_microbatches_are_proved_and_run() -> None:
    plan = two()
    report = check(both, plan, [W, W], X)
    assert report.verdict is Verdict.PROVED
    assert "Compared: the reference with a plan of 2 ranks, 4 programs, 2 transfers" in str(report)
    assert "inferred" not in str(report)
    draw = np.random.default_rng(0)
    params, x = [np.float32(draw.normal(size=(3, 3))) for _ in range(2)], np.float32(draw.normal(size=(4, 3)))
    np.testing.assert_allclose(plan(params, x=x), both(params, x), rtol=1e-6)
    assert "rank 1\n  1   receives h from rank 0 and receives k from rank 0\n" in str(plan)


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(two(sent="k"), id="microbatches exchanged"),
        pytest.param(two(second="params/0"), id="weights of another stage"),
        pytest.param(two(rows=("[0/2]", "[0/2]")), id="one microbatch twice"),
        pytest.param(two(rows=("[0:1]", "[1:3]")), id="a row left out"),
    ],
)
def test_wrong_plans_are_no_proof(plan: Plan) -> None:
    draw = np.random.default_rng(0)
    params, x = [np.float32(draw.normal(size=(3, 3))) for _ in range(2)], np.float32(draw.normal(size=(4, 3)))
    found, expected = jax.jit(plan)(params, x), both(params, x)
    assert found.shape != expected.shape or not np.allclose(found, expected)
    try:
        assert check(both, plan, [W, W], X, refute=False).verdict is Verdict.UNKNOWN
    except InputError as error:
        assert error.code is Input.NOT_ALIKE


def test_a_wrong_plan_is_reported_at_a_line_of_the_user() -> None:
    def wrong(x: Any) -> Any:
        return x * 3

    report = check(double, Plan(takes="x", ranks=[[Run(wrong, "x", "a")]], returns="a"), X, refute=False)
    assert report.verdict is Verdict.UNKNOWN
    assert report.results[0].location is not None
    assert str(report.results[0].location).endswith(f"test_plan.py:{wrong.__code__.co_firstlineno + 1}")
    assert "rank0/wrong" in str(report)


def double(x: Any) -> Any:
    return x + x


ONE = (Run(double, "x", "a"),)

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no steps": ({"ranks": []}, "the plan has no steps"),
    "a name that is not there": ({"ranks": [[Run(double, "z", "a")]]}, "nobody makes z, and it is no argument"),
    "made later": ({"ranks": [[Run(double, "b", "a"), Run(double, "x", "b")]]}, "b is made by step 2 only"),
    "made twice": ({"ranks": [[*ONE, *ONE]]}, "a is made there already by step 1"),
    "made twice on two ranks": ({"ranks": [ONE, ONE]}, "is made on ranks 0, 1: a@0 is that of one"),
    "an argument made": ({"ranks": [[Run(double, "x", "x")]]}, "x is an argument of the plan"),
    "on another rank": ({"ranks": [ONE, [Run(double, "a", "b")]], "returns": "b"}, "rank 0 has a and rank 1 has not"),
    "not taken": ({"ranks": [[*ONE, Run(double, "x", "b")]]}, "nobody takes b"),
    "not accumulated": (
        {
            "ranks": [[*(Run(double, f"x[{n}/2]", f"g{n}") for n in range(2)), Accumulate("sum", ["g0"], "a")]],
        },
        "nobody takes g1",
    ),
    "not received": ({"ranks": [[*ONE, Send("a", 1)], [Run(double, "x", "b")]]}, "sends a to rank 1, and nobody rece"),
    "not sent": ({"ranks": [ONE, [Receive("b", 0)]]}, "receives b from rank 0, and nobody sends it"),
    "no such rank": ({"ranks": [[*ONE, Send("a", 3)]]}, "the ranks are 0 to 0"),
    "to itself": ({"ranks": [[*ONE, Send("a", 0)]]}, "that is itself"),
    "not on all ranks": ({"ranks": [ONE, [Run(double, "x", "b")]], "returns": "a@*"}, "rank 1 makes no a"),
    "another mesh": ({"ranks": [ONE], "mesh": {"d": 2}}, "is of 2 ranks, and the plan has 1"),
    "no step": ({"ranks": [[double]]}, "is no step"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_together_is_refused(case: str) -> None:
    given, message = REFUSED[case]
    with pytest.raises(InputError, match=message) as raised:
        Plan(**{"takes": ("x",), "returns": "a", **given})
    assert raised.value.code is Input.PLAN


def exchange(like: Any = X, **options: Any) -> Plan:
    def steps(rank: int) -> list[Any]:
        return [Run(lambda x: x + rank, "x", "a"), Send("a", 1 - rank), Receive("b", 1 - rank, like=like)]

    return Plan(takes="x", ranks=[steps(0), steps(1)], returns=("b@0", "b@1"), **options)


CARRIED: dict[str, tuple[Any, str]] = {
    "sends that wait": (
        lambda: exchange()(np.ones((4, 3))),
        "rank 1 waits in step 2 .sends a to rank 0.; a send waits",
    ),
    "another type": (
        lambda: exchange(buffered_sends=True, like=W)(np.ones((4, 3), np.float32)),
        r"has to be float32\[3,3\], and what is sent .sends a to rank 1. is float32\[4,3\]",
    ),
    "unequal parts": (lambda: two()([np.ones((3, 3))] * 2, np.ones((5, 3))), "5 rows do not make 2 equal parts"),
    "rows that are not there": (lambda: two(rows=("[0:2]", "[2:9]"))([np.ones((3, 3))] * 2, np.ones((4, 3))), "4 rows"),
    "no such part": (lambda: two(second="params/2")([np.ones((3, 3))] * 2, np.ones((4, 3))), "there is no 2 in it"),
    "an error of a program": (
        lambda: two()([np.ones((3, 3)), np.ones((2, 2))], np.ones((4, 3))),
        "rank 1, step 2: lay",
    ),
    "arguments": (lambda: two()(np.ones((4, 3))), "the plan takes params, x, and was given 1 by position"),
    "parts of what is returned": (
        lambda: Plan(takes="x", ranks=[[Run(double, "x", ("a", "b"))]], returns=("a", "b"))(np.ones(2)),
        "names are given to 2",
    ),
    "values that do not go together": (
        lambda: Plan(
            takes="x",
            ranks=[[Run(double, "x[0:1]", "b"), Run(double, "x[1:3]", "c"), Accumulate("sum", ["b", "c"], "a")]],
            returns="a",
        )(np.ones(3)),
        "they do not go together",
    ),
}


@pytest.mark.parametrize("case", CARRIED)
def test_what_cannot_be_carried_out_is_said(case: str) -> None:
    carried, message = CARRIED[case]
    with pytest.raises(InputError, match=message) as raised:
        carried()
    assert raised.value.code is Input.PLAN


def test_what_is_posted_at_once_does_not_wait() -> None:
    assert [np.max(value) for value in exchange(buffered_sends=True)(np.ones((4, 3), np.float32))] == [2, 1]


def test_parts_of_what_a_program_returns_have_names() -> None:
    def taken(x: Any) -> Any:
        return {"sum": x.sum(), "rest": (x, 2 * x)}

    plan = Plan(
        takes="x",
        ranks=[
            [Run(taken, "x", {"sum": "s", "rest": ("_", "d")}), Run(lambda s, d, k: k * s + d, ("s", "d", 3.0), "y")]
        ],
        returns={"y": "y", "x": "x"},
    )
    report = check(lambda x: {"y": 3 * x.sum() + 2 * x, "x": x}, plan, X)
    assert report.verdict is Verdict.PROVED


def test_a_reference_that_was_lowered_has_no_copies() -> None:
    plan = Plan(takes="x", ranks=[ONE, ONE], returns="a@*")
    with pytest.raises(InputError, match="pass the reference as a function"):
        check(jax.jit(double).lower(X), plan, X)
    assert check(double, plan, X).verdict is Verdict.PROVED


@pytest.mark.parametrize("is_printed", [False, True])
def test_what_a_program_prints_is_no_sharding(is_printed: bool) -> None:
    """JAX says of a call back to Python on which device it is made."""

    def printed(x: Any) -> Any:
        jax.debug.print("{}", x[0, 0])
        return x * 2

    def twice(x: Any) -> Any:
        return x * 2

    plan = Plan(takes=("x",), ranks=[[Run(printed if is_printed else twice, ("x",), "y")]], returns="y")
    assert check(twice, plan, X).verdict is (Verdict.UNKNOWN if is_printed else Verdict.PROVED)


def test_the_program_of_the_usage_page_runs() -> None:
    page = (Path(__file__).parents[2] / "docs/usage.md").read_text()
    (program,) = (text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "Plan(" in text)
    exec(program, {})
