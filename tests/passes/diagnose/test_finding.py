"""The report about a wrong module names the line at fault, and says what differs.

Every case is a logical module beside what four devices run instead. `@N` at the end of a line says that the operation
is of line N of the user's `model.py`; an operation with no such mark was put in by the partitioner.
"""

from __future__ import annotations

import pytest

from hlo_verify.diagnostics import Mismatch, Solver
from tests.support.wrong_modules import (
    ALL,
    COLUMNS,
    COPY,
    DOT,
    FROM_ZERO,
    HALVES,
    KEPT,
    S88,
    S216,
    S816,
    SENT,
    SMOOTHED,
    SQUARE,
    VWHOLE,
    Case,
    V,
    W,
    X,
    collective,
    counted,
    dot,
    findings,
    from_device,
    masked,
    rows,
    scaled,
    summed,
    times,
)

CASES = {
    "an all-reduce is missing": Case(
        [X, W], [SQUARE], DOT, dot(COPY), 3, "dot_general (model.py:3): the sum over d (4 devices) is missing"
    ),
    "an all-reduce over some devices": Case(
        [X, W],
        [SQUARE],
        DOT,
        dot(collective("all_reduce", "1", "%0", S88, HALVES, 3)),
        3,
        "dot_general (model.py:3): the sum over d div 2 (2 devices) is missing",
    ),
    "an all-reduce twice": Case(
        [X, W],
        [SQUARE],
        DOT,
        dot(collective("all_reduce", "s", "%0", S88, ALL, 3) + "\n" + collective("all_reduce", "1", "%s", S88, ALL, 3)),
        3,
        "dot_general (model.py:3): the factor is 4 where 1 is expected",
    ),
    "the maximum instead of the sum": Case(
        [X, W], [SQUARE], DOT, dot(collective("all_reduce", "1", "%0", S88, ALL, 3, "maximum")), 3, "is missing"
    ),
    "a scale is missing": Case(
        [V],
        [V],
        scaled(S816, times(0.25, S816)),
        scaled(S216, f"%1 = stablehlo.reshape %0 : ({S216}) -> {S216}"),
        5,
        "multiply (model.py:5) is missing",
    ),
    "a scale of an argument is missing": Case(
        [V],
        [V],
        f"%c = stablehlo.constant dense<3.0> : {S816}\n%0 = stablehlo.multiply %a0, %c : {S816} @4\n"
        f"%1 = stablehlo.tanh %0 : {S816} @6\nreturn %1 : {S816}",
        f"%1 = stablehlo.tanh %a0 : {S216} @6\nreturn %1 : {S216}",
        4,
        "multiply (model.py:4) is missing; the factor is 1 where 3 is expected",
    ),
    "the last operation is missing": Case(
        [V],
        [V],
        scaled(S816, times(0.25, S816)),
        scaled(S216, times(0.25, S216)).replace("return %2", "return %1"),
        6,
        "tanh (model.py:6) is missing",
    ),
    "another scale": Case(
        [V],
        [V],
        scaled(S816, times(0.25, S816)),
        scaled(S216, times(0.5, S216)),
        5,
        "multiply (model.py:5): the factor is 1/2 where 1/4 is expected",
    ),
    "another function": Case(
        [V],
        [V],
        scaled(S816, f"%1 = stablehlo.sine %0 : {S816} @5"),
        scaled(S216, f"%1 = stablehlo.cosine %0 : {S216} @5"),
        5,
        "sine (model.py:5): the function is cosine where sine is expected",
    ),
    "operands exchanged": Case(
        [V],
        [V],
        scaled(S816, f"%1 = stablehlo.subtract %0, %a0 : {S816} @5"),
        scaled(S216, f"%1 = stablehlo.subtract %a0, %0 : {S216} @5"),
        5,
        "subtract (model.py:5): the factor is -1 where 1 is expected",
    ),
    "a summand is gone, and the rest is something else": Case(
        [V, V],
        [V],
        summed(S816, "%a1"),
        summed(S216, "%z"),
        5,
        "a constant where negate (model.py:5) is expected",
    ),
    "another device's row is kept": Case(
        [V],
        [("tensor<1x16xf32>", "tensor<1x16xf32>", "{replicated}")],
        f"%1 = stablehlo.slice %a0 [0:1, 0:16] : ({S816}) -> tensor<1x16xf32> @5\n"
        "%2 = stablehlo.tanh %1 : tensor<1x16xf32> @7\nreturn %2 : tensor<1x16xf32>",
        f"%1 = stablehlo.slice %a0 [0:1, 0:16] : ({S216}) -> tensor<1x16xf32> @5\n" + KEPT,
        6,
        "",
    ),
    "the next device's rows": Case(
        [VWHOLE],
        [V],
        f"%1 = stablehlo.tanh %a0 : {S816} @5\nreturn %1 : {S816}",
        rows("2, 4, 6, 0"),
        3,
        "where 2*d is expected",
    ),
    "rows that overlap": Case(
        [VWHOLE],
        [V],
        f"%1 = stablehlo.tanh %a0 : {S816} @5\nreturn %1 : {S816}",
        rows("0, 1, 2, 3"),
        5,
        "tanh (model.py:5): arg0: offset d where 2*d is expected",
    ),
    "another row of a table in a loop": Case(
        [("tensor<6x16xf32>", "tensor<6x4xf32>", COLUMNS)],
        [("tensor<16xf32>", "tensor<4xf32>", "{devices=[4]<=[4]}")],
        counted(16, "%i"),
        counted(4, "%z"),
        8,
        "dynamic_slice (model.py:8): arg0: offset 0 where t is expected",
    ),
    "a loop that stops early": Case(
        [("tensor<6x16xf32>", "tensor<6x4xf32>", COLUMNS)],
        [("tensor<16xf32>", "tensor<4xf32>", "{devices=[4]<=[4]}")],
        counted(16, "%i"),
        counted(4, "%i").replace("dense<6>", "dense<5>"),
        7,
        "5 iterations where 6 are expected",
    ),
    "a loop that adds nothing up": Case(
        [("tensor<6x16xf32>", "tensor<6x4xf32>", COLUMNS)],
        [("tensor<16xf32>", "tensor<4xf32>", "{devices=[4]<=[4]}")],
        counted(16, "%i"),
        counted(4, "%i").replace("return %j, %w", "return %j, %y"),
        10,
        "add (model.py:10) is missing",
    ),
    "a sum that is not completed beside edges that neighbours send": Case(
        [X],
        [X],
        SMOOTHED,
        SENT,
        4,
        "over d (4 devices) is missing",
    ),
    "a mask numbered from the wrong row": Case(
        [V],
        [V],
        masked(S816, FROM_ZERO, "GE"),
        masked(S216, from_device(3), "GE"),
        3,
        "offset 3*d where 2*d is expected",
    ),
    "a mask without its diagonal": Case(
        [V],
        [V],
        masked(S816, FROM_ZERO, "GE"),
        masked(S216, from_device(2), "GT"),
        5,
        "compare (model.py:5): the condition is",
    ),
}


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_the_line_at_fault_is_named(case: Case) -> None:
    (finding,) = findings(case.report())
    assert finding.location == f"model.py:{case.line}", finding
    assert case.says in finding.nearest
    assert finding.operation.startswith("%") and finding.found


