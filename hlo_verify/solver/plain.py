"""Terms written out plainly: what the re-check reasons about, with none of the prover's normal forms.

An expression is a tree over reads of tensors at index expressions; nothing is sorted, merged or cancelled when it is
built. `Opening` writes the prover's terms this way, with chosen definitions taken apart; `passes.meanings` writes the
meaning of an operation this way. A digit of an index expression is `(base div low) mod radix`; a radix of None is no
remainder. Indices and elements are mathematical integers and reals here: that integers wrap is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hlo_verify.index import expr
from hlo_verify.index.expr import UNBOUNDED, Digit, Index, Opaque, Var
from hlo_verify.terms.term import Apply, Atom, Guard, Ix, Number, Poly, Read, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """`const + sum of coefficient * part`."""

    const: int
    items: tuple[tuple[Part, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Clamp:
    """`max(lo, min(inner, hi))`."""

    inner: Affine
    lo: int
    hi: int


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """`values[inner]`."""

    values: tuple[int, ...]
    inner: Affine


@dataclass(frozen=True, slots=True, eq=False)
class Integer:
    """The value of an integer term."""

    term: Expr


Base = Var | Affine | Clamp | Table | Integer


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """`(base div low) mod radix`."""

    base: Base
    low: int = 1
    radix: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Num:
    """A number."""

    value: Number


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """A tensor of which nothing is known here but its element type and what kind of tensor the prover takes it for."""

    name: str
    kind: str
    dtype: str


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """`tensor[indices]`, a free function of its indices."""

    tensor: Symbol
    indices: tuple[Affine, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """An element of a constant array at a row-major position."""

    values: Any
    at: Affine


@dataclass(frozen=True, slots=True, eq=False)
class Add:
    """The sum of some terms."""

    terms: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """The product of some terms. A factor that is 0 or 1 comes before what it guards."""

    factors: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Power:
    """`base ** exponent`; only an exponential has exponents that are no natural numbers."""

    base: Expr
    exponent: Number


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A function of terms."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class OfIndex:
    """An index expression as a number."""

    index: Affine


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """1 where `lo <= form <= hi`, else 0; None is no bound."""

    form: Affine
    lo: int | None
    hi: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Choose:
    """`a` where the condition is 1, `b` where it is 0."""

    condition: Expr
    a: Expr
    b: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Reduce:
    """The sum, product, maximum or minimum of a term over variables."""

    kind: str
    bound: tuple[Var, ...]
    body: Expr


Expr = Num | Element | Entry | Add | Times | Power | Call | OfIndex | Gate | Choose | Reduce

ZERO, ONE = Num(0), Num(1)


def whole(variable: Var) -> Affine:
    """The variable; one with a single value is 0."""
    return Affine(0, ((Part(variable), 1),)) if variable.size > 1 else Affine(0)


def sum_of(*parts: tuple[Affine, int], const: int = 0) -> Affine:
    """The sum of multiples of index expressions, and of a constant."""
    items: dict[tuple[int, int, int | None], tuple[Part, int]] = {}
    for e, factor in parts:
        const += e.const * factor
        for part, c in e.items:
            key = (id(part.base), part.low, part.radix)
            before = items[key][1] if key in items else 0
            items[key] = (part, before + c * factor)
    return Affine(const, tuple((part, c) for part, c in items.values() if c))


def plus(e: Affine, offset: int) -> Affine:
    """`e + offset`."""
    return Affine(e.const + offset, e.items)


def digit(e: Affine, low: int, radix: int | None = None) -> Affine:
    """`(e div low) mod radix`, of a digit the digit within it."""
    if low == 1 and radix is None:
        return e
    if radix == 1:
        return Affine(0)
    if not e.items:
        quotient = e.const // low
        return Affine(quotient if radix is None else quotient % radix)
    if len(e.items) == 1 and e.items[0][1] == 1 and not e.const:
        part = e.items[0][0]
        if part.radix is None:
            return Affine(0, ((Part(part.base, part.low * low, radix), 1),))
        if part.radix % (low * (radix or 1)) == 0:
            return Affine(0, ((Part(part.base, part.low * low, radix or part.radix // low), 1),))
    return Affine(0, ((Part(e, low, radix), 1),))


def clamp(e: Affine, lo: int, hi: int) -> Affine:
    """`max(lo, min(e, hi))`."""
    if not e.items:
        return Affine(max(lo, min(e.const, hi)))
    return Affine(0, ((Part(Clamp(e, lo, hi)), 1),))


def table(values: Sequence[int], e: Affine) -> Affine:
    """`values[e]`."""
    if not e.items and 0 <= e.const < len(values):
        return Affine(int(values[e.const]))
    return Affine(0, ((Part(Table(tuple(int(v) for v in values), e)), 1),))


def as_affine(term: Expr) -> Affine:
    """The value of an integer term as an index expression."""
    if isinstance(term, OfIndex):
        return term.index
    if isinstance(term, Num) and isinstance(term.value, int):
        return Affine(term.value)
    if isinstance(term, Add):
        return sum_of(*((as_affine(t), 1) for t in term.terms))
    if isinstance(term, Times):
        numbers = [f.value for f in term.factors if isinstance(f, Num)]
        rest = [f for f in term.factors if not isinstance(f, Num)]
        if len(rest) == 1 and all(isinstance(n, int) for n in numbers):
            factor = 1
            for n in numbers:
                factor *= int(n)
            return sum_of((as_affine(rest[0]), factor))
    return Affine(0, ((Part(Integer(term)), 1),))


def add(*terms: Expr) -> Expr:
    """The sum."""
    return terms[0] if len(terms) == 1 else Add(terms)


def times(*factors: Expr) -> Expr:
    """The product."""
    return factors[0] if len(factors) == 1 else Times(factors)


def minus(a: Expr, b: Expr) -> Expr:
    """`a - b`."""
    return Add((a, Times((Num(-1), b))))


def children(node: Expr) -> tuple[Expr, ...]:
    """The terms directly inside a term; those of its index expressions are not among them."""
    if isinstance(node, Add):
        return node.terms
    if isinstance(node, Times):
        return node.factors
    if isinstance(node, Call):
        return node.args
    if isinstance(node, Power):
        return (node.base,)
    if isinstance(node, Choose):
        return node.condition, node.a, node.b
    return (node.body,) if isinstance(node, Reduce) else ()


def indices(node: Expr) -> tuple[Affine, ...]:
    """The index expressions directly inside a term."""
    if isinstance(node, Element):
        return node.indices
    if isinstance(node, Entry):
        return (node.at,)
    if isinstance(node, OfIndex):
        return (node.index,)
    return (node.form,) if isinstance(node, Gate) else ()


TRANSPARENT = {"term": "term", "sum": "sum", "max": "max", "min": "min", "product": "product"}
"""Kinds of definitions that can be taken apart."""


OPENED = 400
"""How often definitions may be written out for one question."""


class BudgetError(Exception):
    """A question that would grow too large."""


class Opening:
    """Writes the prover's terms plainly; reads of the `opened` definitions are what they are defined to be."""

    def __init__(self, opened: frozenset[Tensor], constants: bool = False) -> None:
        self.opened = opened
        self.symbols: dict[Tensor, Symbol] = {}
        """The tensors that were read, as they are called in what was written."""
        self._written: dict[tuple[object, ...], tuple[Expr, tuple[Affine, ...]]] = {}
        self.constants = constants
        """Whether elements of constant arrays are numbers; else such an array is as any other tensor."""

    def symbol(self, source: Tensor) -> Symbol:
        """A tensor by a name."""
        found = self.symbols.get(source)
        if found is None:
            found = self.symbols[source] = Symbol(source.name, source.kind, source.dtype)
        return found

    def definition(self, source: Tensor, where: tuple[Affine, ...]) -> Expr:
        """What a definition is at some indices. Raises `BudgetError` past so many of them."""
        key = (source, *map(_key, where))
        found = self._written.get(key)
        if found is None:
            if len(self._written) >= OPENED:
                raise BudgetError(f"more than {OPENED} definitions to take apart")
            env: dict[Var, Affine] = dict(zip(source.params, where, strict=False))
            bound = tuple(expr.fresh("f", v.size) for v in source.bound)
            env.update(zip(source.bound, map(whole, bound), strict=True))
            body = self.term(source.bodies[0], env)
            made = body if source.kind == "term" else Reduce(source.kind, bound, body)
            found = self._written[key] = made, where
        return found[0]

    def term(self, p: Poly, env: Mapping[Var, Affine]) -> Expr:
        """A term where some variables are index expressions; the others are themselves."""
        return _Scope(self, env).poly(p)


