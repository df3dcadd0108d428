"""The rounding of a folded constant is allowed where it stays one, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest

from hlo_verify.limits import Limits
from hlo_verify.passes.chain.amplified import amplified
from hlo_verify.passes.chain.constant_terms import apart
from hlo_verify.passes.chain.folded_constants import Folded, Reading
from hlo_verify.passes.chain.pair_programs import pair_of_wholes
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Module
from hlo_verify.report import Verdict
from hlo_verify.session import Session, TimeUpError
from hlo_verify.terms.algebra import add
from hlo_verify.terms.functions import INVERSE, LOG, SQRT
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import number

MOST = Limits().grown_roundings

EPSILON = float(np.finfo(np.float32).eps) / 2

KIND = "tensor<4xf32>"


class Program:
    """A program line by line, of %x and %y; `text` is that of what returns the last value."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, line: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = stablehlo.{line}")
        return name

    def constant(self, value: float, kind: str = KIND) -> str:
        return self.add(f"constant dense<{float(value):.17e}> : {kind}")

    def apply(self, operation: str, *operands: str) -> str:
        return self.add(f"{operation} {', '.join(operands)} : {KIND}")

    @property
    def module(self) -> Module:
        body, last = "\n".join(self.lines), f"%v{len(self.lines) - 1}"
        kind = self.lines[-1].rpartition(" ")[2]
        signature = f"func.func public @main(%x: {KIND}, %y: {KIND}) -> {kind}"
        return load(f"module @m {{\n{signature} {{\n{body}\nreturn {last} : {kind}\n}}\n}}\n")


def third(program: Program, folded: bool) -> str:
    """1/3 as a program has it: computed, or as the number that a pass folded it into."""
    if folded:
        return program.constant(np.float32(1) / np.float32(3))
    return program.apply("divide", program.constant(1.0), program.constant(3.0))


def judged(before: Module, after: Module) -> tuple[bool, str]:
    """Whether the modules are equal with constants read as what they were folded from, and what then speaks against
    it."""
    for reading in Folded().readings(before, after):
        if prove(*pair_of_wholes(before, reading.module)).verdict is Verdict.PROVED:
            return True, str(far(reading) or "")
    return False, ""


def far(reading: Reading, session: Session | None = None) -> object:
    return amplified(*pair_of_wholes(reading.module, reading.module), reading.meant, session or Session())


def test_it_takes_no_longer_than_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = both(lambda p, c: p.apply("multiply", c, p.constant(3.0)))
    (reading, *_) = (each for each in Folded().readings(before, after) if each.meant)
    session = Session()
    far(reading, session)
    monkeypatch.setattr(Session, "is_over", property(lambda _: True))
    with pytest.raises(TimeUpError):
        far(reading, session)
    assert session.phase == "it was looked at whether a rounding stays one"


def both(build: object) -> tuple[Module, Module]:
    """A program with 1/3 computed, and with it folded; `build` is given the program and its third."""
    programs = []
    for folded in (False, True):
        program = Program()
        build(program, third(program, folded))  # type: ignore[operator]
        programs.append(program.module)
    return programs[0], programs[1]


def cancels(p: Program, c: str) -> None:
    """(x * c * 3 - x) * 1e9"""
    product = p.apply("multiply", p.apply("multiply", "%x", c), p.constant(3.0))
    p.apply("multiply", p.apply("subtract", product, "%x"), p.constant(1e9))


def nearly_cancels(p: Program, c: str) -> None:
    """x * c * 3.001 - x"""
    p.apply("subtract", p.apply("multiply", p.apply("multiply", "%x", c), p.constant(3.001)), "%x")


def cancels_in_an_extremum(p: Program, c: str) -> None:
    """max(x * c * 3, y) - max(x, y)"""
    product = p.apply("multiply", p.apply("multiply", "%x", c), p.constant(3.0))
    p.apply("subtract", p.apply("maximum", product, "%y"), p.apply("maximum", "%x", "%y"))


