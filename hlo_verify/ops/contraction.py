"""Contractions: dot_general and convolution, as sums of products."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.limits import allows
from hlo_verify.ops.at_best import at_best
from hlo_verify.ops.elementwise import product
from hlo_verify.ops.permutations import over_places_in_order
from hlo_verify.ops.slots import at_own_slots
from hlo_verify.ops.values import (
    Context,
    Rule,
    Value,
    factor,
    operand_of_type,
    position,
    positions,
    require_arithmetic,
    result,
)
from hlo_verify.program.ir import Op, TensorType
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.extrema import reduce_boolean
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, ZERO, Guard, Monomial, Number, Poly, Read, make_poly


def _in_pieces(term: Poly, places: AbstractSet[Var], dtype: str) -> Poly | None:
    """A concatenation's term with one monomial for each piece, so that a product with it has as many.

    The concatenation of `a + b` (the places below 4) and `c` is `[k<4]*a[k] + [k<4]*b[k] + [k>=4]*c[k-4]`, three
    monomials, and comes back as two: `[k<4]*s[k] + [k>=4]*c[k-4]`, where s is a definition that stands for `a + b`.
    None if the term is no such thing, or variables other than `places` tell its pieces apart. A name that stands for
    the whole concatenation, as heavy terms have, is opened first.
    """
    items = _without_name(term).items
    held = [
        [guard for guard in guards.guards_of(mono) if _is_place(guard) and guard.free <= places] for mono, _ in items
    ]
    if not all(held):
        return None
    asked = _telling_apart(held)
    named: dict[Monomial, dict[Monomial, Number]] = {}
    for (mono, c), there in zip(items, held, strict=True):
        where = tuple(item for item in mono if item[0] in there and guards.about(item[0]) in asked)
        named.setdefault(where, {})[tuple(item for item in mono if item not in where)] = c
    if len(named) < 2 or not allows("operand_pieces", len(named)):
        return None
    pieces = (algebra.multiply(make_poly(((on, 1),)), factor(algebra.build(p), dtype)) for on, p in named.items())
    return algebra.add(*pieces)


def _telling_apart(held: Sequence[Sequence[Guard]]) -> AbstractSet[Index]:
    """What conditions ask about by which a concatenation has its pieces, given those of each of its products.

    All of it, where any two products exclude each other or have the same; else what all of them ask about, if there is
    anything: the taps of a window in one of two pieces lie over one another, and are one piece.
    """
    asked = [{guards.about(guard) for guard in there} for there in held]
    if all(_exclude(a, b) for n, a in enumerate(held) for b in held[:n] if a != b):
        return set().union(*asked)
    return set.intersection(*asked) or set().union(*asked)


def _exclude(some: Sequence[Guard], others: Sequence[Guard]) -> bool:
    """Whether some conditions and others never hold together, as two that ask about one form show."""
    pairs = ((a, b) for a in some for b in others if guards.about(a) is guards.about(b))
    return any(guards.intersect(a, b) is False for a, b in pairs)


def _without_name(term: Poly) -> Poly:
    """A multiple of a named term with the term in the place of its name; any other term as it is."""
    if len(term.items) != 1:
        return term
    mono, c = term.items[0]
    atom = mono[0][0] if len(mono) == 1 and mono[0][1] == 1 else None
    return algebra.scale(unfold(atom)[1][0], c) if isinstance(atom, Read) and atom.tensor.kind == "term" else term


def _is_place(guard: Guard) -> bool:
    """Whether a condition says where an element is, and nothing of what any tensor holds."""
    return not any(isinstance(a, Opaque) and a.operator == "value" for a, _ in guard.form.items)


def _product(dtype: str, bound: Sequence[Var], sides: Sequence[tuple[Value, Sequence[Index]]]) -> Poly:
    """The product that is added up.

    A concatenation stays in pieces in two cases: if nothing of what is summed over tells the pieces apart, but the
    result's own indices, devices (stages of a pipeline are either) or turns of a ring; or if both operands have pieces
    in the same places of the contracted dimension, so that `concatenate(a, b) * concatenate(c, d)` is `a*c` and `b*d`.
    Otherwise it gets a name, and counts as one factor.
    """
    terms = [Value(value.type, operand_of_type(value, dtype)) for value, _ in sides]
    written = [term.at(indices) for term, (_, indices) in zip(terms, sides, strict=True)]
    if dtype.startswith("complex") and any(term.doubt for term in written):
        return product(written[0], written[1], dtype)
    inner = [_in_pieces(parts, frozenset(bound), dtype) for parts in written]
    if all(inner):
        together = algebra.times(*(parts for parts in inner if parts))
        if len(together.items) <= max(len(parts.items) for parts in inner if parts):
            return together
    factors = []
    for term, parts, (_, indices) in zip(terms, written, sides, strict=True):
        outer = _in_pieces(parts, parts.free.difference(bound), dtype)
        factors.append(outer or Value(term.type, factor(term.term, dtype)).at(indices))
    return algebra.times(*factors)


def _contract(
    op: Op, bound: Sequence[Var], sides: Sequence[tuple[Value, Sequence[Index]]], inside: Poly
) -> list[Value]:
    """The sum over `bound` of the product of two operands, each at its indices, where `inside` holds.

    Operands are promoted to the result's type first, as XLA does (StableHLO's interpreter does so for dot_general,
    while it wraps the products of a convolution in their own type). Truth values are multiplied by `and`
    and added up by `or`.
    """
    dtype = op.types[0].dtype
    require_arithmetic(dtype, *(value.type.dtype for value, _ in sides))
    if any(v.size == 0 for v in bound) or inside is ZERO:
        return result(op, ZERO)
    body = algebra.multiply(inside, _product(dtype, bound, sides))
    if dtype == "i1":
        return result(op, reduce_boolean("or", bound, body))
    return result(op, at_own_slots(at_best(over_places_in_order(reduce_sum(bound, body), of_elements=True))))


def _dot_general(op: Op, args: list[Value], context: Context) -> list[Value]:
    """StableHLO dot_general: result dimensions are batch, lhs free, rhs free."""
    (type_,) = op.types
    numbers = op.attributes["dot_dimension_numbers"]
    lhs, rhs = args
    left: dict[int, Index] = {}
    right: dict[int, Index] = {}
    bound = []
    for i, j in zip(numbers["lhs_contracting_dimensions"], numbers["rhs_contracting_dimensions"], strict=True):
        v = expr.fresh("f", lhs.shape[i])
        bound.append(v)
        left[i] = right[j] = expr.of_var(v)
    where = positions(type_.shape)
    n = 0
    for i, j in zip(numbers["lhs_batching_dimensions"], numbers["rhs_batching_dimensions"], strict=True):
        left[i] = right[j] = where[n]
        n += 1
    for side, value in ((left, lhs), (right, rhs)):
        for i in range(len(value.shape)):
            if i not in side:
                side[i] = where[n]
                n += 1
    sides = [(v, [side[i] for i in range(len(v.shape))]) for v, side in ((lhs, left), (rhs, right))]
    return _contract(op, bound, sides, ONE)


@dataclass(frozen=True, slots=True)
class _Tap:
    """One spatial dimension of a convolution: the window's variable, where it reads, and whether that is inside."""

    window: Var
    image: Index
    kernel: Index
    inside: Poly


