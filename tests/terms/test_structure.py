"""Every law of sums, conditions and index values keeps the value, by counting; and would not without its condition."""

from __future__ import annotations

import ast
import importlib
import inspect
import math
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import z3

import hlo_verify.terms
import tests.support.clip_laws
import tests.support.count_laws
import tests.support.exponent_laws
import tests.support.named_laws
import tests.support.nan_laws
import tests.support.order_laws
import tests.support.piecewise_laws
import tests.support.ring_laws
import tests.support.shared_operand_laws
import tests.support.sign_laws
import tests.support.truth_laws
import tests.support.whole_laws  # noqa: F401 (registers instances)
from hlo_verify.memory import Memory
from hlo_verify.terms.laws import TABLE
from hlo_verify.terms.structure import REWRITINGS
from hlo_verify.terms.used import counts
from tests.support import scalar_structures as scalar_structures
from tests.support.guard_laws import INSTANCES
from tests.support.law_meanings import machine
from tests.support.structural_laws import (
    HIGH,
    LOW,
    Case,
)

SEEDS = 40
BY_NAME = {each.name: each for each in REWRITINGS}


def are_same(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) and math.isnan(found):
        return isinstance(wanted, float) and math.isnan(wanted)
    return bool(found == wanted) or abs(float(found) - float(wanted)) <= 1e-9 * max(1.0, abs(float(wanted)))


def outcomes(name: str) -> tuple[bool, bool]:
    """Whether a law was used in some instance, and whether all have the value that they should."""
    is_used = False
    for make in INSTANCES[name]:
        for seed in range(SEEDS):
            with Memory().on():
                case = Case(seed)
                found, wanted = make(case)
                is_used |= bool(counts().get(name))
                if not all(map(are_same, case.value(found).flat, wanted.flat)):
                    return is_used, False
    return is_used, True


@pytest.mark.drawn(25)
@pytest.mark.parametrize("name", BY_NAME)
def test_a_law_is_used_and_keeps_the_value(name: str) -> None:
    assert outcomes(name) == (True, True)


# What conditions are for


@dataclass(frozen=True)
class Without:
    """A law's function with a part of its text replaced: as it would be without the condition."""

    old: str
    new: str
    by: str = ""


WITHOUT = {
    "table in a condition": Without("len(chosen) in (0, last - first + 1)", "True", "guards.places_between"),
    "powers of one base": Without(" or signs.of(base) & (signs.NEGATIVE | signs.BEYOND)", "", "powers.base_of"),
    "powers of a positive base": Without("cancels and signs.of(base) != signs.POSITIVE", "False"),
    "logarithms of factors": Without(" or not is_positive(atom)", ""),
    "square of a root": Without(" or signs.of(base) & (signs.NEGATIVE | signs.BEYOND)", "", "powers.base_of"),
    "factor of a sum": Without("*doubted, ", ""),
    "sum of values in order": Without("and end - 1 <= last <= end", ""),
    "one point": Without("hi - lo + 1 == abs(c) and ", "", "fixing.eliminated"),
    "one in every": Without(" or gcd(c, m) != 1", ""),
    "one entry": Without("entries is None or len(set(entries.tolist())) < v.size", "entries is None"),
    "part of a range": Without("c == 1 and not rest.items", "c == 1"),
    "what is picked by a sum": Without("if any(atom.doubt for atom, _ in items):", "if False:"),
    "one of those that are asked": Without("if e.lo >= 0 and e.hi < v.size:", "if True:", "counts.same_places"),
    "integer of what is one": Without(" or found[0] < lo or found[1] > hi", ""),
    "product of sums": Without("len(groups) > 1 and _may_part([part for _, part in groups])", "len(groups) > 1"),
    "sum inside of a sum": Without(" and _may_part([inner, outer])", ""),
    "turns of a ring": Without("len(taken) == n and ", ""),
    "ring of two": Without("a.hi == 1 and ", "", "ring_of_two._is_side"),
    "wrapped by a condition": Without(" or last + start != size - 1", "", "wrapping._remainder"),
    "sum piece by piece": Without("if here is behind", "if here is not behind", "neighbours._followed"),
    "what is picked one by one": Without("if start != last + 1 or", "if", "picking._both"),
    "pieces in line": Without(" or stop <= start + FEWEST", " or True", "in_line._one"),
    "multiple in an extremum": Without(" and p.items[0][1] > 0", ""),
    "extremum of an increasing function": Without(" and step.ascending", "", "order_keys.outside"),
    "extremum of a choice": Without("steps(p, live)", "steps(p)"),
    "condition for some of a range": Without("abs(c) > 1", "abs(c) > 9"),
    "sign of an extremum": Without(" and not atom.args[0].doubt", "", "truths.sign_of"),
    "product of truth values": Without("truths.is_truth(p)", "True"),
    "extremum of truth values": Without("[p for p in terms if is_truth(p)]", "list(terms)", "truths.joined"),
    "extremum of truth values over variables": Without("if add(p, none) is ONE else [p]", "", "truths.each_of"),
    "as many as there are of each": Without(
        "bound > high - step", "bound > high - 2 * step", "compared_counts._are_at_least"
    ),
    "as many as there are": Without("all(atom.boolean for atom, _ in mono)", "True", "truths.is_product"),
    "place in order": Without("if place.lo < 0 or place.hi >= v.size:", "if False:", "order_counts._at_most"),
    "last bits of what is sorted": Without(" and (hi is None or greatest <= hi)", ""),
    "how many are below": Without("guards.interval(integer, 0, None)", "ONE"),
    "choice between an integer and a bound": Without(
        "if not low <= n.const <= high:", "if False:", "comparing._chosen"
    ),
    "total of what may be nothing": Without(
        "multiply(p, part) is part for p in held", "True for p in held", "comparing.is_over"
    ),
    "count beside a total": Without(" and _is_total(atom, n)", ""),
    "integer of what is rounded": Without(
        "found is not None and lo <= found[0] and found[1] <= hi", "is_whole(p)", "whole._is_within"
    ),
    "integer of what is not negative": Without(
        "signs.of(args[0]) & ~(signs.ZERO | signs.POSITIVE) or ", "", "whole.truncated"
    ),
    "implied condition": Without("if above and (", "if above or (", "idle._is_implied"),
    "condition widened": Without("if needless([other, b]) is not b:", "if False:"),
    "pieces beside a gap": Without("any(needless([b, gap]) is False for b in held)", "True"),
    "idle clamp": Without("inner if fits else", "inner if True else", "idle._freed"),
    "machine value in a condition": Without("if lo - e.hi < atom.lo or hi - e.lo > atom.hi:", "if False:"),
    "low digits in a condition": Without("if whole:", "if True:"),
    "multiple of what is 0 or no number": Without("if case.coefficients(items):", "if True:", "no_number._where"),
    "what vanishes is a number": Without("return not", "return True or not", "losses._is_implied"),
    "operands in any order": Without("if function.properties.commutative:", "if True:"),
    "one is the best": Without("is best", "is not None"),
    "one is the best of what is masked": Without(
        "return _is_never_negative(left)", "return True", "attained._counts_each"
    ),
    "sign by bounds": Without(
        "(least == 0 and attains_least) or (greatest == 0 and attains_greatest)", "False", "quotient_signs._by_bounds"
    ),
    "sign of a difference of exponentials": Without(
        "above + below and of_exponents & ", "of_exponents & 0 & ", "quotient_signs._of_exponentials"
    ),
    "more than all others": Without("before[2] == behind[2] and ", ""),
    "sign of a variance": Without(
        "if signs.of(spread) & ~(signs.ZERO | signs.POSITIVE):", "if False:", "variances._of_variance"
    ),
    "conditions side by side": Without("start == found[-1][1] + 1", "start > found[-1][1]"),
    "sums that are positive together": Without("_is_positive(*_element(group))", "True"),
    "sums that have a sign together": Without("_with_common(_element(group)[1])", "signs.ZERO | signs.POSITIVE"),
    "sums that are positive somewhere": Without("one_is_positive(bound, body)", "True"),
}


