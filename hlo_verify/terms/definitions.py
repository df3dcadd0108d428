"""Definitions: a term becomes a read of a named tensor, the same name wherever the same function occurs.

`define` replaces every free index expression of a term by a parameter: equal ones by the same parameter, while
constants stay. It renames the bound variables in an order that depends only on the term's structure. So two terms that
differ only in where they are evaluated become reads of one tensor, at different indices. This is how a value of the
partitioned module is recognised as a shard of a logical tensor. Definitions are interned, so an equal stage is proved
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.memory import per_session
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.functions import EXPONENTIAL
from hlo_verify.terms.keys import Keys, Placed, colors_of, key_of_addend, key_of_factor, key_of_part, oriented, split
from hlo_verify.terms.laws import apply
from hlo_verify.terms.side_by_side import on_places
from hlo_verify.terms.term import (
    Apply,
    Atom,
    Guard,
    Ix,
    Monomial,
    Poly,
    Read,
    Tensor,
    mix,
    next_uid,
    value_of,
)

T = TypeVar("T")

_definitions: Callable[[], dict[tuple[Any, ...], Tensor]] = per_session("definitions", dict)


class _Rebuild:
    """Rebuilds a term in canonical order, with parameters for its free index expressions.

    x[i] * y[2*i + 1] becomes x[s1] * y[s0], and s0 stands for 2*i + 1, s1 for i. That of another place, x[j + 3] *
    y[2*j + 7], becomes the same:

    >>> from hlo_verify.terms.term import tensor
    >>> x, y = (tensor("argument", name, "f32", (16,)) for name in "xy")
    >>> i, j = (expr.of_var(expr.var(name, "", 4)) for name in "ij")
    >>> def product(e):
    ...     return algebra.multiply(algebra.read(x, [e]), algebra.read(y, [expr.shift(expr.scale(e, 2), 1)]))
    >>> here, there = named(product(i)), named(product(expr.shift(j, 3)))
    >>> here.atom.tensor.bodies
    (x[s1]*y[s0],)
    >>> here.atom.tensor is there.atom.tensor, there.atom.indices
    (True, (2*j+7, j+3))

    Parameters are numbered in that order, so that it must not depend on the expressions themselves: what `keys` do not
    tell apart (`tied`) is in the order of `finer` ones, and of age where these do not either.
    """

    def __init__(
        self, keys: Keys, rename: Mapping[Var, Index], starts: Mapping[Index, int], finer: Keys | None = None
    ) -> None:
        self.keys = keys
        self.finer = finer
        self.tied = False
        self.rename = rename
        self.starts = starts
        self.slots: dict[Index, Index] = {}
        self.least: dict[Index, int] = {}
        """The least constant beside each free index expression, outside of guards."""
        self.reformed = False
        """Whether laws make something else of a function's instance than it was."""
        self.in_exponents: dict[Index, int] = {}
        """The same inside of exponentials, which goes where there is no other: `exp(a*(k - 8))` is a multiple of
        `exp(a*k)`, written as one, and so has no constant of its own to go by."""
        self._guarding = self._in_exponent = False
        self._rebuilt: dict[tuple[int, bool, bool], Poly] = {}
        """What was rebuilt, by its number and whether for a guard or an exponent: ciphers read each value twice."""

    def _slot(self, e: Index) -> Index:
        """A parameter for e without its constant; a sum of negative multiples is the negative of one."""
        base = expr.shift(e, -e.const)
        if not base.items:
            return e
        if all(c < 0 for _, c in base.items):
            return expr.scale(self._slot(expr.scale(e, -1)), -1)
        found, sign = self.slots.get(base), 1
        if found is None and expr.scale(base, -1) in self.slots:
            base, sign = expr.scale(base, -1), -1
            found = self.slots[base]
        if found is None:
            found = self.slots[base] = expr.of_var(slot(len(self.slots)))
        const = sign * e.const
        if not self._guarding:
            least = self.in_exponents if self._in_exponent else self.least
            least[base] = min(least.get(base, const), const)
        return expr.scale(expr.shift(found, const - self.starts.get(base, 0)), sign)

    @property
    def places(self) -> list[Index]:
        """What the parameters stand for."""
        return [expr.shift(base, self.starts.get(base, 0)) for base in self.slots]

    def undone(self, p: Poly) -> Poly:
        """What was rebuilt, where it was before."""
        back = {var: expr.of_var(v) for v, image in self.rename.items() for var in image.free}
        return algebra.substitute(p, back | {slot(n): place for n, place in enumerate(self.places)})

    def index(self, e: Index) -> Index:
        free, other = split(e, self.rename)
        if not other:
            return self._slot(e)
        in_order = self._in_order(other, key_of_part, lambda item: item[0].uid)
        bound = [expr.scale(self._bound(atom), c) for atom, c in in_order]
        return expr.add(self._slot(expr.build(e.const, free)), *bound)

    def _bound(self, atom: expr.Atom) -> Index:
        if isinstance(atom, Digit):
            return expr.substitute(expr.of_atom(atom), self.rename)
        if atom.operator == "value":
            return algebra.as_index(self.poly(value_of(atom)), atom.lo, atom.hi)
        inner = self.index(atom.exprs[0])
        return expr.again(atom, inner)

    def atom(self, a: Atom) -> Poly:
        if isinstance(a, Read):
            return algebra.read(a.tensor, [self.index(e) for e in a.indices])
        if isinstance(a, Ix):
            return algebra.of_index(self.index(a.index))
        if isinstance(a, Guard):
            return self._guard(a)
        args = list(a.args)
        outer, self._in_exponent = self._in_exponent, self._in_exponent or a.function == EXPONENTIAL
        if a.function.properties.commutative:
            args = self._in_order(args, lambda keys, p: (keys.poly(p),), lambda p: p.uid)
        made = apply(a.function, tuple(self.poly(p) for p in args))
        self._in_exponent = outer
        self.reformed |= not isinstance(made.atom, Apply) or made.atom.function != a.function
        return made

    def _guard(self, a: Guard) -> Poly:
        form, lo, hi = oriented(a)
        if lo is not None and hi == -lo:
            colors = self.keys.colors
            lead = [(colors[x.var], c) for x, c in form.items if isinstance(x, Digit) and x.var in self.rename]
            if lead and min(lead)[1] < 0:
                form = expr.scale(form, -1)
        outer, self._guarding = self._guarding, True
        form = self.index(form)
        self._guarding = outer
        return guards.interval(form, lo, hi)

    def poly(self, p: Poly) -> Poly:
        if not p.free:
            return p
        key = p.uid, self._guarding, self._in_exponent
        if key not in self._rebuilt:
            self._rebuilt[key] = self._made(p)
        return self._rebuilt[key]

    def _made(self, p: Poly) -> Poly:
        images: dict[Atom, Poly] = {}  # made in that order, as parameters are numbered
        for mono, _ in self._in_order(p.items, key_of_addend, lambda item: _uids(item[0])):
            for a, _ in self._in_order(mono, key_of_factor, lambda item: item[0].uid):
                if a not in images:
                    images[a] = self.atom(a)
        return algebra.with_atoms(p, images.get)

    def _in_order(
        self, items: Sequence[T], key: Callable[[Keys, T], tuple[Any, ...]], age: Callable[[T], Any]
    ) -> list[T]:
        if len(items) < 2:
            return list(items)
        ranked = sorted(((key(self.keys, item), item) for item in items), key=lambda ranked: ranked[0])
        if all(a[0] != b[0] for a, b in pairwise(ranked)):
            return [item for _, item in ranked]
        self.tied = True
        finer = self.finer
        return sorted(
            items, key=lambda item: (key(self.keys, item), () if finer is None else key(finer, item), age(item))
        )