KINDS = {
    "an all-reduce is missing": Mismatch.NEVER_REDUCED,
    "an all-reduce over some devices": Mismatch.WRONG_DEVICES,
    "an all-reduce twice": Mismatch.REDUCED_TWICE,
    "the maximum instead of the sum": Mismatch.DIFFERS,
    "a scale is missing": Mismatch.WRONG_FACTOR,
    "a scale of an argument is missing": Mismatch.WRONG_FACTOR,
    "another scale": Mismatch.WRONG_FACTOR,
    "the last operation is missing": Mismatch.WRONG_VALUE,
    "operands exchanged": Mismatch.WRONG_VALUE,
    "another function": Mismatch.DIFFERS,
    "a mask without its diagonal": Mismatch.DIFFERS,
    "the next device's rows": Mismatch.WRONG_PLACE,
    "rows that overlap": Mismatch.WRONG_PLACE,
    "another row of a table in a loop": Mismatch.WRONG_PLACE,
    "a mask numbered from the wrong row": Mismatch.WRONG_PLACE,
}


@pytest.mark.parametrize("name", KINDS)
def test_the_kind_of_mismatch_is_suspected(name: str) -> None:
    """The result itself is only not proved."""
    report = CASES[name].report()
    assert {result.finding.code for result in report.results if result.finding} == {KINDS[name]}
    assert {result.code for result in report.results} == {Solver.NO_PROOF}


def test_results_that_fail_for_one_reason_share_its_finding() -> None:
    body = dot(COPY).replace("return %2 : tensor<8x8xf32>", "return %2, %1 : tensor<8x8xf32>, tensor<8x8xf32>")
    logical = DOT.replace("return %1 : tensor<8x8xf32>", "return %1, %0 : tensor<8x8xf32>, tensor<8x8xf32>")
    (finding,) = findings(Case([X, W], [SQUARE, SQUARE], logical, body, 3, "").report())
    assert finding.location == "model.py:3"


def test_terms_are_written_in_index_notation() -> None:
    (finding,) = findings(CASES["an all-reduce is missing"].report())
    assert finding.found == "sum a<4. arg0[i,4*d + a]*arg1[4*d + a,j]"
    assert finding.expected == "sum a<16. arg0[i,a]*arg1[a,j]"


def test_the_result_of_an_argument() -> None:
    """Nothing is computed: the result itself is what is wrong."""
    case = Case([V], [V], f"%0 = stablehlo.tanh %a0 : {S816} @3\nreturn %0 : {S816}", f"return %a0 : {S216}", 3, "tanh")
    (finding,) = findings(case.report())
    assert finding.operation == "the result is an argument"
    assert (finding.location, finding.nearest) == (
        "model.py:3",
        "tanh (model.py:3) is missing; arg0[2*d + i,j] where tanh(arg0[2*d + i,j]) is expected",
    )
    assert finding.expected == "tanh(arg0[2*d + i,j])"