def cancels_in_a_function(p: Program, c: str) -> None:
    product = p.apply("multiply", p.apply("multiply", "%x", c), p.constant(3.0))
    p.apply("subtract", p.apply("tanh", product), p.apply("tanh", "%x"))


def cancels_in_a_sum(p: Program, c: str) -> None:
    """sum(x * c) * 3 - sum(x), written as sum(x * c * 3 - x)"""
    cancels(p, c)
    zero = p.constant(0.0, "tensor<f32>")
    p.add(
        f"reduce(%v{len(p.lines) - 2} init: {zero}) applies stablehlo.add across dimensions = [0] : "
        f"({KIND}, tensor<f32>) -> tensor<f32>"
    )


def cancels_in_a_root(p: Program, c: str) -> None:
    """sqrt(abs(x * c * 3 - x))"""
    product = p.apply("multiply", p.apply("multiply", "%x", c), p.constant(3.0))
    p.apply("sqrt", p.apply("abs", p.apply("subtract", product, "%x")))


def decides_by_a_difference(p: Program, c: str) -> None:
    """x * c * 3 > x ? y : 0"""
    product, zero = p.apply("multiply", p.apply("multiply", "%x", c), p.constant(3.0)), p.constant(0.0)
    test = p.add(f"compare GT, {product}, %x, FLOAT : ({KIND}, {KIND}) -> tensor<4xi1>")
    p.add(f"select {test}, %y, {zero} : tensor<4xi1>, {KIND}")


def nearly_cancels_in_an_extremum(p: Program, c: str) -> None:
    """max(x * c * 3.001, y) - max(x, y)"""
    product = p.apply("multiply", p.apply("multiply", "%x", c), p.constant(3.001))
    p.apply("subtract", p.apply("maximum", product, "%y"), p.apply("maximum", "%x", "%y"))


def nearly_cancels_in_a_function(p: Program, c: str) -> None:
    """2 * tanh(y - x * c * 3.001) - 2 * tanh(y - x)"""
    product = p.apply("multiply", p.apply("multiply", "%x", c), p.constant(3.001))
    one, other = (p.apply("tanh", p.apply("subtract", "%y", each)) for each in (product, "%x"))
    p.apply("multiply", p.apply("subtract", one, other), p.constant(2.0))


def cancels_where_it_is_divided_by(p: Program, c: str) -> None:
    """x / c / 3 - x"""
    p.apply("subtract", p.apply("divide", p.apply("divide", "%x", c), p.constant(3.0)), "%x")


def cancels_in_a_function_where_it_is_divided_by(p: Program, c: str) -> None:
    """max(x / c / 3, y) - max(x, y)"""
    product = p.apply("divide", p.apply("divide", "%x", c), p.constant(3.0))
    p.apply("subtract", p.apply("maximum", product, "%y"), p.apply("maximum", "%x", "%y"))


def three_thirds(p: Program, c: str) -> str:
    return p.apply("multiply", p.apply("multiply", "%x", c), p.constant(3.0))


AMPLIFY = (
    cancels, nearly_cancels, cancels_in_an_extremum, cancels_in_a_function, cancels_in_a_sum, cancels_in_a_root,
    decides_by_a_difference, nearly_cancels_in_an_extremum, nearly_cancels_in_a_function,
    cancels_where_it_is_divided_by, cancels_in_a_function_where_it_is_divided_by,
)  # fmt: skip


@pytest.mark.parametrize("build", AMPLIFY)
def test_what_is_nothing_but_a_rounding_is_not_covered(build: object) -> None:
    before, after = both(build)
    equal, reason = judged(before, after)
    assert equal, "with 1/3 for its rounding the programs are one"
    assert "0.333333343 is 1 / 3, rounded" in reason
    if build is nearly_cancels:  # 3.001/3 - 1 is 1/3000: the rounding of the product is 3001 times that of its rest
        assert "3e+03 times as large" in reason
    elif build in (nearly_cancels_in_an_extremum, nearly_cancels_in_a_function):
        assert "little else than that rounding" in reason
    else:
        assert "all that is left is that rounding" in reason