def _uids(mono: Monomial) -> tuple[int, ...]:
    return tuple(a.uid for a, _ in mono)


def slot(n: int) -> Var:
    """The n-th parameter of every definition."""
    return expr.var("s", n, expr.UNBOUNDED)


def define(
    kind: str,
    bound: Sequence[Var],
    bodies: tuple[Poly, ...],
    *,
    attributes: Any = None,
    at: tuple[Index, ...] = (),
    ordered: bool = False,
    dtype: str = "",
    is_reformed: bool = False,
) -> Poly:
    """A read of the tensor `kind over bound of bodies`, at the bodies' own free indices, then at `at`."""
    return define_all(kind, bound, bodies, [(attributes, at, dtype)], ordered=ordered, is_reformed=is_reformed)[0]


Asked = tuple[Any, tuple[Index, ...], str]
"""Of a tensor that is defined: its attributes, where it is read beside the bodies' free indices, its element type."""


def define_all(
    kind: str,
    bound: Sequence[Var],
    bodies: tuple[Poly, ...],
    results: Sequence[Asked],
    *,
    ordered: bool = False,
    is_reformed: bool = False,
) -> list[Poly]:
    """Reads of tensors that have the same bodies, as the results of one function do, each as `define` makes it.

    `ordered` says that the bound variables are distinguishable (a sort's dimension, an argument's
    position); otherwise the operation is the same for every order of them.

    A product may hold what a law would write in another way: inverse(sqrt(2*x))**2 holds inverse(2*x), of which the law
    makes 1/2*inverse(x). Parameters are numbered by what laws make of it (`is_reformed`): both get one name.
    """
    has_choice = len(bound) > 1 and not ordered
    keys = Keys(colors_of(bound, bodies) if has_choice else {v: mix(v.size, n) for n, v in enumerate(bound)})
    order = list(bound) if ordered else _ordered(bound, bodies, keys)
    rename = {v: expr.of_var(expr.var("b", n, v.size)) for n, v in enumerate(order)}
    rebuild, canonical = _rebuilt(keys, rename, bodies)
    if rebuild.reformed:
        reformed = tuple(rebuild.undone(body) for body in canonical)
        if reformed != bodies and not is_reformed:
            return define_all(kind, bound, reformed, results, ordered=ordered, is_reformed=True)
    sizes = tuple(v.size for v in order)
    known = _definitions()
    reads: list[Poly] = []
    for attributes, at, dtype in results:
        key = (kind, attributes, sizes, canonical, len(at), len(rebuild.slots), _integer(dtype))
        found = known.get(key)
        if found is None:
            skey = mix(kind, str(attributes), *sizes, *(keys.poly(b) for b in bodies))
            found = Tensor(kind, f"{kind}{len(known)}", dtype, (), next_uid(), skey, attributes=attributes)
            found.params = tuple(slot(n) for n in range(len(rebuild.slots)))
            found.bound = tuple(expr.var("b", n, v.size) for n, v in enumerate(order))
            found.bodies = canonical
            found.own = len(at)
            known[key] = found
        reads.append(read(found, (*rebuild.places, *at)))
    return reads