class _Scope:
    def __init__(self, opening: Opening, env: Mapping[Var, Affine]) -> None:
        self.opening = opening
        self.env = env
        self.memo: dict[int, Expr] = {}
        self.indices: dict[int, Affine] = {}

    def poly(self, p: Poly) -> Expr:
        found = self.memo.get(p.uid)
        if found is None:
            terms = []
            for mono, c in p.items:
                factors: list[Expr] = [Num(c)] if c != 1 or not mono else []
                gates = [item for item in mono if item[0].boolean]
                rest = [item for item in mono if not item[0].boolean]
                for atom, n in (*gates, *rest):
                    factors.append(self.atom(atom) if n == 1 else Power(self.atom(atom), n))
                terms.append(times(*factors))
            found = self.memo[p.uid] = add(*terms) if terms else ZERO
        return found

    def atom(self, a: Atom) -> Expr:
        found = self.memo.get(a.uid)
        if found is None:
            if isinstance(a, Read):
                found = self._read(a)
            elif isinstance(a, Ix):
                found = OfIndex(self.index(a.index))
            elif isinstance(a, Guard):
                found = Gate(self.index(a.form), a.lo, a.hi)
            else:
                found = self._call(a)
            self.memo[a.uid] = found
        return found

    def _call(self, a: Apply) -> Expr:
        args = tuple(self.poly(p) for p in a.args)
        return args[0] if a.function.startswith("wrap:") else Call(a.function, args)

    def _read(self, a: Read) -> Expr:
        source = a.tensor
        where = tuple(self.index(e) for e in a.indices)
        if source in self.opening.opened:
            return self.opening.definition(source, where)
        if self.opening.constants and source.kind == "constant":
            return Entry(source.values, row_major(source.shape, where))
        return Element(self.opening.symbol(source), where)

    def index(self, e: Index) -> Affine:
        found = self.indices.get(e.uid)
        if found is None:
            parts = [(self._part(atom), c) for atom, c in e.items]
            found = self.indices[e.uid] = sum_of(*parts, const=e.const)
        return found

    def _part(self, atom: Digit | Opaque) -> Affine:
        if isinstance(atom, Digit):
            base = self.env.get(atom.var)
            return digit(whole(atom.var) if base is None else base, atom.low, None if atom.top else atom.radix)
        if atom.kind == "value":
            return as_affine(self.poly(atom.term))
        inner = self.index(atom.exprs[0])
        if atom.kind == "mod":
            return digit(inner, 1, atom.args[0])
        if atom.kind == "div":
            return digit(inner, atom.args[0])
        if atom.kind == "clamp":
            return clamp(inner, *atom.args)
        return table(atom.args[0], inner)


