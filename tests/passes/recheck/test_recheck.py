# ruff: noqa: E501 (modules as MLIR prints them)
"""The re-check agrees with sound proofs, and finds what is wrong with a prover that has a mistake."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from hlo_verify.index import expr
from hlo_verify.limits import Limits
from hlo_verify.ops import RULES
from hlo_verify.ops import collectives as collective_rules
from hlo_verify.ops.values import Context, Value
from hlo_verify.passes.load.load import load
from hlo_verify.passes.recheck.answer import Finding, Task, answer
from hlo_verify.passes.recheck.questions import Nesting, question
from hlo_verify.passes.recheck.recheck import recheck, recheck_with, record
from hlo_verify.passes.recheck.shape_reduction import requirements
from hlo_verify.report import Recheck
from hlo_verify.session import Session
from hlo_verify.terms import algebra, extrema, guards, laws
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.term import Poly
from tests.support.optimizer import assert_smallest
from tests.support.pairs import on

DEVICES = "mhlo.num_partitions = {n} : i32, mhlo.num_replicas = 1 : i32"


def _module(signature: str, body: str, n: int) -> str:
    attributes = DEVICES.format(n=n)
    return f"module @m attributes {{{attributes}}} {{\n  func.func public @main{signature} {{\n{body}\n  }}\n}}\n"


NORMALISED = """
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %m = stablehlo.reduce(%y init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<64xf32>
    %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x32xf32>
    %c = stablehlo.subtract %y, %mb : tensor<64x32xf32>
    %e = stablehlo.exponential %c : tensor<64x32xf32>
    %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<64xf32>
    %p = stablehlo.pad %y, %zero, low = [1, 0], high = [1, 0], interior = [0, 0] : (tensor<64x32xf32>, tensor<f32>) -> tensor<66x32xf32>"""
"""What every device does as one alone would."""

RETURN = "return %y, %s, %p, %t : tensor<64x32xf32>, tensor<64xf32>, tensor<66x32xf32>"

LOGICAL = _module(
    f"""(%x: tensor<64x128xf32> {on("{devices=[1,4]<=[4]}")}, %w: tensor<128x32xf32> {on("{devices=[4,1]<=[4]}")})
      -> (tensor<64x32xf32> {on("{replicated}")}, tensor<64xf32> {on("{replicated}")},
          tensor<66x32xf32> {on("{replicated}")}, tensor<128x64xf32> {on("{devices=[4,1]<=[4]}")})""",
    f"""
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x32xf32>) -> tensor<64x32xf32>
    {NORMALISED}
    %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x128xf32>) -> tensor<128x64xf32>
    {RETURN}, tensor<128x64xf32>""",
    4,
)
PARTITIONED = _module(
    "(%x: tensor<64x32xf32>, %w: tensor<32x32xf32>) -> "
    "(tensor<64x32xf32>, tensor<64xf32>, tensor<66x32xf32>, tensor<32x64xf32>)",
    f"""
    %part = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
    %y = "stablehlo.all_reduce"(%part) ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %sum = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }}) {{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}} : (tensor<64x32xf32>) -> tensor<64x32xf32>
    {NORMALISED}
    %all = "stablehlo.all_gather"(%x) {{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, use_global_device_ids}} : (tensor<64x32xf32>) -> tensor<64x128xf32>
    %id = stablehlo.partition_id : tensor<ui32>
    %d = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %n = stablehlo.constant dense<32> : tensor<i32>
    %at = stablehlo.multiply %d, %n : tensor<i32>
    %o = stablehlo.constant dense<0> : tensor<i32>
    %mine = stablehlo.dynamic_slice %all, %o, %at, sizes = [64, 32] : (tensor<64x128xf32>, tensor<i32>, tensor<i32>) -> tensor<64x32xf32>
    %t = stablehlo.transpose %mine, dims = [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
    {RETURN}, tensor<32x64xf32>""",
    4,
)


def _inline(tasks: Sequence[Task]) -> Iterator[tuple[int, Finding]]:
    for n, task in enumerate(tasks):
        yield n, answer(task)


def _checked() -> Recheck:
    return recheck_with(_inline, load(LOGICAL), load(PARTITIONED), 5000)


def test_agrees_with_a_sound_prover() -> None:
    found = _checked()
    assert (found.disagreements, found.unchecked) == ((), ())
    assert found.agreed + found.partly == found.steps > 30
    assert found.agreed > found.steps / 2
    assert found.by_solver > 0


MASKED = """
    %zeros = stablehlo.constant dense<0.0> : tensor<8x8xf32>
    %i = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %j = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %causal = stablehlo.compare LE, %j, %i : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %weights = stablehlo.select %causal, %x, %zeros : tensor<8x8xi1>, tensor<8x8xf32>
    %log = stablehlo.log %w : tensor<8xCxf32>
    %y = stablehlo.dot_general %weights, %log, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8xCxf32>) -> tensor<8xCxf32>
    return %y : tensor<8xCxf32>"""


def test_zero_times_what_may_be_no_number_is_0() -> None:
    """A claim says what numbers give; where something is none, the prover's term has more than what is computed."""
    columns = on("{devices=[1,4]<=[4]}")
    signature = (
        f"(%x: tensor<8x8xf32> {on('{replicated}')}, %w: tensor<8x12xf32> {columns}) -> (tensor<8x12xf32> {columns})"
    )
    whole = _module(signature, MASKED.replace("C", "12"), 4)
    local = _module("(%x: tensor<8x8xf32>, %w: tensor<8x3xf32>) -> tensor<8x3xf32>", MASKED.replace("C", "3"), 4)
    found = recheck_with(_inline, load(whole), load(local), 5000)
    assert (found.disagreements, found.unchecked) == ((), ())
    assert found.steps > 0