TRUE_ANYWAY = {
    "extremum of what is at one place": "a variable of one value is that value, and no term hangs on it",
    "a soft threshold": "the greater of 0 and of an absolute value with something added is the latter",
    "choice at a bound": "where a condition holds it is what is chosen, and where it does not too",
    "factor of a named term": "its instances are exactly those where the term is such a product",
    "sign of a numerator": "what is not positive may be 0, or its opposite is inverted, but for preconditions",
    "what a condition tells": "where i is none of the values that e(v) has, nothing is added up, whatever g(i) is",
    "digits reunited": "a and b are digits of v, whatever is asked of them: the condition says where it is shorter",
    "rotation": "where c and n have a divisor in common, only a digit of v is turned, and not all of it",
}
"""Conditions that are met wherever the law is tried."""


def function_of(path: str) -> tuple[Any, Any]:
    """A function of `terms`, and its module."""
    module, _, name = path.partition(".")
    found = importlib.import_module(f"hlo_verify.terms.{module}")
    return getattr(found, name), found


@pytest.mark.parametrize("name", WITHOUT)
def test_a_condition_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without = WITHOUT[name]
    function, module = function_of(without.by or BY_NAME[name].by)
    text = textwrap.dedent(inspect.getsource(function))
    assert without.old in text, text
    made: dict[str, Any] = {}
    exec(text.replace(without.old, without.new), vars(module), made)
    for other in [each for key, each in sys.modules.items() if key.startswith("hlo_verify.terms.")]:
        if getattr(other, function.__name__, None) is function:
            monkeypatch.setattr(other, function.__name__, made[function.__name__])
    try:
        is_right = outcomes(name)[1]
    except (KeyError, ValueError, AssertionError, RuntimeWarning):  # a variable bound no more, the greatest of NaN
        is_right = False
    assert not is_right


def test_a_machine_value_in_a_condition_bit_by_bit() -> None:
    """`a <= wrap(t + e) <= b` is `a <= t + e <= b` where a - e and b - e lie in the type's range."""
    t, e, a, b = z3.Ints("t e a b")
    held = machine("i8")(t + e)
    wraps = z3.And(a <= held, held <= b) != z3.And(a <= t + e, t + e <= b)
    solver = z3.Solver()
    solver.add(t >= LOW, t <= HIGH, e >= -300, e <= 300, a >= LOW, b <= HIGH, wraps)
    assert solver.check() == z3.sat
    solver.add(a - e >= LOW, b - e <= HIGH)
    assert solver.check() == z3.unsat


# The table


def noted() -> set[str]:
    """The names that the code notes, where they are written as such."""
    found = set()
    for path in Path(hlo_verify.terms.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "used":
                (said,) = node.args
                found |= {said.value} if isinstance(said, ast.Constant) else set()
    return found


def test_what_is_noted_is_in_the_table() -> None:
    assert noted() == BY_NAME.keys()
    assert len(BY_NAME) == len(REWRITINGS)
    assert not BY_NAME.keys() & {law.name for law in TABLE}
    assert BY_NAME.keys() == INSTANCES.keys()
    assert {each.name for each in REWRITINGS if each.when} <= WITHOUT.keys() | TRUE_ANYWAY.keys()


@pytest.mark.parametrize("name", BY_NAME)
def test_the_function_that_uses_a_law_is_there(name: str) -> None:
    assert callable(function_of(BY_NAME[name].by)[0])
