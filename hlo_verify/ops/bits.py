"""Logical operations, on truth values and on the bits of integers, and shifts."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index
from hlo_verify.ops.elementwise import disjunction, product, uninterpreted
from hlo_verify.ops.values import Context, Rule, Value, as_index, integer_range, result
from hlo_verify.program.element_types import integer_bits
from hlo_verify.program.ir import Op
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import typed
from hlo_verify.terms.laws import apply
from hlo_verify.terms.machine import remainder
from hlo_verify.terms.term import ONE, Apply, Poly, number


def _of_numbers(function: Callable[[int, int], int]) -> Callable[[Rule], Rule]:
    """The rule, but of two numbers the number that a machine makes of them; not of shifts by the width or more."""

    def decorated(rule: Rule) -> Rule:
        def known(op: Op, args: list[Value], context: Context) -> list[Value]:
            a, b = args[0].term.constant, args[1].term.constant
            dtype = op.types[0].dtype
            if dtype == "i1" or not isinstance(a, int) or not isinstance(b, int):
                return rule(op, args, context)
            lo, hi = integer_range(dtype)
            a, b = ((c - lo) % (hi - lo + 1) + lo for c in (a, b))
            if "shift" in op.name and not 0 <= b < integer_bits(op.types[0].dtype):
                return rule(op, args, context)
            if op.name == "shift_right_logical":
                a %= hi - lo + 1
            elif op.name == "shift_right_arithmetic" and lo == 0 and a > hi // 2:
                a -= hi + 1  # the sign bit is copied, of what has no sign too
            return result(op, number((function(a, b) - lo) % (hi - lo + 1) + lo))

        return known

    return decorated


@_of_numbers(operator.and_)
def _and(op: Op, args: list[Value], context: Context) -> list[Value]:
    if op.types[0].dtype == "i1":
        return result(op, product(args[0].term, args[1].term, "i1"))
    flags = _flags(args)
    if flags is not None:
        return result(op, product(*flags, "i1"))
    for value, mask in (args, args[::-1]):
        e, m = as_index(value), as_index(mask)
        if m.items:
            continue
        lowest = m.const & -m.const or 1
        if m.const >= 0 and (m.const + lowest) & m.const == 0:
            # the bits of one block: of a negative number too, as bits are modulo 2^n
            low = remainder(value.term, m.const + lowest, *integer_range(value.type.dtype))
            return result(op, algebra.of_index(expr.scale(expr.floor_div(low, lowest), lowest)))
        if m.const == -lowest:
            return result(op, algebra.of_index(expr.scale(expr.floor_div(e, lowest), lowest)))
    asked = _of_place(args)
    return result(op, algebra.of_index(_kept(*asked))) if asked else _joined(op, args)


def _of_place(args: list[Value]) -> tuple[Index, int] | None:
    """A place and the mask beside it, which has no sign: other numbers stay functions, so that what mixes their bits
    is the same function of them in both modules."""
    for value, mask in (args, args[::-1]):
        e, m = as_index(value), as_index(mask)
        if not m.items and m.const >= 0 and all(isinstance(part, Digit) for part, _ in e.items):
            return e, m.const
    return None


def _kept(e: Index, mask: int) -> Index:
    """The bits of a number that a mask has: bits side by side are one digit, of a negative number too."""
    kept = expr.constant(0)
    while mask:
        low = mask & -mask
        side_by_side = mask & ~(mask + low)
        digit = expr.digit_of(e, low, side_by_side // low + 1)
        kept, mask = expr.add(kept, expr.scale(digit, low)), mask ^ side_by_side
    return kept


def _flags(args: list[Value]) -> tuple[Poly, Poly] | None:
    """The truth values that two integers are the numbers of, if each is 0 or 1."""
    first, second = map(as_index, args)
    if min(first.lo, second.lo) < 0 or max(first.hi, second.hi) > 1:
        return None
    return guards.interval(first, 1, None), guards.interval(second, 1, None)


@_of_numbers(operator.or_)
def _or(op: Op, args: list[Value], context: Context) -> list[Value]:
    if op.types[0].dtype == "i1":
        return result(op, disjunction(args[0].term, args[1].term))
    flags = _flags(args)
    if flags is not None:
        return result(op, disjunction(*flags))
    return _side_by_side(op, args) or _with_mask(op, args, -1) or _joined(op, args)


def _side_by_side(op: Op, args: list[Value]) -> list[Value] | None:
    """The sum of two numbers of which one has no bits but those below all that the other has."""
    for low, high in (args, args[::-1]):
        below, above = as_index(low), as_index(high)
        unit = 1 << below.hi.bit_length() if below.lo >= 0 else 0
        if unit and all(n % unit == 0 for n in (above.const, *(c for _, c in above.items))):
            return result(op, algebra.of_index(expr.add(below, above)))
    return None


@_of_numbers(operator.xor)
def _xor(op: Op, args: list[Value], context: Context) -> list[Value]:
    flags = (args[0].term, args[1].term) if op.types[0].dtype == "i1" else _flags(args)
    if flags is not None:
        return result(op, algebra.add(*flags, algebra.scale(product(*flags, "i1"), -2)))
    for value, mask in (args, args[::-1]):
        e, m = as_index(value), as_index(mask)
        if not m.items and m.const >= 0 and (m.const + 1) & m.const == 0 and e.lo >= 0 and e.hi <= m.const:
            return result(op, algebra.of_index(expr.subtract(m, e)))  # all of its bits
    return _side_by_side(op, args) or _with_mask(op, args, -2) or _joined(op, args)


def _with_mask(op: Op, args: list[Value], by: int) -> list[Value] | None:
    """A place and a mask added up, and the bits that both have `by` times: `i ^ 1` is `i + 1 - 2*(i mod 2)`."""
    asked = _of_place(args)
    if asked is None:
        return None
    e, mask = asked
    return result(op, algebra.of_index(expr.shift(expr.add(e, expr.scale(_kept(e, mask), by)), mask)))


def _joined(op: Op, args: list[Value]) -> list[Value]:
    """`and`, `or` or `xor` as a function of all integers that are joined so, in any order: `(a ^ b) ^ c ^ b` is one of
    a and c. Numbers are joined to one; of `xor`, what is there twice is not there, and `~a` is a and all ones."""
    dtype, exclusive = op.types[0].dtype, op.name == "xor"
    lo, hi = integer_range(dtype)
    total = -1 if op.name == "and" else 0
    function, left = typed(op.name, (dtype, dtype), dtype), [value.term for value in reversed(args)]
    found: dict[Poly, None] = {}
    while left:
        p = left.pop()
        opposite = algebra.subtract(number(-1), p)
        if isinstance(p.constant, int):
            total = JOINS[op.name](total, p.constant)
        elif isinstance(p.atom, Apply) and (p.atom.function.name, p.atom.function.gives) == (op.name, dtype):
            left += reversed(p.atom.args)
        elif exclusive and p.atom is None and opposite.atom is not None:
            left += [number(-1), opposite]
        elif exclusive and p in found:
            del found[p]
        else:
            found[p] = None
    total = (total - lo) % (hi - lo + 1) + lo
    ones = hi if lo == 0 else -1
    if total == (0 if op.name == "and" else ones) and not exclusive:
        return result(op, number(total))
    terms = [*found, *([number(total)] if total != (ones if op.name == "and" else 0) else [])]
    if len(terms) < 2:
        return result(op, terms[0] if terms else number(total))
    return result(op, apply(replace(function, takes=(dtype,) * len(terms)), tuple(terms)))


JOINS = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def _not(op: Op, args: list[Value], context: Context) -> list[Value]:
    if op.types[0].dtype == "i1":
        return result(op, algebra.logical_not(args[0].term))
    integer_range(op.types[0].dtype)
    return result(op, algebra.subtract(number(-1), args[0].term))  # modulo 2^n


@_of_numbers(operator.lshift)
def _shift_left(op: Op, args: list[Value], context: Context) -> list[Value]:
    by = as_index(args[1])
    if by.lo >= 0 and by.hi < integer_bits(op.types[0].dtype) and all(isinstance(part, Digit) for part, _ in by.items):
        return result(op, product(args[0].term, _power_of_two(by), op.types[0].dtype))
    return uninterpreted(op, args)


def _power_of_two(e: Index) -> Poly:
    """`2**e` for a place e, by its bits, as JAX writes powers of integers: (1 + [bit 0]) * (1 + 3*[bit 1]) * ..."""
    if not e.items:
        return number(1 << e.const)
    found = ONE
    for bit in range(e.hi.bit_length()):
        is_set = guards.interval(expr.digit_of(e, 1 << bit, 2), 1, 1)
        found = algebra.multiply(found, algebra.add(ONE, algebra.scale(is_set, (1 << (1 << bit)) - 1)))
    return found


def _shift_right(signed: bool) -> Rule:
    """Division by a power of two, rounding down, where the sign bit is clear or (arithmetic shifts) copied."""

    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        e, by = as_index(args[0]), as_index(args[1])
        lo, hi = integer_range(op.types[0].dtype)
        plain = (e.lo >= 0 and e.hi <= hi // 2) if lo == 0 and signed else (e.lo >= 0 or signed)
        if not by.items and 0 <= by.const < integer_bits(op.types[0].dtype) and plain:
            return result(op, algebra.of_index(expr.floor_div(e, 1 << by.const)))
        return uninterpreted(op, args)

    return _of_numbers(operator.rshift)(rule)


RULES: dict[str, Rule] = {
    "and": _and,
    "or": _or,
    "xor": _xor,
    "not": _not,
    "shift_left": _shift_left,
    "shift_right_logical": _shift_right(signed=False),
    "shift_right_arithmetic": _shift_right(signed=True),
}
