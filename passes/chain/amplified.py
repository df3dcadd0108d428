"""Whether the rounding of constants stays a rounding in everything that a program computes.

A constant that stands for an expression (`folded_constants`) is that expression, but for a rounding, and over the reals
the program with the one is not that with the other. It is close to it as long as the rounding grows no larger relative
to what it is part of: in `x * 0.333333343 + y` it does not, in `x * 0.333333343 * 3 - x`, which would be 0 with 1/3,
there is nothing else left.

So the program is interpreted with an unknown factor on each such constant. In the term of every value, what comes out
where all factors are 1 is collected, monomial by monomial, with how much of it moves with them: a function or a named
term that has a factor inside moves as much as it is large, as any rounding of it would make it. Irrational numbers
count by their digits (`constant_terms`): little is left of `x * sqrt(2) - x * 1.41421354`.

What moves more, in roundings, than `grown_roundings` times the sum of a monomial's coefficients, in some case of what
selects there (`moving_sums`), is amplified. A function of nothing but constants that move, or a decision that depends
on these alone, is amplified too, and so is a step: `floor(x * 0.333333343 * 3)` is another integer than `floor(x)`
where x is one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, log2
from typing import TYPE_CHECKING

from hlo_verify.equality.opening import opened
from hlo_verify.limits import allows, limit_of
from hlo_verify.ops.counting import UNCOUNTED, shape_of
from hlo_verify.ops.in_floats import is_of_floats
from hlo_verify.ops.values import Context, UnsupportedError, Value
from hlo_verify.passes.chain.constant_terms import apart, is_number
from hlo_verify.passes.chain.constant_values import Computed, Key
from hlo_verify.passes.chain.moving_sums import Addend, growth
from hlo_verify.passes.chain.near_zero import CHOOSING, COMPARISONS, hangs_on_what_is_near_zero
from hlo_verify.passes.chain.steady_signs import keeps_its_sign
from hlo_verify.passes.chain.steep import TAME, Slopes
from hlo_verify.passes.prove.interpret import interpret
from hlo_verify.passes.prove.start import begin
from hlo_verify.program.ir import Function, Module, Name, Op
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import INVERSE
from hlo_verify.terms.places import values_in_places
from hlo_verify.terms.renaming import Leaves, Renaming
from hlo_verify.terms.term import (
    ONE,
    Apply,
    Atom,
    Monomial,
    Number,
    Poly,
    Read,
    Tensor,
    decimal,
    make_poly,
    of_atom,
    tensor,
)

if TYPE_CHECKING:
    from hlo_verify.passes.chain.rounded_tables import Part

_STEPS = frozenset({"floor", "ceil", "round_nearest_afz", "round_nearest_even", "truncate", "remainder", "sign"})
"""Functions that are other numbers on either side of a place, however close."""

SHIFTS = 0.137, 0.637
"""Where powers of two are parted from the next, in two ways: numbers that are nearly alike are so in one of them."""

_NOTHING_ELSE = "all that is left is that rounding"
_LITTLE_ELSE = "little else than that rounding may be left of functions that differ by numbers alone"
_A_STEP = "that rounding decides which side of a step it is on"
_A_SLOPE = "a function of it has a slope without bound, or ends"
_NEAR_ZERO = "something hangs on elements alone that are nearly 0, of which that rounding makes others"
_A_CHOICE = "that rounding decides which of elements comes first that are equal without it"
_A_LOOP = "it is rounded in each of many turns of a loop, or of who knows how many"


@dataclass(frozen=True, slots=True)
class Amplified:
    """An operation whose result moves by more than the rounding of constants: in words, what becomes of it."""

    operation: str
    location: str
    grown: str
    constants: tuple[str, ...]
    """What the roundings are of, in words."""

    def __str__(self) -> str:
        at = f"{self.operation} ({self.location})" if self.location else self.operation
        said = f"the constant {', '.join(self.constants)}, rounded; in the result of {at} {self.grown}"
        return f"{said}, so it does not cover the difference"


def amplified(
    logical: Module, partitioned: Module, meant: Mapping[Name, Computed | Part], session: Session
) -> Amplified | None:
    """Where the logical module of a pair amplifies the roundings of constants; None where it does nowhere.

    `meant` are the values that stand for a constant. The partitioned module only says how arguments lie. Raises
    `TimeUpError` where the session's time is up; the terms that are made here are none of its own.
    """
    if not any(found.is_rounded for found in meant.values()):
        return None
    session.phase = "it was looked at whether a rounding stays one"
    with Session(session.limits, session.deadline).on():
        looking = _Looking(meant, session)
        both = begin(logical, partitioned, looking.run)
        looking.run(logical.main, both.wholes, both.plain)
        return looking.found


@dataclass(slots=True)
class _Looking:
    """One interpretation with factors on constants."""

    meant: Mapping[Name, Computed | Part]
    session: Session
    found: Amplified | None = None
    factors: dict[Key, Tensor] = field(default_factory=dict)
    roundings: dict[Tensor, int] = field(default_factory=dict)
    near_zero: dict[Tensor, float] = field(default_factory=dict)
    """Those of tables some of whose elements are nearly 0, with the greatest of these."""
    leaves: Leaves = field(default_factory=Leaves)
    turns: int = 1
    """How often what is looked at is done, as far as loops around it say so."""
    _exact: _Exact | None = None
    _seen: set[int] = field(default_factory=set)

    def run(self, function: Function, arguments: Sequence[Value], context: Context) -> list[Value]:
        """As `interpret.run`."""
        environment = context.environment
        environment.update(zip(function.arguments, arguments, strict=True))
        for op in function.ops:
            self.session.check()
            operands = [environment[v] for v in op.operands]
            around = self.turns
            self.turns *= _turns_of(op, operands, context)
            values = interpret(op, operands, context)
            self.turns = around
            if self.found is None:
                values = [self._seen_in(op, value) for value in values]
            environment.update(zip(op.results, values, strict=True))
        return [environment[v] for v in function.results]

    def _seen_in(self, op: Op, value: Value) -> Value:
        """A value with a factor where it stands for a constant; any other one is looked at."""
        found = self.meant.get(op.results[0]) if op.results else None
        if found is not None and found.is_rounded:
            return Value(value.type, algebra.multiply(value.term, algebra.read(self._factor(found), ())))
        worst = self._worst(value.term)
        if worst is not None:
            self.found = Amplified(op.name, str(op.location), worst, tuple(self._constants(value.term)))
        return value

    def _constants(self, p: Poly) -> list[str]:
        """The constants whose rounding is part of a term, in words."""
        inside = self.leaves.of(p)
        return [
            found.meaning
            for found in {found.key: found for found in self.meant.values()}.values()
            if self.factors.get(found.key) in inside
        ]

    def _factor(self, found: Computed | Part) -> Tensor:
        factor = self.factors.get(found.key)
        if factor is None:
            factor = self.factors[found.key] = tensor("argument", f"rounding of {found.meaning}", found.dtype, ())
            self.roundings[factor] = found.roundings
            if found.near_zero:
                self.near_zero[factor] = found.near_zero
            self._exact, self._seen = None, set()
        return factor

    def _worst(self, p: Poly) -> str | None:
        """What becomes of a rounding in a term, or in something inside of it, if it does not stay one."""
        if self._is_still(p):
            return None
        if self.turns > 1 and not allows("rounded_turns", self.turns * max(self.roundings.values())):
            self.session.reached("rounded_turns")
            return _A_LOOP
        if p.uid in self._seen:
            return None
        self._seen.add(p.uid)
        for part in _parts(p):
            worst = self._worst(part)
            if worst is not None:
                return worst
        if self._decides_by_constants(p):
            return _NOTHING_ELSE
        if self._is_a_choice(p):
            return _A_CHOICE
        if self.near_zero and hangs_on_what_is_near_zero(p, self.near_zero):
            return _NEAR_ZERO
        if Slopes(self.roundings, self._is_still, self._exact_terms().poly).is_steep(p):
            return _A_SLOPE
        return _A_STEP if self._is_a_step(p) else self._sums(p)

    def _is_a_step(self, p: Poly) -> bool:
        """Whether what moves is the argument of a step, but for signs that no rounding changes, or of what floats give,
        of which more is not known."""
        return any(self._steps(atom) for mono, _ in p.items for atom, _ in mono)

    def _steps(self, atom: Atom) -> bool:
        parts = atom.args if isinstance(atom, Apply) else atom.tensor.bodies if isinstance(atom, Read) else ()
        name = atom.function.name if isinstance(atom, Apply) else ""
        if not (is_of_floats(atom) or name in _STEPS) or all(map(self._is_still, parts)):
            return False
        return name != "sign" or not keeps_its_sign(parts[0], self.roundings, self._is_still)

    def _is_a_choice(self, p: Poly) -> bool:
        """Whether what chooses among elements is given, under different conditions, some that are the same but for a
        rounding, wherever they are read: `argmax([0.9*x + 0.1*x, x])`."""
        chosen = (atom for mono, _ in p.items for atom, _ in mono if isinstance(atom, Read))
        bodies = (body for atom in chosen if atom.tensor.kind in CHOOSING for body in atom.tensor.bodies)
        return any(not self._is_still(body) and self._are_told_apart(opened(body)) for body in bodies)

    def _are_told_apart(self, elements: Poly) -> bool:
        under: dict[Monomial, list[Poly]] = defaultdict(list)
        for mono, c in elements.items:
            held = tuple(item for item in mono if item[0].boolean)
            under[held].append(make_poly(((tuple(item for item in mono if not item[0].boolean), c),)))
        pieces = [algebra.add(*parts) for parts in under.values()]
        forms: dict[int, set[int]] = defaultdict(set)
        for piece in pieces:
            forms[self._exact_terms().poly(piece).skey].add(piece.skey)
        return any(len(rounded) > 1 for rounded in forms.values())

    def _is_still(self, p: Poly) -> bool:
        """Whether there is no factor in a term."""
        return self.leaves.of(p).isdisjoint(self.roundings)

    def _sums(self, p: Poly) -> str | None:
        """The same for the sum that a term is."""
        worst = growth(self._addends(p))
        if worst is None:
            return _NOTHING_ELSE
        if not allows("grown_roundings", ceil(worst)):
            self.session.reached("grown_roundings")
            return f"its rounding is {decimal(worst, 3)} times as large, more than {limit_of('grown_roundings')}"
        return _LITTLE_ELSE if self._is_left_of_functions(p) else None

    def _addends(self, p: Poly) -> Iterator[Addend]:
        """The products that a term is the sum of, with all factors 1. What selects, and does not move, stays apart."""
        exact = self._exact_terms()
        for mono, c in p.items:
            held = tuple((atom, n) for atom, n in mono if atom.boolean and self._is_still(of_atom(atom)))
            weight = self._weight(mono)
            rounded = tuple(item for item in mono if item not in held)
            for product, k in exact.poly(make_poly(((rounded, 1),))).items:
                whole, number = apart(product)
                size = Fraction(c) * Fraction(k) * (1 if number is None else number)
                yield Addend(held, whole, (rounded, product), size, number is not None, weight)

    def _is_left_of_functions(self, p: Poly) -> bool:
        """Whether functions in a sum, in which a rounding is, are nearly opposite if numbers in them of about one
        size are taken for one: `max(x*T, y) - max(x, y)`, where elements of T may be nearly 1."""
        if not any(c < 0 for _, c in p.items) or not any(c > 0 for _, c in p.items):
            return False
        if not any(self._is_inside(atom) for mono, _ in p.items for atom, _ in mono):
            return False
        return any(self._is_left(p, bare) for bare in self._exact_terms().bare)

    def _is_left(self, p: Poly, bare: _Bare) -> bool:
        total: dict[int, Fraction] = defaultdict(Fraction)
        moving: dict[int, Fraction] = defaultdict(Fraction)
        for mono, c in p.items:
            alike = bare.product(mono).skey
            total[alike] += Fraction(c)
            moving[alike] += abs(Fraction(c)) * self._weight(mono)
        return any(moved > limit_of("grown_roundings") * abs(total[alike]) for alike, moved in moving.items())

    def _is_inside(self, atom: Atom) -> bool:
        """Whether a rounding is inside of a function or a definition, but for one that is divided by."""
        return not self._is_still(of_atom(atom)) and self._own(atom) is None

    def _own(self, atom: Atom) -> int | None:
        """How many roundings a factor is, or the inverse of one; None of any other atom."""
        inside = atom.args[0].atom if isinstance(atom, Apply) and atom.function == INVERSE else atom
        return self.roundings.get(inside.tensor) if isinstance(inside, Read) else None

    def _weight(self, mono: Monomial) -> Fraction:
        """By how many roundings a product moves."""
        weight = Fraction(0)
        for atom, power in mono:
            own = self._own(atom)
            if own is not None:
                weight += abs(Fraction(power)) * own
            elif not self._is_still(of_atom(atom)):
                weight += abs(Fraction(power)) * max(1, self._exponent(atom) or 0)
        return weight

    def _exponent(self, atom: Atom) -> Fraction | None:
        """How many roundings move the exponential of a number: as many as move that number, as many times as it is
        large. None of another function, or where the number is not known."""
        if not isinstance(atom, Apply) or atom.function.name != "exponential":
            return None
        moved = Fraction(0)
        for mono, c in atom.args[0].items:
            for product, k in self._exact_terms().poly(make_poly(((mono, c),))).items:
                rest, value = apart(product)
                if rest or value is None:
                    return None
                moved += abs(Fraction(k) * value) * self._weight(mono)
        return moved

    def _decides_by_constants(self, p: Poly) -> bool:
        """Whether a function in a term, or an index, is of nothing but constants, some of which move."""
        exact = self._exact_terms()
        for mono, _ in p.items:
            for atom, _ in mono:
                given = (*values_in_places(atom), *(atom.args if isinstance(atom, Apply) else ()))
                tame = isinstance(atom, Apply) and (atom.function.name in TAME or self._exponent(atom) is not None)
                moves = not tame and not all(map(self._is_still, given))
                if moves and all(is_number(exact.poly(q)) for q in given):
                    return True
        return False

    def _exact_terms(self) -> _Exact:
        if self._exact is None:
            self._exact = _Exact(self.roundings, self.leaves)
        return self._exact


def _turns_of(op: Op, operands: list[Value], context: Context) -> int:
    """How often the regions of an operation are run at the most: more than anything where data decide that."""
    if op.name != "while":
        return 1
    try:
        shape = shape_of(op, operands, replace(context, observe=None, unsupported={}))
    except UnsupportedError:
        return UNCOUNTED
    return max(shape.trips, 1)


class _Exact(Renaming):
    """Terms with all factors 1, normalised again."""

    def __init__(self, factors: Collection[Tensor], leaves: Leaves) -> None:
        super().__init__({factor: factor for factor in factors}, leaves)
        self.bare = [_Bare(self._mapping, leaves, shift) for shift in SHIFTS]

    def _atom(self, atom: Atom) -> Poly:
        if isinstance(atom, Read) and atom.tensor in self._mapping:
            return ONE
        return super()._atom(atom)


class _Bare(Renaming):
    """Terms with a power of two for each number inside of a function, and 1 for tables of numbers."""

    def __init__(self, mapping: Mapping[Tensor, Tensor], leaves: Leaves, shift: float) -> None:
        super().__init__(mapping, leaves)
        self._shift = shift

    def product(self, mono: Monomial) -> Poly:
        """A product, with what its functions are of laid bare."""
        return algebra.with_atoms(make_poly(((mono, 1),)), super()._atom)

    def poly(self, p: Poly) -> Poly:
        """A term laid bare."""
        found = self._polys.get(p.uid)
        if found is None:
            laid = algebra.with_atoms(p, self._atom)
            found = self._polys[p.uid] = make_poly(tuple((mono, self._coarse(c)) for mono, c in laid.items))
        return found

    def _coarse(self, c: Number) -> Number:
        above, below = abs(Fraction(c)).as_integer_ratio()
        power = round(log2(above) - log2(below) + self._shift)
        return (1 if c > 0 else -1) * (1 << power if power >= 0 else Fraction(1, 1 << -power))

    def _atom(self, atom: Atom) -> Poly:
        is_table = not atom.boolean and all(map(self._is_number, self._leaves.of(of_atom(atom))))
        return ONE if is_table else super()._atom(atom)

    def _is_number(self, leaf: Tensor) -> bool:
        return leaf in self._mapping or leaf.kind == "constant"


def _parts(p: Poly) -> Iterator[Poly]:
    """The terms that a term is made of, one level down: arguments of functions, what definitions are of, values in
    indices; and of what compares two terms, the difference."""
    for mono, _ in p.items:
        for atom, _ in mono:
            if isinstance(atom, Apply):
                yield from atom.args
                if atom.function.name in COMPARISONS and not atom.function.is_name:
                    yield algebra.subtract(*atom.args)
            elif isinstance(atom, Read):
                yield from atom.tensor.bodies
            yield from values_in_places(atom)
