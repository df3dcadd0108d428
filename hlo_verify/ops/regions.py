"""What a reducer or comparator region computes: a monoid, the best of pairs, or a function known by its terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product as every
from typing import Any

from hlo_verify.diagnostics import Unsupported
from hlo_verify.equality import opening
from hlo_verify.memory import per_session
from hlo_verify.ops.elementwise import disjunction, product
from hlo_verify.ops.values import (
    Context,
    UnsupportedError,
    Value,
    exact_integer,
    integer_range,
    operand_of_type,
    positions,
    require_arithmetic,
)
from hlo_verify.program.element_types import COMPARED, compare_types, is_float, is_integer
from hlo_verify.program.ir import Function, Op, TensorType, taken_from_outside
from hlo_verify.program.op_families import is_one_expression
from hlo_verify.terms import algebra, extrema, sums
from hlo_verify.terms.doubts import UNDEFINED
from hlo_verify.terms.functions import EXTREMA
from hlo_verify.terms.laws import apply
from hlo_verify.terms.no_number import infinity
from hlo_verify.terms.term import ONE, ZERO, Poly, Tensor, make_read, mix, next_uid, number, of_atom

MONOIDS = {"add": "sum", "multiply": "product", "maximum": "max", "minimum": "min", "and": "and", "or": "or"}
_OF_TRUTH_VALUES = {"sum": "or", "product": "and", "max": "or", "min": "and"}

placeholders: Callable[[], dict[tuple[int, TensorType], Tensor]] = per_session("arguments of regions", dict)


def placeholder(n: int, type_: TensorType) -> Tensor:
    """The symbol for the n-th argument of a region."""
    known = placeholders()
    found = known.get((n, type_))
    if found is None:
        found = Tensor("argument", f"a{n}", type_.dtype, type_.shape, next_uid(), mix("placeholder", n, str(type_)))
        found.doubt = UNDEFINED if is_float(type_.dtype) else 0  # a region is applied to whatever there is
        known[n, type_] = found
    return found


def _symbols(region: Function) -> list[Value]:
    types = enumerate(region.argument_types)
    return [Value(type_, of_atom(make_read(placeholder(n, type_), positions(type_.shape)))) for n, type_ in types]


def region_terms(region: Function, context: Context) -> tuple[Poly, ...]:
    """The region's results as terms over its arguments' symbols: equal terms are equal functions.

    Raises `UnsupportedError` where the region is not understood, or depends on more than its arguments.
    """
    if _is_about_another(region, context):
        raise UnsupportedError("a region that uses arguments of the region around it", Unsupported.REGION)
    inner = replace(context, device=None, mesh=None, observe=None, unsupported={})
    values = context.run(region, _symbols(region), inner)
    for unknown in inner.unsupported.values():
        raise UnsupportedError(f"a region that is not understood ({unknown.message})", Unsupported.REGION)
    inside = {position for type_ in region.argument_types for e in positions(type_.shape) for position in e.free}
    if any(not value.term.free <= inside for value in values):
        raise UnsupportedError("a region that uses values of the program around it", Unsupported.REGION)
    return tuple(value.term for value in values)


def _is_about_another(region: Function, context: Context) -> bool:
    """Whether a region refers to arguments of one around it, which have the same symbols as its own."""
    symbols = frozenset(placeholders().values())
    around = (context.environment[name].term for name in taken_from_outside(region))
    return any(symbols & opening.ingredients(term) for term in around)


def monoid(region: Function, context: Context) -> str | None:
    """The reducer's name where a region of two arguments is one commutative, associative operation on them."""
    return next(iter(monoids(region, context) or ()), None) if len(region.arguments) == 2 else None