def _rebuilt(keys: Keys, rename: Mapping[Var, Index], bodies: tuple[Poly, ...]) -> tuple[_Rebuild, tuple[Poly, ...]]:
    """The bodies in canonical order, and what rebuilt them.

    They are built up to three times, as what one needs is only known after another. The first shows whether the keys
    tell all parts apart; if not, finer ones are made, which take longer. Either shows the least constant beside each
    free expression: parameters begin there, since the same function elsewhere may have other constants. So of
    x[i + 3] * x[i + 4], the parameter stands for i + 3, and of x[j] * x[j + 1] for j.
    """
    rebuild = _Rebuild(keys, rename, {})
    canonical = tuple(rebuild.poly(body) for body in bodies)
    if rebuild.tied:
        rebuild = _Rebuild(keys, rename, {}, Placed(keys.colors, bodies))
        canonical = tuple(rebuild.poly(body) for body in bodies)
    least = rebuild.in_exponents | rebuild.least
    if any(least.values()):
        rebuild = _Rebuild(keys, rename, least, rebuild.finer)
        canonical = tuple(rebuild.poly(body) for body in bodies)
    return rebuild, canonical


def read(source: Tensor, indices: Sequence[Index]) -> Poly:
    """A read of a definition, or of the tensor that stands for it."""
    if source.seal is None:
        return algebra.read(source, indices)
    _stood_in().add(source.seal)
    return algebra.read(source.seal, indices)


