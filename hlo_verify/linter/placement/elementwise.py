"""Values that operations compute element by element."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.shapes import Array, bits_of
from hlo_verify.linter.placement import opcodes
from hlo_verify.linter.placement.devices import Devices
from hlo_verify.linter.placement.values import (
    MOST_STATISTICS,
    MOST_TERMS,
    NOTHING,
    Dimension,
    Labels,
    Local,
    Numbers,
    Partial,
    Reduced,
    Stage,
    Term,
    Value,
    is_dense,
    is_nonzero,
    merged,
    together,
)


@dataclass(frozen=True, slots=True)
class Place:
    """The instruction that findings name: of a fusion, the fusion. `order` counts them as they run."""

    name: str
    order: int


def elementwise(instruction: Instruction, given: Sequence[Value], devices: Devices, place: Place) -> Value:
    """The result of an elementwise operation. A product of elements that two dimensions are spread over, and that were
    taken out of them alone, is an addend: the contraction of a dimension of one element."""
    opcode = instruction.opcode
    names = [operand.name for operand in instruction.operands]
    whole, some = _dependence(opcode, names, given)
    lost = NOTHING.union(*(value.lost for value in given))
    addends = partials(opcode, given, place)
    if opcode == "multiply" and len(given) == 2 and (met := given[0].lost & given[1].lost):
        addends = together(
            addends, tuple(Partial(label, place.order, place.name, called=instruction.op_name) for label in sorted(met))
        )
        lost -= met
    terms = _terms(opcode, given)
    if terms is not None:
        whole, some = NOTHING.union(*(one.whole for one in terms)), NOTHING.union(*(one.some for one in terms))
    method = devices.finer(*(value.method for value in given))
    if opcode == "select" and len(given) == 3 and (found := _looked_up(given, method, devices)):
        addends, method = found, devices.one
    return Value(
        whole,
        some,
        method,
        devices.finer(*(value.alike for value in given)),
        shared(given),
        number(instruction, given),
        given[0].elements if opcode == "copy" else None,
        opcode != "is-finite" and all(value.is_constant for value in given),
        addends,
        sums(opcode, given),
        lost,
        opcodes.is_linear(opcode) and any(value.hidden for value in given),
        terms if terms and len(terms) <= MOST_TERMS else (),
        statistics_of(given),
    )


def statistics_of(given: Sequence[Value]) -> frozenset[Local]:
    """The statistics that values are computed from, but for those that meet elements of their dimension; none where
    there are too many."""
    found: frozenset[Local] = frozenset().union(*(value.statistics for value in given))
    if found:
        spread = NOTHING.union(*(dimension for value in given for dimension in value.dimensions if dimension))
        found = frozenset(one for one in found if one.label not in spread)
    return found if len(found) <= MOST_STATISTICS else frozenset()


def _looked_up(given: Sequence[Value], method: int, devices: Devices) -> tuple[Partial, ...]:
    """The addends of a lookup in a table that is split over devices: each device has zero for what is not in its part.

    It is `sum v. [index = v] * table[v]` over its part, by one function: that offset and mask are the device's own says
    no more than which part it has.
    """
    chosen = [value for value in given[1:] if value.number is None]
    zeros = [value for value in given[1:] if value.number is not None and not any(value.number)]
    if len(chosen) != 1 or len(zeros) != 1 or devices.covers(given[0].alike, devices.one):
        return ()
    split = [one for one in chosen[0].partials if one.doubted and one.label == method]
    if not split or not any(devices.covers(split[0].label, label) for label in chosen[0].whole):
        return ()
    return together(*(tuple(replace(one, doubted=one not in split and one.doubted) for one in chosen[0].partials),))


def _terms(opcode: str, given: Sequence[Value]) -> tuple[Term, ...] | None:
    """What a sum or a multiple is the sum of; None for another operation, and for too many terms."""
    factors = _factors(opcode, given)
    if factors is None:
        return None
    times: dict[str, Fraction] = {}
    terms: dict[str, Term] = {}
    for value, factor in zip(given, factors, strict=True):
        for one in value.terms if factor else ():
            times[one.name] = times.get(one.name, Fraction(0)) + one.times * factor
            terms[one.name] = one
    kept = [replace(one, times=times[name]) for name, one in sorted(terms.items()) if times[name]]
    kept = [_doubted(one) if any(_met(one, other) for other in kept) else one for one in kept]
    return tuple(kept)


def _met(one: Term, other: Term) -> bool:
    return one is not other and not one.roots.isdisjoint(other.roots)


def _doubted(one: Term) -> Term:
    """A term that another one may cancel."""
    return replace(one, whole=NOTHING, some=NOTHING)


def _factors(opcode: str, given: Sequence[Value]) -> list[Fraction] | None:
    """How often each operand is in a result; None where that is not said by numbers."""
    match opcode:
        case "add":
            return [Fraction(1)] * len(given)
        case "subtract":
            return [Fraction(1), Fraction(-1)]
        case "negate":
            return [Fraction(-1)]
        case "copy" | "convert" | "reduce-precision":
            return [Fraction(1)]
        case "multiply" | "divide":
            one, other = (value.number for value in given)
            if other is not None and len(set(other)) == 1 and (other[0] or opcode == "multiply"):
                return [other[0] if opcode == "multiply" else 1 / other[0], Fraction(0)]
            if opcode == "multiply" and one is not None and len(set(one)) == 1:
                return [Fraction(0), one[0]]
    return None


def shared(given: Sequence[Value]) -> tuple[Dimension, ...]:
    """How the dimensions are spread that operands share."""
    rank = max((len(value.dimensions) for value in given), default=0)
    shaped = [value.dimensions for value in given if len(value.dimensions) == rank]
    found = shaped[0]
    for other in shaped[1:]:
        found = tuple(map(merged, found, other))
    return found


def _dependence(opcode: str, names: Sequence[str], given: Sequence[Value]) -> tuple[Labels, Labels]:
    """By what each element differs, and by what one of them does. What a value is less or over itself says nothing."""
    if opcode == "is-finite" or (len(names) == 2 and names[0] == names[1] and opcode in _OF_ITSELF):
        return NOTHING, NOTHING
    if opcode == "select" and len(given) == 3:
        return _selected(given)
    if opcode in ("multiply", "and", "divide") and len(given) == 2 and names[0] != names[1]:
        return product(given[0], given[1], divides=opcode == "divide")
    return NOTHING.union(*(value.whole for value in given)), NOTHING.union(*(value.some for value in given))


_OF_ITSELF = ("subtract", "divide", "compare", "xor", "remainder")


def _selected(given: Sequence[Value]) -> tuple[Labels, Labels]:
    """A choice that depends on the inputs may fall on either side; one that does not is made for good."""
    chooser, one, other = given
    if chooser.whole:
        chosen = chooser.whole if one != other else NOTHING
        return one.whole | other.whole | chosen, one.some | other.some | chosen
    if chooser.is_constant and chooser.dimensions:
        return one.whole & other.whole, one.whole | other.whole
    return one.whole & other.whole, one.some & other.some


def product(one: Value, other: Value, *, divides: bool = False) -> tuple[Labels, Labels]:
    """By what a product differs: by what a factor does, where the other is not zero."""
    whole, some = NOTHING, NOTHING
    for value, factor, is_divisor in ((one, other, divides), (other, one, False)):
        if is_divisor or is_dense(factor):
            whole |= value.whole
            some |= value.some
        elif is_nonzero(factor):
            some |= value.whole
    return whole, some


def number(instruction: Instruction, given: Sequence[Value]) -> Numbers | None:
    """The number that each device computes, where those of the operands are known."""
    known = [value.number for value in given if value.number is not None]
    rule = _NUMBERS.get(f"{instruction.opcode} {instruction.attributes.get('direction', '')}".strip())
    if rule is None or len(known) < len(given):
        return None
    try:
        found = tuple(Fraction(rule(*row)) for row in zip(*known, strict=True))
    except (ValueError, ZeroDivisionError, TypeError):
        return None
    dtype = instruction.shape.dtype if isinstance(instruction.shape, Array) else ""
    if not dtype.startswith(("s", "u")):
        return found
    bits = bits_of(dtype)
    low, high = (-(1 << bits - 1), 1 << bits - 1) if dtype.startswith("s") else (0, 1 << bits)
    return found if all(low <= one < high and one.denominator == 1 for one in found) else None


_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negate": operator.neg,
    "maximum": max,
    "minimum": min,
    "compare EQ": operator.eq,
    "compare NE": operator.ne,
    "compare LT": operator.lt,
    "compare LE": operator.le,
    "compare GT": operator.gt,
    "compare GE": operator.ge,
    "copy": Fraction,
    "convert": Fraction,
    "clamp": lambda low, one, high: min(max(low, one), high),
    "and": lambda one, other: int(one) & int(other),
    "or": lambda one, other: int(one) | int(other),
    "shift-right-logical": lambda one, by: int(one) >> int(by) if min(one, by) >= 0 else None,
    "remainder": lambda one, by: one % by if min(one, by) >= 0 else None,
    "select": lambda chosen, one, other: one if chosen else other,
}
"""What elementwise operations do to numbers, where nothing overflows. Floats are not rounded: equal ones stay equal."""


def partials(opcode: str, given: Sequence[Value], place: Place) -> tuple[Partial, ...]:
    """What becomes of addends: sums keep them, factors that are no addends do, all else does not."""
    if not any(value.partials for value in given):
        return ()
    if opcodes.adds(opcode) or opcode in opcodes.CHANGES_NO_VALUE:
        return together(*(value.partials for value in given))
    if opcode == "select":
        return together(bent(given[0].partials, place), given[1].partials, given[2].partials)
    if opcode == "multiply":
        return multiplied(given[0], given[1], place)
    if opcode == "divide":
        return together(given[0].partials, bent(given[1].partials, place))
    return together(*(bent(value.partials, place) for value in given))


def multiplied(one: Value, other: Value, place: Place) -> tuple[Partial, ...]:
    """The addends of a product. Products of one value's addends with its own are a power of it."""
    labels = {a.label for a in one.partials if not a.doubted} & {b.label for b in other.partials if not b.doubted}
    if not labels:
        return together(one.partials, other.partials)
    origins = {a.origin for a in one.partials if a.label in labels}
    same = origins == {b.origin for b in other.partials if b.label in labels}
    stage = Stage.NONLINEAR if same else Stage.PRODUCT
    both = together(one.partials, other.partials)
    return tuple(_moved(a, stage, place) if a.label in labels else a for a in both)


