"""Sums over index variables, and other reductions, in canonical form.

    sum v. c * f * g(v)      = c * f * sum v. g(v)                    f does not depend on v, inside of names too
    sum v. sum k. g          = sum v,k. g                             partial sums close here
    sum v<n. [v = e] g(v)    = [0 <= e < n] g(e)                      the one-point rule
    sum v<n. g((e + c*v) mod n)   = sum v<n. g(v)             a full rotation, c prime to n
    sum a<m. sum b<n. g(a + m*b)  = sum k<m*n. g(k)                   digits that only occur together
    sum v,w. f(v) g(w)       = (sum v. f(v)) (sum w. g(w))
    sum v,w. f(v,w) g(v)     = sum v. (sum w. f(v,w)) g(v)

What remains is defined as a tensor of its own (`definitions.define`). The same rules, as far as they
hold for any associative, commutative reducer, serve `max`, `min`, `and`, `or` and products.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import gcd

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.definitions import define, unfold
from hlo_verify.terms.functions import apply, steps
from hlo_verify.terms.term import (
    ONE,
    Apply,
    Atom,
    Guard,
    Ix,
    Monomial,
    Number,
    Poly,
    Read,
    make_poly,
)

Item = tuple[Atom, Number]


def reduce_sum(bound: Sequence[Var], p: Poly) -> Poly:
    """`sum over bound of p`."""
    if not bound:
        return p
    return algebra.add(*(algebra.scale(_sum_monomial(bound, mono), c) for mono, c in p.items))


def _sum_monomial(bound: Sequence[Var], mono: Monomial) -> Poly:
    dependent = [item for item in mono if not item[0].free.isdisjoint(bound)]
    outside = make_poly(((tuple(item for item in mono if item[0].free.isdisjoint(bound)), 1),))
    occurring: set[Var] = set()
    for atom, _ in dependent:
        occurring |= atom.free.intersection(bound)
    count = 1
    for v in bound:
        if v not in occurring:
            count *= v.size
    inner = _sum_product([v for v in bound if v in occurring], dependent)
    return algebra.scale(algebra.multiply(outside, inner), count)


def _product(items: Iterable[Item]) -> Poly:
    mono = tuple(sorted(items, key=lambda item: item[0].uid))
    return make_poly(((mono, 1),))


def _sum_product(bound: list[Var], items: list[Item]) -> Poly:
    """The sum of a product every factor of which depends on a bound variable."""
    if not bound:
        return _product(items)
    factors = [item for item in items if not isinstance(item[0], Guard)]
    if len(factors) == 1 and factors[0][1] == 1:
        atom = factors[0][0]
        if isinstance(atom, Read) and atom.tensor.kind in ("sum", "term"):
            more, bodies = unfold(atom)
            rest = _product(item for item in items if item[0] is not atom)
            return reduce_sum([*bound, *more], algebra.multiply(rest, bodies[0]))
    parted = _parted(bound, items)
    if parted is not None:
        return reduce_sum(bound, parted)
    merged = merge_in(bound, (_product(items),))
    if merged is not None:
        return reduce_sum(merged[0], merged[1][0])
    eliminated = _eliminate(bound, items)
    if eliminated is not None:
        return eliminated
    groups = _components(bound, items)
    if len(groups) > 1:
        result = ONE
        for vs, part in groups:
            result = algebra.multiply(result, _sum_product(vs, part))
        return result
    if len(factors) > 1:
        pushed = _push(bound, items)
        if pushed is not None:
            return pushed
    return define("sum", bound, (_product(items),))


def _parted(bound: list[Var], items: list[Item]) -> Poly | None:
    """The product with a named one among its factors taken apart, a part of which does not depend on the variables."""
    for item in items:
        atom, n = item
        if not isinstance(atom, Read) or atom.tensor.kind != "term" or n != 1 or len(atom.tensor.bodies[0].items) != 1:
            continue
        (body,) = unfold(atom)[1]
        if any(a.free.isdisjoint(bound) for mono, _ in body.items for a, _ in mono):
            return algebra.multiply(_product(other for other in items if other is not item), body)
    return None


def _eliminate(bound: list[Var], items: list[Item]) -> Poly | None:
    """Use up one guard that fixes a bound variable or shrinks its range."""
    for guard, _ in items:
        if not isinstance(guard, Guard):
            continue
        for atom, c in guard.form.items:
            if not (isinstance(atom, Digit) and atom.var in bound and atom.top):
                continue
            v = atom.var
            rest = expr.build(0, [(a, k) for a, k in guard.form.items if a is not atom])
            if v in rest.free:
                continue
            lo = guard.form.lo if guard.lo is None else guard.lo
            hi = guard.form.hi if guard.hi is None else guard.hi
            others = [item for item in items if item[0] is not guard]
            if hi - lo + 1 == abs(c) and atom.low == 1:
                return _one_point(bound, v, c, rest, (lo, hi), others)
            if c == 1 and not rest.items:  # lo <= v div low <= hi
                lo, hi = max(lo * atom.low, 0), min((hi + 1) * atom.low, v.size) - 1
                smaller = expr.fresh("f", hi - lo + 1)
                value = expr.shift(expr.of_var(smaller), lo)
                body = algebra.substitute(_product(others), {v: value})
                return reduce_sum([smaller if b is v else b for b in bound], body)
    return None


def _one_point(bound: list[Var], v: Var, c: int, rest: Index, window: tuple[int, int], others: list[Item]) -> Poly:
    lo, hi = window
    if c > 0:  # the largest v with c*v <= hi - rest
        value = expr.floor_div(expr.shift(expr.scale(rest, -1), hi), c)
    else:  # the largest v with |c|*v <= rest - lo
        value = expr.floor_div(expr.shift(rest, -lo), -c)
    inside = guards.interval(value, 0, v.size - 1)
    body = algebra.multiply(inside, algebra.substitute(_product(others), {v: value}))
    return reduce_sum([b for b in bound if b is not v], body)


def _indices(p: Poly, bound: frozenset[Var], found: dict[int, Index]) -> None:
    """Every index expression, at any depth, that mentions a bound variable."""
    if p.free.isdisjoint(bound):
        return
    for mono, _ in p.items:
        for atom, _ in mono:
            if atom.free.isdisjoint(bound):
                continue
            if isinstance(atom, Read):
                for e in atom.indices:
                    _index_and_inner(e, bound, found)
            elif isinstance(atom, Ix):
                _index_and_inner(atom.index, bound, found)
            elif isinstance(atom, Guard):
                _index_and_inner(atom.form, bound, found)
            else:
                for arg in atom.args:
                    _indices(arg, bound, found)


def _index_and_inner(e: Index, bound: frozenset[Var], found: dict[int, Index]) -> None:
    if e.free.isdisjoint(bound) or e.uid in found:
        return
    found[e.uid] = e
    for atom, _ in e.items:
        if not isinstance(atom, Digit) and not atom.free.isdisjoint(bound):
            for inner in atom.exprs:
                _index_and_inner(inner, bound, found)
            if atom.term is not None:
                _indices(atom.term, bound, found)


def merge_in(bound: Sequence[Var], bodies: tuple[Poly, ...]) -> tuple[list[Var], tuple[Poly, ...]] | None:
    """Split bound variables at the digits that occur and join those that only occur together; undo rotations.

    None if nothing changes; else the new variables and the bodies. They take the same values together, in whatever
    order.
    """
    variables = frozenset(bound)
    found: dict[int, Index] = {}
    for body in bodies:
        _indices(body, variables, found)
    pieces: dict[Var, set[tuple[int, int]]] = {v: set() for v in bound}
    uses: dict[tuple[Var, int], set[tuple[int, int]]] = {}
    for e in found.values():
        for atom, _ in e.items:
            if isinstance(atom, Digit) and atom.var in variables:
                end = atom.var.size if atom.top else atom.low * atom.radix
                pieces[atom.var].add((atom.low, end))
    cuts = {v: _cuts(v, spans) for v, spans in pieces.items()}
    for e in found.values():
        for atom, c in e.items:
            if isinstance(atom, Digit) and atom.var in variables:
                end = atom.var.size if atom.top else atom.low * atom.radix
                for low in cuts[atom.var]:
                    if atom.low <= low < end:
                        uses.setdefault((atom.var, low), set()).add((e.uid, c * (low // atom.low)))
    return _join(bound, bodies, cuts, uses) or _unrotated(bound, bodies, found)


def _unrotated(
    bound: Sequence[Var], bodies: tuple[Poly, ...], found: dict[int, Index]
) -> tuple[list[Var], tuple[Poly, ...]] | None:
    """Make a bound variable the shard that a full rotation reaches, not the steps that it takes there.

    `(e + c*v) mod n` takes every value once as v does, if v has n of them and c no divisor in common with n: another
    order of the same values. None where no rotation goes away by it.
    """
    variables = frozenset(bound)
    for e in found.values():
        for atom, _ in e.items:
            turned = _rotation(atom, variables) if isinstance(atom, Opaque) and atom.kind == "mod" else None
            if turned is None:
                continue
            substitution = algebra.Substitution(turned)
            result = tuple(substitution.poly(body) for body in bodies)
            (v,) = turned
            if all(_rotations(body, v) == 0 for body in result):
                return list(bound), result
    return None


def _rotation(atom: Opaque, bound: frozenset[Var]) -> dict[Var, Index] | None:
    """The steps, as a function of the shard reached."""
    (n,), inner = atom.args, atom.exprs[0]
    for digit, c in inner.items:
        if isinstance(digit, Digit) and digit.var in bound and digit.var.size == n and digit.low == 1 and digit.top:
            rest = expr.subtract(inner, expr.scale(expr.of_atom(digit), c))
            if gcd(c, n) == 1 and digit.var not in rest.free:
                back = expr.subtract(expr.of_var(digit.var), rest)
                return {digit.var: expr.modulo(expr.scale(back, pow(c, -1, n)), n)}
    return None


def _rotations(p: Poly, v: Var) -> int:
    """How many opaque integers mention a variable."""
    found: dict[int, Index] = {}
    _indices(p, frozenset((v,)), found)
    return sum(isinstance(a, Opaque) and v in a.free for e in found.values() for a, _ in e.items)


def _cuts(v: Var, spans: set[tuple[int, int]]) -> list[int]:
    """Where to split a variable: all ends of its digits if they divide one another and its size, else nowhere."""
    points = sorted({low for low, _ in spans} | {end for _, end in spans} | {1, v.size})
    if any(b % a for a, b in pairwise(points)):
        return [1]
    return points[:-1] if len(points) > 1 else [1]


def _join(
    bound: Sequence[Var],
    bodies: tuple[Poly, ...],
    cuts: dict[Var, list[int]],
    uses: dict[tuple[Var, int], set[tuple[int, int]]],
) -> tuple[list[Var], tuple[Poly, ...]] | None:
    sizes: dict[tuple[Var, int], int] = {}
    for v in bound:
        ends = [*cuts[v][1:], v.size]
        for low, end in zip(cuts[v], ends, strict=True):
            sizes[v, low] = end // low
    by_use = {frozenset(u): piece for piece, u in uses.items()}
    above: dict[tuple[Var, int], tuple[Var, int]] = {}
    for piece, u in uses.items():
        n = sizes[piece]
        nxt = by_use.get(frozenset((e, c * n) for e, c in u))
        if nxt is not None and nxt != piece and uses[nxt] != u:
            above[piece] = nxt
    chains = _chains(list(uses), above)
    if all(len(chain) == 1 for chain in chains) and all(len(c) == 1 for c in cuts.values()):
        return None
    if all(_same(chain, cuts) for chain in chains):
        return None
    parts: dict[Var, list[Index]] = {v: [] for v in bound}
    new_bound: list[Var] = []
    for chain in chains:
        total = 1
        for piece in chain:
            total *= sizes[piece]
        merged = expr.fresh("f", total)
        new_bound.append(merged)
        low = 1
        for piece in chain:
            digit = expr.digit_of(expr.of_var(merged), low, sizes[piece])
            parts[piece[0]].append(expr.scale(digit, piece[1]))
            low *= sizes[piece]
    mapping = {v: expr.add(*ps) for v, ps in parts.items() if ps}
    for v in bound:
        if v not in mapping:
            new_bound.append(v)
        else:  # digits that do not occur still count: sum v<4. f(v mod 2) = 2 * sum v<2. f(v)
            new_bound.extend(expr.fresh("f", sizes[v, low]) for low in cuts[v] if (v, low) not in uses)
    substitution = algebra.Substitution(mapping)
    return new_bound, tuple(substitution.poly(body) for body in bodies)


def _chains(
    pieces: list[tuple[Var, int]], above: dict[tuple[Var, int], tuple[Var, int]]
) -> list[list[tuple[Var, int]]]:
    below = {b: a for a, b in above.items()}
    chains = []
    for piece in pieces:
        if piece in below and above.get(below[piece]) == piece:
            continue
        chain = [piece]
        while chain[-1] in above and below.get(above[chain[-1]]) == chain[-1] and above[chain[-1]] not in chain:
            chain.append(above[chain[-1]])
        chains.append(chain)
    covered = {piece for chain in chains for piece in chain}
    return chains + [[piece] for piece in pieces if piece not in covered]


def _same(chain: list[tuple[Var, int]], cuts: dict[Var, list[int]]) -> bool:
    """Whether a chain is one whole variable again."""
    v = chain[0][0]
    return [(v, low) for low in cuts[v]] == chain


def _components(bound: list[Var], items: list[Item]) -> list[tuple[list[Var], list[Item]]]:
    """Factors grouped by the bound variables that they share."""
    groups: list[tuple[set[Var], list[Item]]] = []
    for item in items:
        vs = set(item[0].free.intersection(bound))
        mine = [item]
        rest = []
        for group in groups:
            if group[0] & vs:
                vs |= group[0]
                mine = group[1] + mine
            else:
                rest.append(group)
        groups = [*rest, (vs, mine)]
    return [([v for v in bound if v in vs], part) for vs, part in groups]


def _push(bound: list[Var], items: list[Item]) -> Poly | None:
    """Sum a variable that occurs in one factor only, there."""
    for item in items:
        atom = item[0]
        if isinstance(atom, Guard):
            continue
        others = [other for other in items if other is not item]
        elsewhere: set[Var] = set()
        for other, _ in others:
            elsewhere |= other.free
        own = [v for v in bound if v in atom.free and v not in elsewhere]
        if own:
            inner = reduce_sum(own, _product([item]))
            rest = [v for v in bound if v not in own]
            return reduce_sum(rest, algebra.multiply(inner, _product(others)))
    return None


EXTREMA = {"max": "maximum", "min": "minimum"}


def reduce_extremum(kind: str, bound: Sequence[Var], p: Poly) -> Poly:
    """The greatest (`max`) or least (`min`) value of p over the bound variables."""
    live = [v for v in bound if v in p.free]
    if not live:
        return p
    pieces = steps(p, live)
    if pieces:  # what does not depend on the bound variables decides for all of them
        return algebra.add(*(algebra.multiply(on, reduce_extremum(kind, live, piece)) for on, piece in pieces))
    atom = p.atom
    if isinstance(atom, Read) and atom.tensor.kind in (kind, "term"):
        more, bodies = unfold(atom)
        if atom.tensor.kind == kind or bodies[0].atom is not None or steps(bodies[0], live) or _ranges(live, bodies[0]):
            return reduce_extremum(kind, [*live, *more], bodies[0])
    if isinstance(atom, Apply) and atom.function == EXTREMA[kind]:
        return apply(EXTREMA[kind], tuple(reduce_extremum(kind, live, arg) for arg in atom.args))
    if len(p.items) == 1 and p.items[0][1] != 1 and p.items[0][1] > 0:
        mono, c = p.items[0]
        return algebra.scale(reduce_extremum(kind, live, make_poly(((mono, 1),))), c)
    merged = merge_in(live, (p,))
    if merged is not None:
        return reduce_extremum(kind, merged[0], merged[1][0])
    parts = _ranges(live, p)
    if parts:
        return apply(EXTREMA[kind], tuple(reduce_extremum(kind, own, part) for own, part in parts))
    return define(kind, live, (p,))


RANGES = 4
"""The most parts that the range of a bound variable is split into."""


def _ranges(bound: list[Var], p: Poly) -> list[tuple[list[Var], Poly]]:
    """The term over parts of one bound variable's range, between the ends of guards on it; empty if it has none."""
    for v in bound:
        form = expr.of_var(v)
        guarded = [a for mono, _ in p.items for a, _ in mono if isinstance(a, Guard) and a.form is form]
        ends = {end for a in guarded for end in (a.lo, None if a.hi is None else a.hi + 1) if end is not None}
        if 0 < len(ends) < RANGES:
            parts = []
            for start, end in pairwise([0, *sorted(ends), v.size]):
                part = expr.fresh("f", end - start)
                body = algebra.substitute(p, {v: expr.shift(expr.of_var(part), start)})
                parts.append(([part if b is v else b for b in bound], body))
            return parts
    return []


def reduce_boolean(kind: str, bound: Sequence[Var], p: Poly) -> Poly:
    """`and` is the least and `or` the greatest truth value."""
    return reduce_extremum("min" if kind == "and" else "max", bound, p)


def reduce_product(bound: Sequence[Var], p: Poly) -> Poly:
    """The product of p over the bound variables."""
    live = [v for v in bound if v in p.free]
    count = 1
    for v in bound:
        if v not in p.free:
            count *= v.size
    if count > 64:
        return apply("power", (reduce_product(live, p), algebra.scale(ONE, count)))
    if not live:
        return algebra.power(p, count)
    atom = p.atom
    if isinstance(atom, Read) and atom.tensor.kind == "product":
        more, bodies = unfold(atom)
        return algebra.power(reduce_product([*live, *more], bodies[0]), count)
    merged = merge_in(live, (p,))
    if merged is not None:
        return algebra.power(reduce_product(merged[0], merged[1][0]), count)
    return algebra.power(define("product", live, (p,)), count)