def _key(e: Affine) -> tuple[object, ...]:
    return e.const, *((id(part.base), part.low, part.radix, c) for part, c in e.items)


def row_major(shape: Sequence[int], where: Sequence[Affine]) -> Affine:
    """The position of an element among all, the last dimension running fastest."""
    parts = []
    stride = 1
    for size, e in zip(reversed(shape), reversed(where), strict=True):
        parts.append((e, stride))
        stride *= size
    return sum_of(*parts)


def tensors_of(terms: Iterable[Expr]) -> set[Symbol]:
    """Every tensor that terms read, in index expressions too."""
    return {node.tensor for node in nodes_of(terms) if isinstance(node, Element)}


def nodes_of(terms: Iterable[Expr]) -> list[Expr]:
    """Every term inside some terms, those in index expressions too, each once."""
    found: dict[int, Expr] = {}
    todo = list(terms)
    while todo:
        node = todo.pop()
        if id(node) not in found:
            found[id(node)] = node
            todo.extend(children(node))
            for e in indices(node):
                todo.extend(_inside(e))
    return list(found.values())


def _inside(e: Affine) -> list[Expr]:
    found: list[Expr] = []
    for part, _ in e.items:
        base = part.base
        if isinstance(base, Integer):
            found.append(base.term)
        elif isinstance(base, Affine):
            found.extend(_inside(base))
        elif isinstance(base, Clamp | Table):
            found.extend(_inside(base.inner))
    return found


