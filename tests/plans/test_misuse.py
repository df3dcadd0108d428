"""What is given to a plan in the place of something else ends in one message, whichever parameter it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_verify import InputError, Plan, Verdict, check
from hlo_verify.diagnostics import Input
from hlo_verify.plans import Accumulate, Join, Receive, Run, Send

X = jax.ShapeDtypeStruct((4,), jnp.float32)


def double(x: Any) -> Any:
    return x + x


def layer(w: Any, x: Any) -> Any:
    return jnp.tanh(x @ w)


def mse(y: Any, target: Any) -> Any:
    return jnp.mean((y - target) ** 2)


def plan_of(**given: Any) -> Plan:
    return Plan(**{"takes": "x", "ranks": [[Run(double, "x", "a")]], "returns": "a", **given})


def pipeline(**given: Any) -> Plan:
    return Plan.pipeline(**{"stages": [layer], "microbatches": 2, "loss": mse, "accumulate": "mean", **given})


SAID: dict[str, tuple[Callable[[], Any], str]] = {
    "ranks: none": (lambda: plan_of(ranks=None), r"Plan\(ranks=None\).*a list of steps for each rank"),
    "ranks: a number": (lambda: plan_of(ranks=2), r"Plan\(ranks=2\).*a list of steps for each rank"),
    "ranks: a flat list": (
        lambda: plan_of(ranks=[Run(double, "x", "a")]),
        r"rank 0 is a Run, double\(x\) -> a.*a list of steps for each rank.*ranks=\[\[\.\.\.\]\]",
    ),
    "ranks: a table": (
        lambda: plan_of(ranks={0: [Run(double, "x", "a")]}),
        r"Plan\(ranks=\{0: \[a Run\]\}\).*a list of steps",
    ),
    "takes: a number": (lambda: plan_of(takes=3), r"Plan\(takes=3\).*names of the arguments"),
    "takes: numbers": (lambda: plan_of(takes=["x", 3]), r"Plan\(takes=.*3 is no name"),
    "takes: a set": (lambda: plan_of(takes={"x"}), "names of the arguments, in their order"),
    "returns: none": (lambda: plan_of(returns=None), r"Plan\(returns=None\).*None is no name"),
    "mesh: axes alone": (lambda: plan_of(mesh="m"), r"Plan\(mesh='m'\).*\{'model': 4\}"),
    "mesh: none": (lambda: plan_of(mesh=None), r"Plan\(mesh=None\).*\{'model': 4\}"),
    "mesh: of JAX": (lambda: plan_of(mesh=jax.make_mesh((1,), ("m",))), r"mesh=dict\(mesh\.shape\)"),
    "mesh: a size": (lambda: plan_of(mesh={"m": "1"}), r"Plan\(mesh=\{'m': '1'\}\)"),
    "mesh: sizes below zero": (lambda: plan_of(mesh={"m": -1, "n": -1}), r"Plan\(mesh=\{'m': -1, 'n': -1\}\)"),
    "buffered_sends: text": (lambda: plan_of(buffered_sends="no"), r"Plan\(buffered_sends='no'\).*True or False"),
    "schedule: a name": (lambda: plan_of(schedule="1f1b"), r"Plan\(schedule='1f1b'\).*Plan\.pipeline"),
    "Run: no function": (lambda: Run(None, "x", "a"), r"Run\(None, .*a function"),  # type: ignore[arg-type]
    "Run: what it returned": (lambda: Run(double(np.ones(2)), "x", "a"), "Run.an array, .*not what it returned"),
    "Run: takes a number": (lambda: Run(double, 3, "a"), r"Run\(double, 3, .*a name or a list of names and values"),  # type: ignore[arg-type]
    "Run: takes an array": (
        lambda: Run(double, np.ones(2), "a"),  # type: ignore[arg-type]
        r"Run\(double, an array, .*a name or a list of names and values",
    ),
    "Run: gives a number": (lambda: Run(double, "x", 3), r"Run\(double, 'x', 3\).*3 is no name"),  # type: ignore[arg-type]
    "Send: a rank in text": (lambda: Send("x", "1"), r"Send\('x', '1'\).*the number of a rank"),  # type: ignore[arg-type]
    "Send: a rank that is bool": (lambda: Send("x", True), r"Send\('x', True\).*the number of a rank"),
    "Send: several": (lambda: Send(("x", "y"), 1), r"Send\(\('x', 'y'\), 1\).*is no name"),  # type: ignore[arg-type]
    "Receive: a rank in text": (lambda: Receive("x", "1"), r"Receive\('x', '1'\).*the number of a rank"),  # type: ignore[arg-type]
    "Receive: like a shape": (lambda: Receive("x", 1, (4, 3)), r"like=.*jax\.ShapeDtypeStruct"),
    "Receive: like text": (lambda: Receive("x", 1, "float32"), r"like=.*jax\.ShapeDtypeStruct"),
    "Accumulate: one name": (lambda: Accumulate("sum", "gradients", "a"), "Accumulate.*a list of names"),  # type: ignore[arg-type]
    "Accumulate: nothing": (lambda: Accumulate("sum", [], "a"), r"Accumulate\('sum', \[\], 'a'\).*a list of names"),
    "Accumulate: how": (lambda: Accumulate(None, ["x"], "a"), "by 'sum' or by 'mean'"),  # type: ignore[arg-type]
    "Join: one name": (lambda: Join("xs", "a"), "Join.*a list of names"),  # type: ignore[arg-type]
    "Join: axis": (lambda: Join(["x"], "a", "0"), "Join.*axis.*a number"),  # type: ignore[arg-type]
    "pipeline: a function": (lambda: pipeline(stages=layer), r"stages=layer.*a list of functions"),
    "pipeline: no function": (lambda: pipeline(stages=[layer, None]), r"stages=.*None is no function"),
    "pipeline: microbatches": (lambda: pipeline(microbatches="2"), r"microbatches='2'"),
    "pipeline: no microbatches": (lambda: pipeline(microbatches=None), r"microbatches=None"),
    "pipeline: sizes": (lambda: pipeline(microbatches=[2, "2"]), r"microbatches=\[2, '2'\]"),
    "pipeline: loss": (lambda: pipeline(loss=3), r"loss=3.*a function"),
    "pipeline: update": (lambda: pipeline(update="adam"), r"update='adam'.*a function"),
    "pipeline: state": (lambda: pipeline(update=layer, state="adam"), r"state='adam'.*True or False"),
    "pipeline: buffered_sends": (lambda: pipeline(buffered_sends=2), r"buffered_sends=2.*True or False"),
    "pipeline: schedule": (lambda: pipeline(schedule=3), r"schedule=3.*hlo_verify\.schedules"),
    "pipeline: no such schedule": (lambda: pipeline(schedule="GPipe"), r"schedule='GPipe'.*gpipe, 1f1b, zb_h1"),
}


@pytest.mark.parametrize("case", SAID)
def test_what_was_given_is_said(case: str) -> None:
    made, message = SAID[case]
    with pytest.raises(InputError, match=message) as raised:
        made()
    assert raised.value.code is Input.PLAN
    assert len(str(raised.value)) < 500


ODD: list[Any] = [
    None, 3, -1, 2.5, 1j, "", "z", "x", b"x", True, [], (), {}, set(),
    {1, 2}, [None], [[None]], [[]], ["x"], [3], {"a": None},
    {"x": 1}, {3: "x"}, {"m": 1}, {"m": 2.0}, [[Send("x", 0)]], [[()]], [[[None]]],
    range(2), np.ones(2), np.int64(1), jnp.ones(()),
    X, np.float32, double, int, object, Run(double, "x", "a"), [Run(double, "x", "a")], Ellipsis, slice(2),
]  # fmt: skip
"""What people, and what nobody, would give."""


def alone(step: Any) -> Plan:
    return plan_of(ranks=[[step]])


def handed(*, send: Mapping[str, Any] = {}, receive: Mapping[str, Any] = {}) -> Plan:
    sends, receives = Send(**{"value": "b", "to": 1, **send}), Receive(**{"gives": "a", "source": 0, **receive})
    return plan_of(ranks=[[Run(double, "x", "b"), sends], [receives]])


PLACES: dict[str, Callable[[Any], Plan]] = {
    **{f"Plan.{key}": lambda odd, key=key: plan_of(**{key: odd}) for key in Plan.__dataclass_fields__},
    "Run.function": lambda odd: alone(Run(odd, "x", "a")),
    "Run.takes": lambda odd: alone(Run(double, odd, "a")),
    "Run.takes, one": lambda odd: alone(Run(double, [odd], "a")),
    "Run.gives": lambda odd: alone(Run(double, "x", odd)),
    "Send.value": lambda odd: handed(send={"value": odd}),
    "Send.to": lambda odd: handed(send={"to": odd}),
    "Receive.gives": lambda odd: handed(receive={"gives": odd}),
    "Receive.source": lambda odd: handed(receive={"source": odd}),
    "Receive.like": lambda odd: handed(receive={"like": odd}),
    "Accumulate.how": lambda odd: alone(Accumulate(odd, ["x"], "a")),
    "Accumulate.values": lambda odd: alone(Accumulate("sum", odd, "a")),
    "Accumulate.gives": lambda odd: alone(Accumulate("sum", ["x"], odd)),
    "Join.values": lambda odd: alone(Join(odd, "a")),
    "Join.gives": lambda odd: alone(Join(["x"], odd)),
    "Join.axis": lambda odd: alone(Join(["x"], "a", odd)),
    **{
        f"pipeline.{key}": lambda odd, key=key: pipeline(**{key: odd})
        for key in ("stages", "microbatches", "schedule", "loss", "accumulate", "update", "state", "buffered_sends")
    },
}


@pytest.mark.parametrize("place", PLACES)
def test_there_are_no_tracebacks(place: str) -> None:
    shapes = [jax.ShapeDtypeStruct((4, 4), jnp.float32)] * 3
    for odd in ODD:
        try:
            plan = PLACES[place](odd)
            str(plan), plan.summary
            given = [X] if plan.takes == ("x",) else [[shapes[0]], *shapes[1:]]
            jax.eval_shape(plan, *given)
        except InputError as error:
            assert str(error)
        except Exception as error:
            raise AssertionError(f"{place}: {odd!r}") from error


class Both(NamedTuple):
    one: Any
    two: Any


def test_results_in_a_named_tuple() -> None:
    plan = plan_of(returns=Both("a", "x"))
    assert check(lambda x: Both(2 * x, x), plan, X).verdict is Verdict.PROVED


def test_an_argument_and_a_part_are_sent() -> None:
    plan = plan_of(
        ranks=[[Send("x[0/2]", 1), Send("x", 1)], [Receive("half", 0), Receive("all", 0)]], returns=("half", "all")
    )
    half, whole = plan(np.float32([1, 2, 3, 4]))
    assert half.tolist() == [1, 2]
    assert whole.tolist() == [1, 2, 3, 4]


def test_results_of_several_shapes_are_not_those_of_every_rank() -> None:
    plan = plan_of(ranks=[[Run(double, f"x[0:{n}]", "a")] for n in (1, 2)], returns="a@*")
    with pytest.raises(InputError, match=r"the plan returns a@\*, .*float32\[1\].*float32\[2\]"):
        plan(np.ones(4, np.float32))


def test_what_is_no_array_is_not_received_as_one() -> None:
    plan = plan_of(ranks=[[Send("x", 1)], [Receive("a", 0, like=X)]])
    with pytest.raises(InputError, match=r"has to be float32\[4\], and what is sent .sends x to rank 1. is 'text'"):
        plan("text")


def test_no_parts() -> None:
    with pytest.raises(InputError, match="4 rows do not make 0 equal parts"):
        plan_of(ranks=[[Run(double, "x[0/0]", "a")]])(np.ones(4))


@pytest.mark.parametrize("key", ["numpy", "python"])
def test_numbers_of_numpy_are_numbers(key: str) -> None:
    of: Any = np.int64 if key == "numpy" else int
    plan = plan_of(mesh={"m": of(2)}, ranks=[[Run(double, "x", "b"), Send("b", of(1))], [Receive("a", of(0), like=X)]])
    assert check(double, plan, X).verdict is Verdict.PROVED
    assert len(pipeline(microbatches=of(2)).ranks) == 1


def test_a_plan_comes_second() -> None:
    plan = Plan.pipeline([lambda w, x: w * x], microbatches=1)
    for given in ((plan, lambda w, x: w * x), (plan,)):
        with pytest.raises(InputError, match=r"a plan comes second, .*check\(f, plan, ...\)"):
            check(*given, X, X)