def _checked_within(**limits: int) -> Recheck:
    return recheck_with(_inline, load(LOGICAL), load(PARTITIONED), 5000, session=Session(Limits(**limits)))


@pytest.mark.parametrize("name", ["recheck_element_steps", "recheck_elements"])
def test_a_step_agrees_if_all_of_its_elements_do(name: str) -> None:
    whole, found = _checked(), _checked_within(**{name: 1})
    assert found.agreed < whole.agreed
    assert found.agreed + found.partly == whole.agreed + whole.partly
    assert name in found.limits


@pytest.mark.parametrize("name", ["recheck_steps", "recheck_nodes", "recheck_openings", "recheck_rounds"])
def test_a_limit_leaves_steps_unchecked_and_is_said(name: str) -> None:
    """It neither agrees nor disagrees."""
    found = _checked_within(**{name: 1})
    assert name not in _checked().limits and name in found.limits
    assert found.unchecked and all(": more than 1 " in reason for reason, _ in found.unchecked)
    assert not found.disagreements
    assert found.agreed + found.partly + sum(count for _, count in found.unchecked) == found.steps


@pytest.mark.parametrize("name", ["recheck_products", "recheck_sum_products", "recheck_compared_products"])
def test_what_is_not_multiplied_out_is_no_disagreement(name: str) -> None:
    assert not _checked_within(**{name: 1}).disagreements


def test_workers_have_the_limits_of_the_session() -> None:
    found = recheck(load(LOGICAL), load(PARTITIONED), limits=Limits(recheck_nodes=1))
    assert "recheck_nodes" in found.limits and found.agreed < _checked().agreed


def test_no_instance_of_a_proof_is_smaller() -> None:
    nesting = Nesting()
    claims = record(load(LOGICAL), load(PARTITIONED), Session()).claims
    for claim in claims:
        assert_smallest(requirements(question(claim, nesting).sides))


def _twice(op: Any, args: list[Value], context: Context) -> list[Value]:
    (value,) = ORIGINAL["dot_general"](op, args, context)
    return [Value(value.type, algebra.scale(value.term, 2))]


ORIGINAL = dict(RULES)


def _exp_of_sum(args: tuple[Poly, ...]) -> Poly | None:
    """exp(a + b) = exp(a) + exp(b)"""
    (p,) = args
    if len(p.items) < 2:
        return None
    parts = [algebra.build({mono: c}) for mono, c in p.items]
    return algebra.add(*(laws.apply(EXPONENTIAL, (part,)) for part in parts))


def _dropped(op: Any, args: list[Value], context: Context) -> list[Value]:
    """No communication at all."""
    return list(args)


def _no_guard(inside: Poly, a: Poly, b: Poly) -> Poly:
    return a


FLOOR_DIVMOD = expr.floor_divmod


def _off_by_one(e: expr.Index, m: int) -> tuple[expr.Index, expr.Index]:
    quotient, remainder = FLOOR_DIVMOD(e, m)
    return (expr.shift(quotient, 1), remainder) if quotient.items else (quotient, remainder)