class Names:
    """Writes terms as text in which variables and tensors go by the order of their occurrence: equal texts are equal
    questions."""

    def __init__(self) -> None:
        self._tensors: dict[Symbol, str] = {}
        self._variables: dict[Var, str] = {}
        self._memo: dict[int, str] = {}
        self._shared: dict[str, str] = {}

    def text(self, terms: Sequence[Expr]) -> str:
        """Some terms as text."""
        roots = [self.of(term) for term in terms]
        return "\n".join([*self._shared, *roots])

    def of(self, node: Expr) -> str:
        """A term's number; its text is written down where it occurs first."""
        found = self._memo.get(id(node))
        if found is None:
            text = self._text(node)
            found = self._memo[id(node)] = self._shared.setdefault(text, f"#{len(self._shared)}")
        return found

    def _text(self, node: Expr) -> str:
        inside = " ".join([self.of(c) for c in children(node)] + [self._affine(e) for e in indices(node)])
        if isinstance(node, Num):
            return str(node.value)
        if isinstance(node, Element):
            name = self._tensors.setdefault(
                node.tensor, f"t{len(self._tensors)}:{node.tensor.dtype}:{node.tensor.kind}"
            )
            return f"{name}[{inside}]"
        if isinstance(node, Entry):
            return f"entry{hash(node.values.tobytes())}[{inside}]"
        if isinstance(node, Gate):
            return f"[{node.lo} {inside} {node.hi}]"
        if isinstance(node, Reduce):
            return f"({node.kind} {' '.join(map(self._variable, node.bound))} {inside})"
        label = node.function if isinstance(node, Call) else str(node.exponent) if isinstance(node, Power) else ""
        return f"({type(node).__name__}{label} {inside})"

    def _variable(self, v: Var) -> str:
        return self._variables.setdefault(v, f"v{len(self._variables)}:{v.size}")

    def _affine(self, e: Affine) -> str:
        return f"<{e.const}" + "".join(f" {c}*{self._base(p.base)}/{p.low}%{p.radix}" for p, c in e.items) + ">"

    def _base(self, base: Base) -> str:
        if isinstance(base, Var):
            return self._variable(base)
        if isinstance(base, Affine):
            return self._affine(base)
        if isinstance(base, Clamp):
            return f"clamp({self._affine(base.inner)},{base.lo},{base.hi})"
        if isinstance(base, Table):
            return f"table{hash(base.values)}({self._affine(base.inner)})"
        return f"int({self.of(base.term)})"


def is_unbounded(v: Var) -> bool:
    """Whether a variable takes every integer."""
    return v.size >= UNBOUNDED


def fraction(value: Number) -> Fraction:
    """A number as an exact fraction."""
    return Fraction(value)