def monoids(region: Function, context: Context) -> tuple[str, ...] | None:
    """The reducer of each result where result i is a recognised operation on arguments i and n + i alone."""
    count = len(region.results)
    if len(region.arguments) != 2 * count:
        return None
    if count == 1:
        found = _plain_monoid(region)
        if found is not None:
            return (found,)
    terms, symbols = region_terms(region, context), _symbols(region)
    names = []
    for n, term in enumerate(terms):
        reducer = _monoid_of(term, symbols[n], symbols[count + n])
        if reducer is None:
            return None
        names.append(reducer)
    return tuple(names)


def _plain_monoid(region: Function) -> str | None:
    """The common case, without interpreting the region."""
    if len(region.ops) != 1 or region.ops[0].name not in MONOIDS or region.results != region.ops[0].results:
        return None
    op = region.ops[0]
    dtype = region.argument_types[0].dtype
    require_arithmetic(dtype)
    if (
        set(op.operands) != set(region.arguments)
        or len({type_.dtype for type_ in (*region.argument_types, *op.types)}) > 1
    ):
        return None
    reducer = MONOIDS[op.name]
    if reducer == "product" and dtype.startswith("complex"):
        return None
    if dtype == "i1":
        return _OF_TRUTH_VALUES.get(reducer, reducer)
    return None if reducer in ("and", "or") else reducer


def added(region: Function, others: Sequence[Value], context: Context) -> list[Poly] | None:
    """What a region adds to each of its first arguments, of which there are as many as results, where the rest are
    `others`; None if that is not all it does."""
    symbols = _symbols(region)[: len(region.results)]
    values = computed(region, [*symbols, *others], context)
    if values is None or any(value.type.dtype == "i1" for value in values):
        return None
    terms = [algebra.difference(value.term, symbol.term) for value, symbol in zip(values, symbols, strict=True)]
    own = {placeholder(n, symbol.type) for n, symbol in enumerate(symbols)}
    return None if any(own & opening.ingredients(term) for term in terms) else terms


def computed(region: Function, arguments: Sequence[Value], context: Context) -> list[Value] | None:
    """What a region of one expression gives of those; None where it is not understood, or gives another type than it
    takes."""
    if not is_one_expression(region) or _is_about_another(region, context):
        return None
    inner = replace(context, device=None, mesh=None, observe=None, unsupported={})
    values = context.run(region, list(arguments), inner)
    is_known = not inner.unsupported and all(v.type == a.type for v, a in zip(values, arguments, strict=False))
    return values if is_known else None


def _monoid_of(term: Poly, a: Value, b: Value) -> str | None:
    if a.type != b.type:
        return None
    dtype = a.type.dtype
    reducers: tuple[str, ...] = ("and", "or") if dtype == "i1" else ("sum", "product", "max", "min")
    if dtype.startswith("complex"):
        reducers = ("sum",)  # see `elementwise.product`
    return next((reducer for reducer in reducers if combine(reducer, a.term, b.term, dtype) is term), None)


def combine(reducer: str, a: Poly, b: Poly, dtype: str) -> Poly:
    """`a ⊕ b` of a recognised monoid."""
    if reducer == "sum":
        return algebra.add(a, b)
    if reducer == "product":
        return product(a, b, dtype)
    if reducer == "and":
        return product(a, b, "i1")
    if reducer == "or":
        return disjunction(a, b)
    return apply(EXTREMA[reducer], (a, b))


def reduce_terms(reducer: str, bound: Sequence[Any], term: Poly) -> Poly:
    """The reduction of a term over variables by a recognised monoid."""
    if reducer == "sum":
        return sums.reduce_sum(bound, term)
    if reducer == "product":
        return extrema.reduce_product(bound, term)
    if reducer in ("and", "or"):
        return extrema.reduce_boolean(reducer, bound, term)
    return extrema.reduce_extremum(reducer, bound, term)


def operand_term(reducer: str, value: Value, dtype: str | None = None) -> Poly:
    """What that reducer works on, in its own element type: machine values where it compares integers."""
    if reducer in ("max", "min") and is_integer(value.type.dtype):
        return exact_integer(value)
    return operand_of_type(value, dtype or value.type.dtype)