def scales(p: Program, c: str) -> None:
    p.apply("multiply", "%x", c)


def adds(p: Program, c: str) -> None:
    """x * c - y: small where x/3 is near y, but so is any rounding of x/3 then."""
    p.apply("subtract", p.apply("multiply", "%x", c), "%y")


def steps(p: Program, c: str) -> None:
    """x - y * c, many times over"""
    value = "%x"
    for _ in range(20):
        value = p.apply("subtract", value, p.apply("multiply", p.apply("tanh", value), c))


def divides(p: Program, c: str) -> None:
    p.apply("divide", "%y", p.apply("add", p.apply("multiply", p.apply("multiply", "%x", "%x"), c), p.constant(1e-6)))


def chooses(p: Program, c: str) -> None:
    p.apply("maximum", p.apply("multiply", "%x", c), p.constant(0.0))


def differs_in_a_function(p: Program, c: str) -> None:
    """tanh(x * c) - tanh(x)"""
    p.apply("subtract", p.apply("tanh", p.apply("multiply", "%x", c)), p.apply("tanh", "%x"))


def is_divided_by(p: Program, c: str) -> None:
    """sqrt(x / c) * rsqrt(c)"""
    root = p.apply("sqrt", p.apply("abs", p.apply("divide", "%x", c)))
    p.apply("multiply", root, p.apply("rsqrt", c))


def is_far_from_a_slope(p: Program, c: str) -> None:
    """sqrt(x^2 * c + (y - x * c)^2) + log(exp(x) * c + exp(y)) + log1p(exp(x) * c)"""
    square, rest = p.apply("multiply", "%x", "%x"), p.apply("subtract", "%y", p.apply("multiply", "%x", c))
    root = p.apply("sqrt", p.apply("add", p.apply("multiply", square, c), p.apply("multiply", rest, rest)))
    exponential = p.apply("multiply", p.apply("exponential", "%x"), c)
    logarithm = p.apply("log", p.apply("add", exponential, p.apply("exponential", "%y")))
    p.apply("add", p.apply("add", root, logarithm), p.apply("log_plus_one", exponential))


def divides_a_difference(p: Program, c: str) -> None:
    """(x - reverse(x)) / c: of two elements of one tensor"""
    turned = p.add(f"reverse %x, dims = [0] : {KIND}")
    p.apply("divide", p.apply("subtract", "%x", turned), c)


ROUNDED = [
    scales,
    adds,
    steps,
    divides,
    chooses,
    differs_in_a_function,
    is_divided_by,
    is_far_from_a_slope,
    divides_a_difference,
]


@pytest.mark.parametrize("build", ROUNDED)
def test_what_stays_a_rounding_is_covered(build: object) -> None:
    assert judged(*both(build)) == (True, "")


def test_roundings_of_a_product_add_up() -> None:
    def many(count: int) -> tuple[Module, Module]:
        def build(p: Program, c: str) -> None:
            value = "%x"
            for _ in range(count):
                value = p.apply("multiply", value, c)

        return both(build)

    assert judged(*many(MOST)) == (True, "")
    assert f"{MOST + 1} times as large" in judged(*many(MOST + 1))[1]


@pytest.mark.parametrize("most", [2, 3, 4])
def test_how_much_a_rounding_may_grow_is_a_limit(most: int) -> None:
    """Three roundings in one product; a report names the limit that does not allow for them."""
    before, after = both(lambda p, c: p.apply("multiply", p.apply("multiply", p.apply("multiply", "%x", c), c), c))
    (reading,) = Folded().readings(before, after)
    session = Session(Limits(grown_roundings=most))
    assert (far(reading, session) is None) == (most >= 3)
    assert ("grown_roundings" in session.spent().limits) == (most < 3)


FACTORS = {"third": lambda c: c, "three thirds": lambda c: 3 * c, "no thirds": lambda c: 3 * c - 1}
OPERATIONS = ("add", "subtract", "multiply", *FACTORS)


