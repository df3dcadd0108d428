"""What counts as a difference: enclosures that are disjoint. What cancels in floating point refutes nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hlo_verify
from hlo_verify.diagnostics import Internal
from hlo_verify.evaluate import Blocks, dense, of_dense
from hlo_verify.limits import Limits
from hlo_verify.passes.load.load import load
from hlo_verify.passes.refute.confirm import Confirmer, Stage
from hlo_verify.passes.refute.literals import ASSUMPTION, Literals, is_plain
from hlo_verify.passes.refute.search import Search
from hlo_verify.passes.refute.trial import Inputs, run
from hlo_verify.program.pair import Pair, pair_of
from hlo_verify.report import Verdict
from hlo_verify.session import Session
from tests.support.bodies import body, pair
from tests.support.pairs import REPLICATED, elementwise, module, on

LOGISTIC = "%s = logistic %x"
EQUAL = {
    "derivative of the logistic function": (
        body(LOGISTIC, "%t = subtract %c, %s", "%y = multiply %s, %t", c=1.0),
        body(
            "%n = negate %x",
            "%e = exponential %n",
            "%d = add %c, %e",
            "%q = multiply %d, %d",
            "%y = divide %e, %q",
            c=1.0,
        ),
    ),
    "erfc": (body("%y = chlo.erfc %x"), body("%e = chlo.erf %x", "%y = subtract %c, %e", c=1.0)),
    "expm1": (body("%y = exponential_minus_one %x"), body("%e = exponential %x", "%y = subtract %e, %c", c=1.0)),
    "log1p of an exponential": (
        body("%e = exponential %x", "%y = log_plus_one %e"),
        body("%e = exponential %x", "%d = add %e, %c", "%y = log %d", c=1.0),
    ),
    "square of a sum": (
        body("%a = add %x, %c", "%y = multiply %a, %a", c=4096.0),
        body(
            "%q = multiply %x, %x", "%l = multiply %x, %d", "%m = add %q, %l", "%y = add %m, %e", d=8192.0, e=16777216.0
        ),
    ),
    "difference of squares": (
        body("%q = multiply %x, %x", "%y = subtract %q, %c", c=1.0),
        body("%a = add %x, %c", "%b = subtract %x, %c", "%y = multiply %a, %b", c=1.0),
    ),
    "one minus the cosine": (
        body("%a = cosine %x", "%y = subtract %c, %a", c=1.0),
        body("%h = multiply %x, %f", "%s = sine %h", "%q = multiply %s, %s", "%y = add %q, %q", f=0.5),
    ),
    "hyperbolic sine": (
        body(
            "%a = exponential %x",
            "%n = negate %x",
            "%b = exponential %n",
            "%d = subtract %a, %b",
            "%y = multiply %d, %f",
            f=0.5,
        ),
        body("%y = chlo.sinh %x"),
    ),
    "tanh by the logistic function": (
        body("%y = tanh %x"),
        body("%t = add %x, %x", "%s = logistic %t", "%u = add %s, %s", "%y = subtract %u, %c", c=1.0),
    ),
    "one minus tanh squared": (
        body("%a = tanh %x", "%q = multiply %a, %a", "%y = subtract %c, %q", c=1.0),
        body("%a = chlo.cosh %x", "%q = multiply %a, %a", "%y = divide %c, %q", c=1.0),
    ),
    "difference of roots": (
        body("%q = multiply %x, %x", "%p = add %q, %c", "%r = sqrt %p", "%o = abs %x", "%y = subtract %r, %o", c=1.0),
        body(
            "%q = multiply %x, %x",
            "%p = add %q, %c",
            "%r = sqrt %p",
            "%o = abs %x",
            "%s = add %r, %o",
            "%y = divide %c, %s",
            c=1.0,
        ),
    ),
    "logarithm of a quotient": (
        body(
            "%q = multiply %x, %x",
            "%a = add %q, %c",
            "%b = log %a",
            c=1.0,
        )
        + "\n    %y = stablehlo.negate %b : TYPE",
        body("%q = multiply %x, %x", "%a = add %q, %c", "%b = divide %c, %a", "%y = log %b", c=1.0),
    ),
    "softplus shifted by its maximum": (
        body("%e = exponential %x", "%d = add %c, %e", "%y = log %d", c=1.0),
        body(
            "%m = maximum %x, %z",
            "%a = subtract %x, %m",
            "%b = subtract %z, %m",
            "%e = exponential %a",
            "%f = exponential %b",
            "%s = add %e, %f",
            "%l = log %s",
            "%y = add %m, %l",
            z=0.0,
        ),
    ),
    "reciprocal root": (
        body("%q = multiply %x, %x", "%a = add %q, %c", "%y = rsqrt %a", c=1.0),
        body("%q = multiply %x, %x", "%a = add %q, %c", "%r = sqrt %a", "%y = divide %c, %r", c=1.0),
    ),
    "a third": (body("%y = divide %x, %c", c=3.0), body("%y = multiply %x, %c", c="0.333333343")),
    "a third, the other way": (body("%y = multiply %x, %c", c="0.333333343"), body("%y = divide %x, %c", c=3.0)),
    "folded constants": (
        body("%a = multiply %x, %c", "%y = multiply %a, %d", c="0.797884583", d="0.0447149985"),
        body("%y = multiply %x, %c", c="0.0356774069"),
    ),
    "what a third amplifies": (
        body(
            "%a = multiply %x, %c",
            "%b = multiply %a, %t",
            "%d = subtract %b, %x",
            "%y = multiply %d, %g",
            c="0.333333343",
            t=3.0,
            g=1048576.0,
        ),
        body(
            "%a = divide %x, %t",
            "%b = multiply %a, %t",
            "%d = subtract %b, %x",
            "%y = multiply %d, %g",
            t=3.0,
            g=1048576.0,
        ),
    ),
    "rounding that decides a comparison": (
        body("%a = divide %x, %t", "%b = multiply %a, %t", "%y = maximum %b, %x", t=3.0),
        body("%y = maximum %x, %x"),
    ),
    "rounding that decides a floor": (
        body("%w = floor %x", "%a = divide %w, %t", "%b = multiply %a, %t", "%y = floor %b", t=3.0),
        body("%y = floor %x"),
    ),
    "the gamma function": (
        body("%q = multiply %x, %x", "%a = add %q, %c", "%b = add %a, %c", "%y = chlo.lgamma %b", c=1.0),
        body("%q = multiply %x, %x", "%a = add %q, %c", "%l = log %a", "%g = chlo.lgamma %a", "%y = add %l, %g", c=1.0),
    ),
    "the inverse of erf": (
        body("%a = multiply %x, %f", "%t = tanh %a", "%i = chlo.erf_inv %t", "%y = chlo.erf %i", f=0.125),
        body("%a = multiply %x, %f", "%y = tanh %a", f=0.125),
    ),
    "saturated functions that are compared": (
        body(
            "%a = tanh %x", "%m = minimum %a, %c", "%d = subtract %c, %m", "%s = sign %d", "%y = multiply %s, %s", c=1.0
        ),
        body("%d = subtract %x, %x", "%y = exponential %d"),
    ),
}
EXTREME = [-40.0, -17.5, -1.5, -1e-3, 2e-7, 0.75, 18.25, 36.0]


@pytest.mark.drawn(10)
@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_never_differs(name: str) -> None:
    """Not for inputs at which floating point loses all digits, nor for those of the search."""
    equal = pair("f32", *EQUAL[name])
    for scale in (1.0, 0.01, 4.0):
        said = Confirmer(equal).confirm((of_dense(scale * np.array(EXTREME)),), [0])
        assert not said.differences and said.open
    assert not Search(equal).find([0])


def test_floating_point_alone_would_refute_some() -> None:
    """The tests above would fail without enclosures."""
    seen = [
        name
        for name, bodies in EQUAL.items()
        if pair_differs_in_floating_point(pair("f32", *bodies), of_dense(np.array(EXTREME)))
    ]
    assert {"derivative of the logistic function", "erfc", "one minus tanh squared"} <= set(seen)


def pair_differs_in_floating_point(equal: Pair, inputs: Blocks) -> bool:
    trial = run(equal, (inputs,))
    whole, local = trial.whole.results[0], trial.local.results[0]
    assert whole is not None and local is not None
    a, b = dense(whole, 0), np.concatenate([dense(local, d) for d in range(equal.devices)])
    return bool((np.abs(a - b) > 1e-9 * np.maximum(np.abs(a), np.abs(b))).any())


TINY = 2.0**-30
"""A relative difference of 1e-9, which no constant that is written with few bits is rounded by."""
FUNCTIONS = (
    "negate abs sine cosine tanh logistic exponential exponential_minus_one chlo.erf chlo.erfc chlo.sinh chlo.cosh "
    "chlo.asinh cbrt chlo.square"
).split()
DIFFERENT = {
    **{
        name: (body(f"%y = {name} %x"), body(f"%a = {name} %x", "%b = multiply %a, %t", "%y = add %a, %b", t=TINY))
        for name in FUNCTIONS
    },
    "a sum": (body("%y = add %x, %c", c=1.0), body("%a = add %x, %c", "%y = add %a, %t", c=1.0, t=TINY)),
    "a power": (body("%y = multiply %x, %x"), body("%a = multiply %x, %x", "%y = add %a, %t", t=TINY)),
    "a logarithm": (
        body("%q = multiply %x, %x", "%a = add %q, %c", "%y = log %a", c=1.0),
        body("%q = multiply %x, %x", "%a = add %q, %c", "%b = add %a, %t", "%y = log %b", c=1.0, t=TINY),
    ),
    "a root": (
        body("%q = multiply %x, %x", "%a = add %q, %c", "%y = sqrt %a", c=1.0),
        body("%q = multiply %x, %x", "%a = add %q, %c", "%b = add %a, %t", "%y = sqrt %b", c=1.0, t=TINY),
    ),
    "an epsilon": (
        body("%q = multiply %x, %x", "%a = add %q, %c", "%y = rsqrt %a", c=1.0),
        body("%q = multiply %x, %x", "%a = add %q, %c", "%b = add %a, %t", "%y = rsqrt %b", c=1.0, t=TINY),
    ),
    "a maximum": (body("%y = maximum %x, %c", c=0.25), body("%a = maximum %x, %c", "%y = add %a, %t", c=0.25, t=TINY)),
    "a digamma function": (
        body("%q = multiply %x, %x", "%a = add %q, %c", "%y = chlo.digamma %a", c=1.0),
        body("%q = multiply %x, %x", "%a = add %q, %c", "%b = add %a, %t", "%y = chlo.digamma %b", c=1.0, t=TINY),
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_by_a_billionth_differs(name: str) -> None:
    assert Search(pair("f32", *DIFFERENT[name])).find([0]) == {0}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("0.5", "0.25"),
        ("1.0e-5", "1.0e-6"),
        ("0.1", "0.1001"),
        ("3.14159274", "3.15"),
        ("0.9", "0.99"),
        ("768.0", "1.0"),
    ],
)
@pytest.mark.parametrize("kind", ["f32", "f64", "bf16"])
def test_other_constants_differ(right: str, wrong: str, kind: str) -> None:
    if kind == "bf16" and right in ("0.1", "3.14159274"):
        return  # the same number in that type
    lines = "%q = multiply %x, %x", "%y = multiply %q, %c"
    assert Search(pair(kind, body(*lines, c=right), body(*lines, c=wrong))).find([0]) == {0}


def test_a_refutation_that_leans_on_rounded_constants_says_so() -> None:
    lines = ("%y = multiply %x, %c",)
    for constants, is_said in ((("0.1", "0.2"), True), (("0.5", "0.25"), False)):
        report = hlo_verify.verify(*elementwise("f32", *(body(*lines, c=c) for c in constants)))
        assert report.verdict is Verdict.REFUTED and (ASSUMPTION in report.assumptions) == is_said


@pytest.mark.parametrize(
    ("kind", "digits", "differs"),
    [
        ("f32", 30, False),
        ("f32", 20, False),
        ("f32", 15, True),
        ("f64", 30, True),
        ("f16", 6, False),
        ("bf16", 30, False),
    ],
)
def test_what_is_0_in_its_type_differs_from_nothing(kind: str, digits: int, differs: bool) -> None:
    """Two factors make `x` too small for the type, and the other program leaves 0 there: a user sees 0 in both."""
    shrunk = body("%a = multiply %x, %c", "%y = multiply %a, %c", c=f"1.0e-{digits}")
    nothing = body("%n = negate %x", "%y = add %x, %n")
    found = hlo_verify.verify(*elementwise(kind, shrunk, nothing))
    assert found.verdict is (Verdict.REFUTED if differs else Verdict.UNKNOWN)
    assert differs or "too small for its type" in str(found)


@pytest.mark.parametrize(("digits", "differs"), [(30, False), (1, True)])
def test_complex_numbers_differ_by_part(digits: int, differs: bool) -> None:
    """The imaginary part is the same in both, and the real one too small for the type, or not."""

    def made(real: str) -> str:
        lines = ("%x: tensor<8xf32>", "tensor<8xcomplex<f32>>")
        ops = f"""
    %c = stablehlo.constant dense<1.0e-{digits}> : tensor<8xf32>
    %a = stablehlo.multiply %x, %c : tensor<8xf32>
    %b = stablehlo.{real} : tensor<8xf32>
    %y = stablehlo.complex %b, %x : tensor<8xcomplex<f32>>
    return %y : tensor<8xcomplex<f32>>"""
        return module(lines[0] + f" {on(REPLICATED)}", lines[1] + f" {on(REPLICATED)}", ops, 1)

    found = hlo_verify.verify(made("multiply %a, %c"), made("subtract %x, %x"))
    assert found.verdict is (Verdict.REFUTED if differs else Verdict.UNKNOWN)


def test_what_machines_flush_is_no_disagreement() -> None:
    """Where `x` is 0, XLA has 0 for what is left, 9.4e-44."""
    added = body(
        "%q = multiply %x, %x",
        "%n = subtract %d, %q",
        "%e = exponential %n",
        "%s = multiply %c, %e",
        "%y = add %x, %s",
        c="1.0e-30",
        d=-30.0,
    )
    same = body("%n = negate %x", "%y = negate %n")
    found = hlo_verify.verify(*elementwise("f32", added, same))
    assert found.verdict is Verdict.UNKNOWN
    assert "HV902" not in str(found)


def test_a_nan_differs_from_0() -> None:
    nothing = body("%n = negate %x", "%y = add %x, %n")
    undefined = body("%n = negate %x", "%z = add %x, %n", "%y = divide %z, %z")
    assert hlo_verify.verify(*elementwise("f32", nothing, undefined)).verdict is Verdict.REFUTED


def test_xla_need_not_show_what_single_precision_hides() -> None:
    (result,) = hlo_verify.verify(*elementwise("f32", *DIFFERENT["sine"])).results
    assert result.verdict is Verdict.REFUTED and result.code is not Internal.DISAGREEMENT
    assert result.witness is not None and "evaluating" in result.witness.replayed


def test_plain_numbers_are_exact_and_others_are_balls() -> None:
    assert is_plain(np.array([768.0, -np.inf, 0.0]), 24).all() and is_plain(np.array(0.5), 8)
    value = np.array(0.1, np.float32)
    assert not is_plain(value.astype(float), 24)
    alone, both = Literals(frozenset()), Literals(frozenset({float(value)}))
    assert alone(value, "f32") > both(value, "f32") > 0
    both.is_strict = True
    assert both(value, "f32") == 0 and both.is_used
    parts = alone(np.array(0.1 + 0.5j), "complex<f32>")
    assert parts.real > 0 and parts.imag == 0


MASKED = """module @masked attributes {mhlo.num_partitions = 1 : i32} {
  func.func @main(
    %x: tensor<f32> {mhlo.sharding = "{replicated}"}) -> (tensor<1536xf32> {mhlo.sharding = "{replicated}"}) {
  %i = stablehlo.iota dim = 0 : tensor<1536x1536xf32>
  %j = stablehlo.iota dim = 1 : tensor<1536x1536xf32>
  %p = stablehlo.compare DIRECTION, %i, %j : (tensor<1536x1536xf32>, tensor<1536x1536xf32>) -> tensor<1536x1536xi1>
  %b = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<1536x1536xf32>
  %c = stablehlo.constant dense<-3.0e38> : tensor<1536x1536xf32>
  %s = stablehlo.select %p, %b, %c : tensor<1536x1536xi1>, tensor<1536x1536xf32>
  %e = stablehlo.exponential %s : tensor<1536x1536xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1]
       : (tensor<1536x1536xf32>, tensor<f32>) -> tensor<1536xf32>
  return %y : tensor<1536xf32>
}}"""


def test_what_is_too_large_for_balls_is_confirmed_on_intervals() -> None:
    """A causal mask makes as many different elements as it has, whatever the inputs."""
    wrong = pair_of(*(load(MASKED.replace("DIRECTION", direction)) for direction in ("GE", "GT")))
    right = pair_of(*(load(MASKED.replace("DIRECTION", direction)) for direction in ("GE", "GE")))
    inputs = (of_dense(np.array(0.5, np.float32)),)
    said = Confirmer(wrong).confirm(inputs, [0])
    assert said.differences and not said.is_too_large
    assert Confirmer(right).confirm(inputs, [0]).is_too_large
    few = Session(replace(Limits(), interval_elements=1 << 16))
    said = Confirmer(wrong, few).confirm(inputs, [0])
    assert not said.differences and said.is_too_large and "interval_work" in few.spent().limits


@pytest.mark.parametrize(("addend", "expected"), [(2.0**-20, [False]), (0.5, [True])], ids=["faint", "clear"])
def test_constants_are_narrow_only_for_what_is_clear(
    addend: float, expected: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pass over both modules is dear, and narrow enclosures show nothing that is hardly more than a rounding."""
    passes: list[bool] = []
    both = Confirmer._both

    def counted(self: Confirmer, inputs: Inputs, results: Collection[int], stage: Stage, is_strict: bool) -> Any:
        passes.append(is_strict)
        return both(self, inputs, results, stage, is_strict)

    monkeypatch.setattr(Confirmer, "_both", counted)
    lines = "%m = multiply %x, %c", "%y = add %m, %d"
    wrong = pair("f32", body(*lines, c=0.1, d=0.0), body(*lines, c=0.1, d=addend))
    assert Search(wrong).find([0], draws=1) == {0}
    assert passes == expected


@pytest.mark.parametrize(("bits", "is_told"), [(64, False), (255, False), (256, True)])
def test_how_many_bits_there_are_is_a_limit(bits: int, is_told: bool) -> None:
    """`x*x + 2^-100*x - x*x` and `x*x + 2^-101*x - x*x` are one number with 64 bits."""
    lines = "%q = multiply %x, %x", "%t = multiply %x, %c", "%s = add %q, %t", "%y = subtract %s, %q"
    wrong = pair("f64", body(*lines, c=2.0**-100), body(*lines, c=2.0**-101))
    session = Session(replace(Limits(), enclosed_bits=bits))
    said = Confirmer(wrong, session).confirm((of_dense(np.arange(8) + 1.5),), [0])
    assert bool(said.differences) == is_told
    assert ("enclosed_bits" in session.spent().limits) != is_told
