"""Discrete Fourier transforms: functions of the dimensions that they are along, which may be transformed in turn.

    fft v. fft w. x(v, w) at q   at p     =     fft v,w. x(v, w) at p, q     =     fft w. fft v. x(v, w) at p   at q

So a transform along two dimensions is one along each, with the elements handed round in between. Of real numbers, the
last dimension comes first and half of it is there, of a transform like any other; what gives real numbers stays what it
is. A transform and its inverse along one dimension leave what there was.

The inverse of a product of two transforms is a convolution (`convolutions`).

All are linear: of a sum they are the sum of those of its terms, over a dimension too, and multiples are taken out. A
complex number is the sum of its parts, as `complex(a, b)` and as `a + 1j*b`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import permutations

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import allows
from hlo_verify.ops.complex_numbers import multiplied_out, with_conditions
from hlo_verify.ops.convolutions import convolved
from hlo_verify.ops.values import Context, Rule, Value, function_of, position_var
from hlo_verify.program.attributes import enumerator
from hlo_verify.program.ir import Op
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Atom, Poly, Read, make_poly

COMPLEX = ("FFT", "IFFT")
"""The types of transforms that are of complex numbers, and give as many."""

Along = tuple[Var, Index]
"""A variable that a transform binds, and the index of its result along that dimension."""


def _fft(op: Op, args: list[Value], context: Context) -> list[Value]:
    (type_,), (x,) = op.types, args
    own = range(len(x.shape) - len(op.attributes["fft_length"]), len(x.shape))
    kind = enumerator(op.attributes["fft_type"])
    key = tuple((name, str(op.attributes.get(name))) for name in ("fft_type", "fft_length"))
    if 0 in x.shape:
        return [Value(type_, function_of("fft", key, [(x, own)], type_, own))]
    if kind in (*COMPLEX, "RFFT"):
        term = x.term
        for k in reversed(own):
            if x.shape[k] > 1:
                given, place = position_var(k, x.shape[k]), position_var(k, type_.shape[k])
                one = partial(_along, "FFT" if kind == "RFFT" else kind, given, place, type_.dtype)
                term = _linear(term, [given], one)
        return [Value(type_, term)]

    def whole(p: Poly) -> Poly:
        if kind == "IRFFT" and len(own) == 1:
            (k,), (n,) = own, (type_.shape[own[0]],)
            place, at = position_var(k, x.shape[k]), expr.of_var(position_var(k, n))
            product = convolved(p, place, at, n, is_real=True) if x.shape[k] == n // 2 + 1 > 1 else None
            if product is not None:
                return product
        return function_of("fft", key, [(Value(x.type, p), own)], type_, own)

    # of complex numbers that give real ones, multiples are real alone
    return [Value(type_, _linear(x.term, [position_var(k, x.shape[k]) for k in own], whole, takes_out=False))]


def _along(kind: str, given: Var, place: Var, dtype: str, body: Poly) -> Poly:
    """The transform along one dimension, at a place."""
    product = convolved(body, given, expr.of_var(place), given.size, is_real=False) if kind == "IFFT" else None
    if product is not None:
        return product
    bound, at = expr.fresh("f", given.size), expr.of_var(place)
    body = algebra.substitute(body, {given: expr.of_var(bound)})
    left = _undone(body.atom, kind, bound, at, dtype)
    return _transform(kind, [(bound, at)], body, dtype) if left is None else left


def _undone(atom: Atom | None, kind: str, bound: Var, place: Index, dtype: str) -> Poly | None:
    """What is left of a transform whose inverse is taken along one of its dimensions; None where it is none, or is of
    what may be no number."""
    if not isinstance(atom, Read) or atom.tensor.kind != "fft" or atom.doubt or atom.tensor.seal is not None:
        return None
    at, inner = atom.indices[len(atom.tensor.params) :], dict(atom.tensor.attributes[0])["fft_type"]
    along = [n for n, e in enumerate(at) if bound in e.free]
    if {kind, inner} != set(COMPLEX) or len(along) != 1 or at[along[0]] is not expr.of_var(bound):
        return None
    own, (body,) = unfold(atom)
    n = along[0]
    if own[n].size != bound.size or bound in body.free:
        return None
    body = algebra.substitute(body, {own[n]: place})
    others = [(v, e) for k, (v, e) in enumerate(zip(own, at, strict=True)) if k != n]
    return _transform(inner, others, body, dtype) if others else body


def _linear(p: Poly, own: Collection[Var], transform: Callable[[Poly], Poly], *, takes_out: bool = True) -> Poly:
    """The transform of a term along some places, by those of its products without the factors that are the same at all
    of these. What may be no number stays whole."""
    if p.doubt or not allows("multiplied_terms", len(p.items)):
        return transform(p)
    found = []
    for mono, c in multiplied_out(p).items:
        outside = tuple(item for item in mono if takes_out and item[0].free.isdisjoint(own))
        inside = make_poly(((tuple(item for item in mono if item not in outside), 1),))
        on, atom = with_conditions(inside)
        if isinstance(atom, Read) and atom.tensor.kind == "sum" and atom.tensor.seal is None:
            bound, (body,) = unfold(atom)
            there = reduce_sum(bound, _linear(algebra.multiply(on, body), own, transform, takes_out=takes_out))
        else:
            there = transform(inside)
        found.append(algebra.multiply(make_poly(((outside, c),)), there))
    return algebra.add(*found)


def _transform(kind: str, along: list[Along], body: Poly, dtype: str) -> Poly:
    """The transform over some variables, those of one inside of it too, in an order that hangs on nothing but what it
    is of."""
    inner = _inside(body.atom, kind, [v for v, _ in along])
    if inner is not None:
        return _transform(kind, along + inner[0], inner[1], dtype)
    orders = list(permutations(along)) if allows("transformed_dimensions", len(along)) else [tuple(along)]
    found = [_defined(kind, order, body, dtype) for order in orders]
    return min(found, key=lambda p: p.atom.tensor.skey if isinstance(p.atom, Read) else 0)


def _inside(atom: Atom | None, kind: str, bound: Sequence[Var]) -> tuple[list[Along], Poly] | None:
    """What a transform of the same type is along and of, whose results are transformed each by itself."""
    if not isinstance(atom, Read) or atom.tensor.kind != "fft" or dict(atom.tensor.attributes[0])["fft_type"] != kind:
        return None
    at = atom.indices[len(atom.tensor.params) :]
    if any(not e.free.isdisjoint(bound) for e in at):
        return None
    own, (body,) = unfold(atom)
    return list(zip(own, at, strict=True)), body


def _defined(kind: str, along: Sequence[Along], body: Poly, dtype: str) -> Poly:
    sizes = tuple(v.size for v, _ in along)
    key = ((("fft_type", kind), ("fft_length", str(sizes))), ((dtype, sizes),), (dtype, sizes))
    at = tuple(e for _, e in along)
    return define("fft", [v for v, _ in along], (body,), attributes=key, at=at, ordered=True, dtype=dtype)


RULES: dict[str, Rule] = {"fft": _fft}