def _tap(op: Op, k: int, type_: TensorType, lhs: Value, rhs: Value) -> _Tap:
    numbers, attributes = op.attributes["dimension_numbers"], op.attributes
    size = rhs.shape[numbers["kernel_spatial_dimensions"][k]]
    window = expr.fresh("f", size)
    w = expr.of_var(window)
    dim = numbers["output_spatial_dimensions"][k]
    low = int(attributes["padding"][k][0])
    start = expr.scale(position(dim, type_.shape[dim]), attributes["window_strides"][k])
    at = expr.shift(expr.add(start, expr.scale(w, attributes["rhs_dilation"][k])), -low)
    image, between = expr.floor_divmod(at, attributes["lhs_dilation"][k])
    length = lhs.shape[numbers["input_spatial_dimensions"][k]]
    inside = algebra.multiply(guards.interval(image, 0, length - 1), guards.interval(between, 0, 0))
    reverse = attributes["window_reversal"][k]
    return _Tap(window, image, expr.shift(expr.scale(w, -1), size - 1) if reverse else w, inside)


def _convolution(op: Op, args: list[Value], context: Context) -> list[Value]:
    """StableHLO convolution, with padding, dilations, reversal and groups."""
    (type_,) = op.types
    lhs, rhs = args
    numbers = op.attributes["dimension_numbers"]
    groups, batch_groups = op.attributes.get("feature_group_count", 1), op.attributes.get("batch_group_count", 1)
    out_batch, out_feature = numbers["output_batch_dimension"], numbers["output_feature_dimension"]
    batch, feature = position(out_batch, type_.shape[out_batch]), position(out_feature, type_.shape[out_feature])
    channels = rhs.shape[numbers["kernel_input_feature_dimension"]]
    channel = expr.fresh("f", channels)
    left: list[Index] = [expr.constant(0)] * len(lhs.shape)
    right: list[Index] = [expr.constant(0)] * len(rhs.shape)
    taps = [_tap(op, k, type_, lhs, rhs) for k in range(len(numbers["input_spatial_dimensions"]))]
    inside = ONE
    for k, tap in enumerate(taps):
        inside = algebra.multiply(inside, tap.inside)
        left[numbers["input_spatial_dimensions"][k]] = tap.image
        right[numbers["kernel_spatial_dimensions"][k]] = tap.kernel
    features = type_.shape[out_feature]
    group = expr.floor_div(feature, features // groups)
    batch_group = expr.floor_div(feature, features // batch_groups)
    per_group = lhs.shape[numbers["input_batch_dimension"]] // batch_groups
    left[numbers["input_feature_dimension"]] = expr.add(expr.of_var(channel), expr.scale(group, channels))
    left[numbers["input_batch_dimension"]] = expr.add(batch, expr.scale(batch_group, per_group))
    right[numbers["kernel_input_feature_dimension"]] = expr.of_var(channel)
    right[numbers["kernel_output_feature_dimension"]] = feature
    return _contract(op, [channel, *(tap.window for tap in taps)], [(lhs, left), (rhs, right)], inside)


RULES: dict[str, Rule] = {"dot_general": _dot_general, "convolution": _convolution}