def polynomial(p: Program, third: str, choose: random.Random) -> None:
    """A random polynomial of x and y with the third in some places, and cancellations with it more often than not."""
    three = p.constant(3.0)
    values = ["%x", "%y", p.apply("multiply", "%x", third), p.apply("multiply", "%y", third)]
    for _ in range(choose.randint(2, 8)):
        operation, a, b = choose.choice(OPERATIONS), choose.choice(values), choose.choice(values)
        if operation == "third":
            values.append(p.apply("multiply", a, third))
        elif operation == "three thirds":
            values.append(p.apply("multiply", p.apply("multiply", a, third), three))
        elif operation == "no thirds":
            values.append(p.apply("subtract", p.apply("multiply", p.apply("multiply", a, third), three), a))
        else:
            values.append(p.apply(operation, a, b))
    p.apply("add", values[-1], p.constant(0.0))


def evaluated(seed: int, third: Fraction, x: Fraction, y: Fraction) -> tuple[Fraction, Fraction]:
    """The value of that polynomial, with its size: what it is the sum of, added up without signs."""
    choose = random.Random(seed)
    terms: list[Mapping[tuple[int, int], Fraction]] = [
        {(1, 0): Fraction(1)}, {(0, 1): Fraction(1)}, {(1, 0): third}, {(0, 1): third},
    ]  # fmt: skip
    for _ in range(choose.randint(2, 8)):
        operation, a, b = choose.choice(OPERATIONS), choose.choice(terms), choose.choice(terms)
        new: dict[tuple[int, int], Fraction] = {}
        if operation == "multiply":
            for (i, j), c in a.items():
                for (k, m), d in b.items():
                    new[i + k, j + m] = new.get((i + k, j + m), Fraction(0)) + c * d
        elif operation in FACTORS:
            factor = FACTORS[operation](third)
            new = {mono: factor * c for mono, c in a.items()}
        else:
            sign = 1 if operation == "add" else -1
            new = {mono: a.get(mono, Fraction(0)) + sign * b.get(mono, Fraction(0)) for mono in {**a, **b}}
        terms.append(new)
    parts = [c * x**i * y**j for (i, j), c in terms[-1].items()]
    return sum(parts, Fraction(0)), sum(map(abs, parts), Fraction(0))


@pytest.mark.drawn(40)
@pytest.mark.parametrize("seed", range(100))
def test_no_difference_is_covered_that_is_more_than_so_many_roundings(seed: int) -> None:
    """Truth is exact arithmetic: how far the program as it stands is from the one with 1/3, relative to its terms."""
    before, after = both(lambda p, c: polynomial(p, c, random.Random(seed)))
    rounded = Fraction(float(np.float32(1) / np.float32(3)))
    worst = Fraction(0)
    for x, y in (
        (Fraction(7, 5), Fraction(11, 3)),
        (Fraction(-13, 8), Fraction(2, 9)),
        (Fraction(17, 4), Fraction(-5)),
    ):
        exact, size = evaluated(seed, Fraction(1, 3), x, y)
        stands, size_here = evaluated(seed, rounded, x, y)
        if stands != exact:
            worst = max(worst, abs(stands - exact) / max(size, size_here, abs(exact)) if size else Fraction(10**9))
    equal, reason = judged(before, after)
    if equal and not reason:
        assert worst <= Fraction(MOST) * Fraction(EPSILON)


def test_the_random_programs_are_of_both_kinds() -> None:
    found = []
    for seed in range(30):
        before, after = both(lambda p, c, seed=seed: polynomial(p, c, random.Random(seed)))
        equal, reason = judged(before, after)
        found.append(equal and not reason)
    assert 5 < sum(found) < 25


def test_numbers_that_laws_name_are_known() -> None:
    """The digits of an inverse of a root, and of a logarithm, as those of a root."""
    with Session().on():
        root = apply(SQRT, (number(2),))
        for p in (root, apply(INVERSE, (add(root, number(1)),)), apply(LOG, (number(3),))):
            ((mono, _),) = p.items
            assert apart(mono)[1] is not None