def bent(all_of: Sequence[Partial], place: Place) -> tuple[Partial, ...]:
    """Addends after a function that is not linear."""
    return tuple(_moved(one, Stage.NONLINEAR, place) for one in all_of)


def _moved(one: Partial, stage: Stage, place: Place) -> Partial:
    return replace(one, stage=stage, at=place.name) if one.stage is Stage.LINEAR else one


def sums(opcode: str, given: Sequence[Value]) -> frozenset[Reduced]:
    """What a result is a multiple of, or the sum of such."""
    found: frozenset[Reduced] = frozenset().union(*(value.sums for value in given))
    if not found:
        return found
    if opcodes.adds(opcode) or opcode in opcodes.CHANGES_NO_VALUE or opcode in ("select", "abs"):
        return found
    if opcode in ("maximum", "minimum") and any(value.number and not any(value.number) for value in given):
        return found  # of a multiple of a positive number, `max(x, 0)` is that multiple
    if opcode in ("multiply", "divide") and len(given) == 2:
        for value, factor in ((given[0], given[1]), (given[1], given[0])):
            if value.sums and factor.number and factor.number[0] and (opcode == "multiply" or value is given[0]):
                by = factor.number[0] if opcode == "multiply" else 1 / factor.number[0]
                return frozenset(replace(one, factor=one.factor * by) for one in value.sums)
    return frozenset()
