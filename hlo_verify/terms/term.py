"""Terms: polynomials over atoms, hash-consed.

An atom is a read of a tensor at index expressions, a function of terms, an index expression taken
as a number, or a guard (Iverson bracket) `[lo <= form <= hi]`. A monomial is a product of powers of
atoms; a polynomial is a sum of monomials with exact rational coefficients. Construction normalises
(see `algebra`), so equal polynomials are the same object. The structural key `skey` of an object
ignores free index expressions: it orders atoms the same way wherever they occur.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Opaque, Var
from hlo_verify.index.interned import next_uid as next_uid
from hlo_verify.index.interned import numbering
from hlo_verify.memory import per_session
from hlo_verify.terms import doubts, half_lines, powers, ranges
from hlo_verify.terms.functions import INVERSE, SQRT, Function

if TYPE_CHECKING:
    from hlo_verify.program.allowed_values import Values

Number = int | Fraction


@dataclass(eq=False, slots=True)
class Tensor:
    """A tensor that terms may read: an argument, a constant, an opaque result, or a definition.

    A definition `h[i] = sum k<8. x[i, k]` has the `kind` "sum" (others are "max", "sort", ...), the `params` i, the
    `bound` variables k and the `bodies` `x[i, k]`, of which a sort of several operands has several. Equal definitions
    are one object.
    """

    kind: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    uid: int
    skey: int
    params: tuple[Var, ...] = ()
    bound: tuple[Var, ...] = ()
    bodies: tuple[Poly, ...] = ()
    attributes: Any = None
    values: Any = None
    location: Any = None
    own: int = 0
    """How many indices a read of a definition has after those of `params`."""
    doubt: int | None = None
    """What may keep an element from being a number (`doubts`); None until it is asked for."""
    assumed: Values | None = None
    """What the user says of the elements of an argument."""
    seal: Tensor | None = None
    """A tensor that stands for a definition and is read at the same indices. It has no bodies: what is derived from it
    cannot look into the definition, and so holds for any other tensor in its place."""

    def __repr__(self) -> str:
        return self.name


class Read:
    """`tensor[indices]`."""

    __slots__ = ("boolean", "doubt", "free", "indices", "skey", "tensor", "uid", "weight")
    tensor: Tensor
    indices: tuple[Index, ...]
    free: frozenset[Var]
    uid: int
    skey: int
    boolean: bool
    doubt: int
    weight: int

    def __repr__(self) -> str:
        return f"{self.tensor.name}[{','.join(map(repr, self.indices))}]"


class Apply:
    """`function(args)`: equal arguments give equal results."""

    __slots__ = ("args", "boolean", "doubt", "free", "function", "half", "power", "skey", "uid", "weight")
    function: Function
    args: tuple[Poly, ...]
    free: frozenset[Var]
    uid: int
    skey: int
    boolean: bool
    doubt: int
    weight: int
    power: tuple[Poly, Fraction] | None
    """What a root or an inverse is a power of, and which (`powers`)."""
    half: Poly | None
    """What it is the sign, or the positive part, of (`half_lines`)."""

    def __repr__(self) -> str:
        return f"{self.function}({', '.join(map(repr, self.args))})"


class Ix:
    """An index expression as a number; its constant is 0 and its coefficients have no common factor."""

    __slots__ = ("boolean", "doubt", "free", "index", "skey", "uid", "weight")
    index: Index
    free: frozenset[Var]
    uid: int
    skey: int
    boolean: bool
    doubt: int
    weight: int

    def __repr__(self) -> str:
        return f"({self.index!r})"


class Guard:
    """`[lo <= form <= hi]`: 1 where it holds, else 0. None is no bound. Built by `guards.interval`."""

    __slots__ = ("boolean", "doubt", "form", "free", "hi", "lo", "skey", "uid", "weight")
    form: Index
    lo: int | None
    hi: int | None
    free: frozenset[Var]
    uid: int
    skey: int
    boolean: bool
    doubt: int
    weight: int

    def __repr__(self) -> str:
        if self.lo == self.hi:
            return f"[{self.form!r}={self.lo}]"
        left = f"{self.lo}<=" if self.lo is not None else ""
        right = f"<={self.hi}" if self.hi is not None else ""
        return f"[{left}{self.form!r}{right}]"


Atom = Read | Apply | Ix | Guard
Monomial = tuple[tuple[Atom, Number], ...]
"""Atoms with their powers, sorted by uid. Only `exp` has powers other than positive integers."""


class Poly:
    """A sum of monomials with coefficients, sorted by the uids of their atoms."""

    __slots__ = ("_skey", "doubt", "free", "items", "uid", "weight")
    items: tuple[tuple[Monomial, Number], ...]
    free: frozenset[Var]
    doubt: int
    """What may keep the value from being a number (`doubts`): 0 where nothing does."""
    uid: int
    weight: int
    _skey: int | None

    @property
    def skey(self) -> int:
        """The structural key; most polynomials are never asked for it."""
        if self._skey is None:
            self._skey = mix(*sorted([mix(monomial_skey(mono), c) for mono, c in self.items]))
        return self._skey

    def __repr__(self) -> str:
        if not self.items:
            return "0"
        return " + ".join(_show(mono, c) for mono, c in self.items).replace("+ -", "- ")

    @property
    def constant(self) -> Number | None:
        """The value of a constant polynomial, else None."""
        if not self.items:
            return 0
        if len(self.items) == 1 and not self.items[0][0]:
            return self.items[0][1]
        return None

    @property
    def atom(self) -> Atom | None:
        """The atom of a polynomial that is just one atom, else None."""
        if len(self.items) == 1 and self.items[0][1] == 1:
            mono = self.items[0][0]
            if len(mono) == 1 and mono[0][1] == 1:
                return mono[0][0]
        return None


def decimal(c: Number, digits: int = 6) -> str:
    """A number in so many digits, however large or small."""
    try:
        near = float(c)
    except OverflowError:
        near = 0.0
    if near:
        return f"{near:.{digits}g}"
    with localcontext(prec=digits):
        return f"{Decimal(c.numerator) / Decimal(c.denominator):.{digits}g}"


def _show(mono: Monomial, c: Number) -> str:
    shown = decimal(c) if isinstance(c, Fraction) or abs(c) > expr.UNBOUNDED else str(c)
    parts = [repr(a) if p == 1 else f"{a!r}^{p if isinstance(p, int) else float(p):.6g}" for a, p in mono]
    if not parts:
        return shown
    return "*".join(parts) if c == 1 else "-" + "*".join(parts) if c == -1 else shown + "*" + "*".join(parts)


_NO_VARS: frozenset[Var] = frozenset()


def _union(parts: Any) -> frozenset[Var]:
    free = _NO_VARS
    for part in parts:
        if part.free:
            free = free | part.free if free else part.free
    return free


def _poly(items: tuple[tuple[Monomial, Number], ...], uid: int) -> Poly:
    found = Poly()
    found.items = items
    found.free = _union(atom for mono, _ in items for atom, _ in mono)
    found.uid = uid
    found._skey = None
    weight, doubt = 1, 0
    for mono, _ in items:
        for atom, _ in mono:
            weight += atom.weight
            doubt |= atom.doubt
    found.weight, found.doubt = weight, doubt
    return found


ZERO = _poly((), -1)
ONE = _poly((((), 1),), 0)
"""The constants that code refers to: the same two in all sessions, whose own objects have numbers from 1."""

_interned: Callable[[], dict[tuple[Any, ...], Any]] = per_session(
    "terms", lambda: {("poly", constant.items): constant for constant in (ZERO, ONE)}
)
_numbers = numbering("numbers of tensors", 0)


NAMES = 1 << 12
"""For so many names of functions and the like, what follows from the name is remembered."""


def mix(*parts: Any) -> int:
    """A structural hash that is the same in every process."""
    return hash(tuple([_checksum(p) if p.__class__ is str else p for p in parts]))


@lru_cache(NAMES)
def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())


def tensor(kind: str, name: str, dtype: str, shape: tuple[int, ...], skey: int | None = None, **fields: Any) -> Tensor:
    """A tensor distinct from every other; without a key it has one by its number in the session."""
    if skey is None:
        skey = mix(kind, _numbers()())
    return Tensor(kind, name, dtype, shape, next_uid(), skey, **fields)


def make_read(source: Tensor, indices: tuple[Index, ...]) -> Read:
    """The interned read; `algebra.read` is what passes use."""
    key = (source, indices)
    found: Read | None = (known := _interned()).get(key)
    if found is None:
        found = Read()
        found.tensor, found.indices, found.free = source, indices, _union(indices)
        found.uid, found.skey = next_uid(), mix("read", source.skey)
        found.boolean, found.weight = ranges.of_elements(source) == (0, 1), 1 + len(indices)
        found.doubt = doubts.of_tensor(source) if source.doubt is None else source.doubt
        known[key] = found
        if found.doubt:
            found.doubt = doubts.of_read(found)
    return found


def make_apply(function: Function, args: tuple[Poly, ...]) -> Apply:
    """The interned application, with no law applied."""
    key = (function, args)
    found: Apply | None = (known := _interned()).get(key)
    if found is None:
        found = Apply()
        found.function, found.args, found.free = function, args, _union(args)
        keys = [a.skey for a in args]
        found.uid, found.skey = (
            next_uid(),
            mix(str(function), *(sorted(keys) if function.properties.commutative else keys)),
        )
        found.boolean = function.properties.truth
        found.doubt = doubts.of_function(function, args)
        found.power, found.half = powers.base_of(function, args), half_lines.side_of(function, args)
        found.weight = 1 + sum(a.weight for a in args)
        if function == INVERSE and isinstance(args[0].atom, Apply) and args[0].atom.function == SQRT:
            found.weight = args[0].atom.weight  # an inverse root weighs no more than a root
        known[key] = found
        if found.doubt & doubts.INFINITE:
            found.doubt = doubts.reaching(found)
    return found


def make_ix(index: Index) -> Ix:
    """The interned index value."""
    key = ("ix", index)
    found: Ix | None = (known := _interned()).get(key)
    if found is None:
        found = Ix()
        found.index, found.free, found.uid, found.skey = index, index.free, next_uid(), mix("ix")
        found.boolean, found.weight, found.doubt = (index.lo, index.hi) == (0, 1), 2, 0
        known[key] = found
    return found


def value_of(atom: Opaque) -> Poly:
    """The term whose value an opaque integer is."""
    assert isinstance(atom.term, Poly)
    return atom.term


def asked(form: Index) -> tuple[int, ...]:
    """The structural keys of the terms whose values an index expression is made of."""
    return tuple(sorted(value_of(a).skey for a, _ in form.items if isinstance(a, Opaque) and a.term is not None))


def make_guard(form: Index, lo: int | None, hi: int | None) -> Guard:
    """The interned guard, with no simplification; `guards.interval` is what passes use."""
    key = ("guard", form, lo, hi)
    found: Guard | None = (known := _interned()).get(key)
    if found is None:
        found = Guard()
        found.form, found.lo, found.hi, found.free = form, lo, hi, form.free
        found.uid, found.skey = next_uid(), mix("guard", lo is None or hi is None, *asked(form))
        found.boolean, found.weight, found.doubt = True, 2, 0
        known[key] = found
    return found


def make_poly(items: tuple[tuple[Monomial, Number], ...]) -> Poly:
    """The interned polynomial of normalised monomials, each once, with nonzero coefficients."""
    if len(items) > 1:
        items = tuple(sorted(items, key=_order))
    key = ("poly", items)
    found: Poly | None = (known := _interned()).get(key)
    if found is None:
        found = known[key] = _poly(items, next_uid())
    return found


def monomial_skey(mono: Monomial) -> int:
    """The structural key of a product."""
    return mix(*sorted([mix(atom.skey, power) for atom, power in mono]))


def _order(item: tuple[Monomial, Number]) -> tuple[tuple[int, Number], ...]:
    return tuple((atom.uid, power) for atom, power in item[0])


def number(value: Number) -> Poly:
    """A constant polynomial."""
    if isinstance(value, Fraction) and value.denominator == 1:
        value = value.numerator
    return make_poly((((), value),)) if value else ZERO


def of_atom(atom: Atom) -> Poly:
    """The polynomial of one atom."""
    return make_poly(((((atom, 1),), 1),))


def atoms(p: Poly) -> Iterator[Atom]:
    """The atoms of a term, in the arguments of functions too; each argument once, to which there may be many paths."""
    seen, todo = {p}, [p]
    for q in todo:
        for atom in (a for mono, _ in q.items for a, _ in mono):
            yield atom
            fresh = dict.fromkeys(arg for arg in atom.args if arg not in seen) if isinstance(atom, Apply) else ()
            seen.update(fresh)
            todo += fresh


def reads(p: Poly) -> set[Read]:
    """The reads of a term, in the arguments of functions too."""
    return {atom for atom in atoms(p) if isinstance(atom, Read)}


def indices(atom: Atom) -> tuple[Index, ...]:
    """An atom's own index expressions: not those in the arguments of a function."""
    if isinstance(atom, Read):
        return atom.indices
    if isinstance(atom, Ix):
        return (atom.index,)
    return (atom.form,) if isinstance(atom, Guard) else ()