def _wide_guard(form: expr.Index, lo: int | None, hi: int | None) -> Poly:
    return INTERVAL(form, lo, None if hi is None else hi + 1)


INTERVAL = guards.interval
EXTREMUM = extrema.reduce_extremum


def _least_for_greatest(kind: str, bound: Sequence[Any], p: Poly) -> Poly:
    return EXTREMUM("min", bound, p)


def _transposed_not(op: Any, args: list[Value], context: Context) -> list[Value]:
    (kind,) = op.types
    where = [expr.of_var(expr.var("p", k, n)) for k, n in enumerate(kind.shape)]
    return [Value(kind, args[0].at([expr.constant(0), where[0]]))]


Seed = Callable[[pytest.MonkeyPatch], None]

SEEDS: dict[str, tuple[Seed, str]] = {
    "dot_general twice": (lambda patch: patch.setitem(RULES, "dot_general", _twice), "dot_general"),
    "exp of a sum": (lambda patch: patch.setitem(laws.LAWS, EXPONENTIAL, [_exp_of_sum]), "exponential"),
    "all_reduce dropped": (lambda patch: patch.setitem(RULES, "all_reduce", _dropped), "all_reduce"),
    "pad without guards": (
        lambda patch: patch.setattr("hlo_verify.ops.movement.guarded_select", _no_guard),
        "pad",
    ),
    "floor_divmod off by one": (
        lambda patch: patch.setattr(
            "hlo_verify.ops.collectives.expr", SimpleNamespace(**{**vars(expr), "floor_divmod": _off_by_one})
        ),
        "all_gather",
    ),
    "guard one too wide": (lambda patch: patch.setattr(guards, "interval", _wide_guard), "pad"),
    "least for greatest": (lambda patch: patch.setattr(extrema, "reduce_extremum", _least_for_greatest), "reduce"),
    "transpose reads one row": (lambda patch: patch.setitem(RULES, "transpose", _transposed_not), "transpose"),
    "groups of one": (
        lambda patch: patch.setattr(
            collective_rules, "reduce_over_group", lambda kind, term, dtype, groups, device: term
        ),
        "all_reduce",
    ),
}


@pytest.mark.drawn(5)
@pytest.mark.parametrize("name", SEEDS)
def test_finds_a_mistake_of_the_prover(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, operation = SEEDS[name]
    logical, partitioned = load(LOGICAL), load(PARTITIONED)
    seed(monkeypatch)
    found = recheck_with(_inline, logical, partitioned, 300)
    wrong = {disagreement.operation for disagreement in found.disagreements}
    assert operation in wrong, (wrong, found.unchecked)


def test_does_not_depend_on_the_number_of_jobs() -> None:
    here = _checked()
    found = recheck(load(LOGICAL), load(PARTITIONED), jobs=2, seconds=20, memory=2 << 30)
    assert (found.steps, found.questions, found.agreed, found.by_solver) == (
        here.steps,
        here.questions,
        here.agreed,
        here.by_solver,
    )
    assert (found.unchecked, found.disagreements) == (here.unchecked, here.disagreements)


def test_an_interrupt_gives_what_is_known() -> None:
    def interrupted(tasks: Sequence[Task]) -> Iterator[tuple[int, Finding]]:
        for n, task in enumerate(tasks):
            if n == 5:
                raise KeyboardInterrupt
            yield n, answer(task)

    found = recheck_with(interrupted, load(LOGICAL), load(PARTITIONED), 5000)
    assert found.ended == "interrupted"
    assert 5 <= found.agreed < found.steps
    assert found.agreed + found.partly + sum(n for _, n in found.unchecked) == found.steps


@pytest.mark.parametrize("checks", [0, 20, 45])
def test_time_that_is_up_leaves_what_is_known(checks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = itertools.count()
    monkeypatch.setattr(Session, "is_over", property(lambda _: next(counter) > checks))
    found = _checked()
    assert found.ended == "the time was up"
    assert found.agreed < 30 and not found.disagreements  # there are more (`test_agrees_with_a_sound_prover`)
    assert found.agreed + found.partly + sum(n for _, n in found.unchecked) == found.steps


@pytest.mark.parametrize("where", ["record", "question"])
def test_an_interrupt_before_any_answer(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"hlo_verify.passes.recheck.recheck.{where}", interrupted)
    found = _checked()
    assert found.ended == "interrupted"
    assert (found.agreed, sum(n for _, n in found.unchecked)) == (0, found.steps)
    assert (found.steps > 30) == (where == "question")
