"""Discrete Fourier transforms: functions of the dimensions that they are along, which may be transformed in turn.

    fft v. fft w. x(v, w) at q   at p     =     fft v,w. x(v, w) at p, q     =     fft w. fft v. x(v, w) at p   at q

So a transform along two dimensions is one along each, with the elements handed round in between. Of real numbers, the
last dimension comes first and half of it is there: such transforms stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import allows
from hlo_verify.ops.values import Context, Rule, Value, function_of, positions
from hlo_verify.program.ir import Op
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.term import Atom, Poly, Read

COMPLEX = ("FFT", "IFFT")
"""The types of transforms that are of complex numbers, and give as many."""

Along = tuple[Var, Index]
"""A variable that a transform binds, and the index of its result along that dimension."""


def _fft(op: Op, args: list[Value], context: Context) -> list[Value]:
    (type_,), (x,) = op.types, args
    count = len(op.attributes["fft_length"])
    own = range(len(x.shape) - count, len(x.shape))
    kind = next((kind for kind in COMPLEX if kind == _name(op)), None)
    if kind is None or 0 in x.shape or not count:
        key = tuple((name, str(op.attributes.get(name))) for name in ("fft_type", "fft_length"))
        return [Value(type_, function_of("fft", key, [(x, own)], type_, own))]
    where = positions(type_.shape)
    bound = [expr.fresh("f", x.shape[k]) for k in own]
    body = x.at([*where[: own.start], *map(expr.of_var, bound)])
    return [Value(type_, _transform(kind, list(zip(bound, where[own.start :], strict=True)), body, type_.dtype))]


def _name(op: Op) -> str:
    """The type of a transform, without what MLIR prints around it."""
    return str(op.attributes["fft_type"]).rstrip(">").split()[-1].split(".")[-1]


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
