"""What floats do with numbers that hang on no argument, where they may decide otherwise than real numbers
(`passes.load.float_jumps`).

Operations that may round are functions of floats then, of which is known that they give the same of the same; whatever
is decided by these numbers is decided as floats have them. Tensors of which only some elements hang on no argument are
real numbers elsewhere: comparisons and roundings of them are functions of their elements and of how these were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hlo_verify.ops.values import Context, Rule, Value, exact_integer, function_of, result, whole
from hlo_verify.program.element_types import is_float, is_integer
from hlo_verify.program.ir import AS_FLOATS, FINITE, IN_FLOATS, INFINITE, MADE_BY, Op
from hlo_verify.program.op_families import CHOOSES, ELEMENTWISE, plain_name
from hlo_verify.terms import algebra
from hlo_verify.terms.doubts import FINITE_IN_FLOATS
from hlo_verify.terms.functions import EQUAL_IN_FLOATS, GREATER_IN_FLOATS, typed
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ZERO, Apply, Atom, Poly, Read


def is_of_floats(atom: Atom) -> bool:
    """Whether an atom is what floats give or decide, of which more is not known."""
    if isinstance(atom, Apply):
        return atom.function.name.endswith(IN_FLOATS)
    return isinstance(atom, Read) and atom.tensor.kind.endswith(IN_FLOATS)


def compared(direction: str, a: Poly, b: Poly, made_by: str = "") -> Poly:
    """A comparison, by `GT`, `LE`, `EQ` or `NE`, of numbers that were made so, if that is known."""
    function = GREATER_IN_FLOATS if direction in ("GT", "LE") else EQUAL_IN_FLOATS
    test = apply(replace(function, attributes=((MADE_BY, made_by),) if made_by else ()), (a, b))
    return algebra.logical_not(test) if direction in ("LE", "NE") else test


def rounded(op: Op, args: list[Value]) -> list[Value]:
    """Another rounding, of numbers that were made as its mark says."""
    given = op.types[0].dtype
    function = typed(
        f"{op.name}_{IN_FLOATS}",
        ("real",) * len(args),
        "real" if is_float(given) else given,
        {MADE_BY: op.attributes[IN_FLOATS]},
    )
    return result(op, apply(function, tuple(arg.term for arg in args)))


def chosen(op: Op, args: list[Value]) -> list[Value]:
    """What compares elements with each other, that were made as its mark says: functions of all elements."""
    made_by = op.attributes[IN_FLOATS]
    return [
        Value(type_, whole(f"{op.name}_{IN_FLOATS}", (made_by, n), args, type_)) for n, type_ in enumerate(op.types)
    ]


def unless_made_so(rule: Rule) -> Rule:
    """The rule of a rounding, or of what compares elements, but of numbers that were made as a mark says."""

    def checked(op: Op, args: list[Value], context: Context) -> list[Value]:
        if not op.attributes.get(IN_FLOATS):
            return rule(op, args, context)
        return chosen(op, args) if op.name in CHOOSES else rounded(op, args)

    return checked


def unless_of_floats(rule: Rule) -> Rule:
    """The rule of an operation, but of one that is a function of floats."""

    def checked(op: Op, args: list[Value], context: Context) -> list[Value]:
        if AS_FLOATS not in op.attributes:
            return rule(op, args, context)
        size, _, beside = op.attributes[AS_FLOATS].partition(" ")
        if not size:  # where floats do not tell, real numbers do
            size = INFINITE if any(each.term.doubt for each in rule(op, args, context)) else FINITE
        said = {AS_FLOATS: size, "beside": beside}
        if op.name == "iota":  # places that are converted
            return _of_each(replace(op, name="convert"), rule(op, args, context), said)
        return _of_each(op, args, said) if op.name in ELEMENTWISE else _of_many(op, args, said)

    return checked


def _of_each(op: Op, args: list[Value], said: Mapping[str, str]) -> list[Value]:
    """A function of one element of each operand. `a - b` is a sum in floats, too, and operands of sums and products may
    be exchanged."""
    name = plain_name(op.name)
    terms = [exact_integer(arg) if is_integer(arg.type.dtype) else arg.term for arg in args]
    if name == "subtract":
        name, terms = "add", [terms[0], algebra.subtract(ZERO, terms[1])]
    about = {k: int(op.attributes[k]) for k in ("exponent_bits", "mantissa_bits") if k in op.attributes}
    taken, given = tuple(_kind(arg.type.dtype) for arg in args), _kind(op.types[0].dtype)
    function = typed(f"{name}_{IN_FLOATS}", taken, given, {**about, **said, "dtype": op.types[0].dtype})
    return result(op, apply(function, tuple(terms)))


def _kind(dtype: str) -> str:
    return "real" if is_float(dtype) else dtype


def _of_many(op: Op, args: list[Value], said: Mapping[str, str]) -> list[Value]:
    """A function of all elements; of a reduction, of all along the dimensions that it reduces."""
    kind = FINITE_IN_FLOATS if said[AS_FLOATS] == FINITE else IN_FLOATS
    found = []
    for n, type_ in enumerate(op.types):
        key = op.name, n, said["beside"]
        if op.name == "reduce":
            along = op.attributes["dimensions"]
            of = [(arg, along if arg.shape else ()) for arg in args]
            found.append(Value(type_, function_of(kind, key, of, type_, ())))
        else:
            found.append(Value(type_, whole(kind, key, args, type_)))
    return found