def neutral(reducer: str, dtype: str) -> Poly:
    """What a recognised monoid leaves everything as it is with; infinities where no finite number does."""
    if reducer in ("max", "min"):
        if is_float(dtype):
            return infinity(-1 if reducer == "max" else 1)
        return number(integer_range(dtype)[0 if reducer == "max" else 1])
    return ZERO if reducer in ("sum", "or") else ONE


def running(region: Function, term: Poly) -> str | None:
    """The reducer that combines an input with a carry of the same type, where a term of a scan's body is that."""
    a, b = _symbols(region)
    return _monoid_of(term, a, b) if len(region.arguments) == 2 else None


# The best of pairs


def best_of_pairs(region: Function) -> str | None:
    """`max` or `min` where a region of (value, index) pairs keeps the one with that value, then the least index.

    The region may only compare, select and combine truth values. What it gives then depends on nothing but the order of
    the two values and of the two indices, so that trying every order is a proof (without NaN).
    """
    if len(region.arguments) != 4 or len(region.results) != 2:
        return None
    orders = ((0, 0), (0, 1), (1, 0), (1, 1))
    for reducer, pick in (("max", max), ("min", min)):
        for (x, y), (i, j) in every(orders, orders):
            wanted = (pick(x, y), min(i, j) if x == y else (i if pick(x, y) == x else j))
            if _choose(region, (x, i, y, j)) != wanted:
                break
        else:
            return reducer
    return None


def _choose(region: Function, arguments: tuple[int, ...]) -> tuple[int, ...] | None:
    """What a region of comparisons and selections gives; None where it holds anything else."""
    sorts = ["value", "index"] * 2
    env = {
        name: (n if type_.dtype != "i1" else bool(n), sort if type_.dtype != "i1" else "truth")
        for name, n, sort, type_ in zip(region.arguments, arguments, sorts, region.argument_types, strict=True)
    }
    for op in region.ops:
        if op.name == "compare" and not _is_plain(op, env.get(op.operands[0]), region.argument_types):
            return None
        found = _step(op, [env.get(v) for v in op.operands])
        if found is None:
            return None
        env[op.results[0]] = found
    results = [env.get(v) for v in region.results]
    return tuple(int(r[0]) for r in results if r is not None) if None not in results else None


def _is_plain(op: Op, compared: tuple[int, str] | None, types: Sequence[TensorType]) -> bool:
    """Whether a comparison of values, of indices or of truth values orders them as the numbers that they are. The total
    order tells zeros apart."""
    said, sort = op.attributes.get("compare_type", "NOTYPE"), "truth" if compared is None else compared[1]
    dtype = {"value": types[0].dtype, "index": types[1].dtype, "truth": "i1"}[sort]
    return said in compare_types(dtype) - {"TOTALORDER"}


def _step(op: Op, operands: list[tuple[int, str] | None]) -> tuple[int, str] | None:
    if any(operand is None for operand in operands) or len(op.results) != 1 or op.types[0].shape:
        return None
    values = [operand[0] for operand in operands if operand]
    sorts = [operand[1] for operand in operands if operand]
    if op.name == "constant" and op.types[0].dtype == "i1":
        return bool(op.attributes["value"].flat[0]), "truth"
    if op.name == "select" and sorts[0] == "truth" and sorts[1] == sorts[2]:
        return (values[1] if values[0] else values[2]), sorts[1]
    if len(set(sorts)) != 1:
        return None
    if op.name == "compare":
        return COMPARED[op.attributes["comparison_direction"]](*values), "truth"
    if op.name in ("maximum", "minimum"):
        return (max if op.name == "maximum" else min)(values), sorts[0]
    if sorts[0] != "truth":
        return None
    if op.name == "not":
        return not values[0], "truth"
    logical = {"and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": lambda a, b: a != b}
    return (logical[op.name](*values), "truth") if op.name in logical else None