_stood_in: Callable[[], set[Tensor]] = per_session("read in place of definitions", set)


def stood_in() -> frozenset[Tensor]:
    """The tensors that were read in place of definitions since this was last asked."""
    found = frozenset(_stood_in())
    _stood_in().clear()
    return found


def instance(source: Tensor, bodies: tuple[Poly, ...]) -> Tensor:
    """The definition that is made of other bodies with the same parameters and bound variables."""
    sizes = tuple(v.size for v in source.bound)
    key = (source.kind, source.attributes, sizes, bodies, source.own, len(source.params), _integer(source.dtype))
    known = _definitions()
    found = known.get(key)
    if found is None:
        skey = mix(source.kind, str(source.attributes), *sizes, *(b.skey for b in bodies))
        found = replace(source, uid=next_uid(), skey=skey, bodies=bodies, doubt=None, seal=None)
        found.name = f"{source.kind}{len(known)}"
        known[key] = found
    return found


def _integer(dtype: str) -> str:
    """The element type, as far as it takes part in telling definitions apart: integers have the range of theirs."""
    return dtype if dtype in INTEGER_RANGES else ""


def _ordered(bound: Sequence[Var], bodies: tuple[Poly, ...], keys: Keys) -> list[Var]:
    """The bound variables by color, then by first occurrence in canonical order."""
    position: dict[Var, int] = {}

    def visit_index(e: Index) -> None:
        if e.free.isdisjoint(keys.colors):
            return
        inside = [
            (mix(keys.colors[a.var], a.low, c), a) for a, c in e.items if isinstance(a, Digit) and a.var in keys.colors
        ]
        for _, digit in sorted(inside, key=lambda item: item[0]):
            position.setdefault(digit.var, len(position))
        for a, _ in e.items:
            if isinstance(a, Opaque):
                for x in a.exprs:
                    visit_index(x)
                if a.term is not None:
                    visit_poly(value_of(a))

    seen: set[Poly] = set()

    def visit_poly(p: Poly) -> None:
        if p in seen or p.free.isdisjoint(keys.colors):
            return
        seen.add(p)
        for mono, _ in sorted(p.items, key=lambda item: (keys.monomial(item[0]), item[1], _uids(item[0]))):
            for a, _ in sorted(mono, key=lambda item: (keys.atom(item[0]), item[1], item[0].uid)):
                visit_atom(a)

    def visit_atom(a: Atom) -> None:
        if isinstance(a, Read):
            for e in a.indices:
                visit_index(e)
        elif isinstance(a, Ix):
            visit_index(a.index)
        elif isinstance(a, Guard):
            visit_index(a.form)
        else:
            for p in a.args:
                visit_poly(p)

    for body in bodies:
        visit_poly(body)
    return sorted(bound, key=lambda v: (keys.colors[v], position.get(v, len(position)), v.uid))


def unfold(read: Read) -> tuple[tuple[Var, ...], tuple[Poly, ...]]:
    """The definition that a read refers to, at its indices: fresh bound variables, and the bodies."""
    fresh, there = at_places(read.tensor, read.indices[: len(read.tensor.params)])
    return fresh, tuple(map(there.poly, read.tensor.bodies))


def at_places(source: Tensor, at: Sequence[Index]) -> tuple[tuple[Var, ...], algebra.Substitution]:
    """Fresh bound variables of a definition, and what puts them and some places in the stead of its own variables."""
    fresh = tuple(expr.fresh("f", v.size) for v in source.bound)
    mapping = dict(zip(source.params, at, strict=True))
    mapping.update(zip(source.bound, map(expr.of_var, fresh), strict=True))
    return fresh, algebra.Substitution(mapping)


def fresh_places(count: int) -> list[Var]:
    """Variables without bounds, to read a definition at that is made once for all places."""
    return [expr.fresh("s", expr.UNBOUNDED) for _ in range(count)]


def named(p: Poly, dtype: str = "") -> Poly:
    """p as a read of a definition, unless it is one atom already."""
    p = on_places(p)
    if p.atom is not None or p.constant is not None:
        return p
    return define("term", (), (p,), dtype=dtype)
