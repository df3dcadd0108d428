"""The bound variables of a reduction: split at the digits that occur, joined where they only occur together, turned
forwards, unrotated.

    f(v mod 2, v div 2), v < 2*n      over a < 2 and b < n: f(a, b)
    g(a + m*b), a < m and b < n       over k < m*n: g(k)
    g(n-1-v), v < n                   over v < n: g(v)
    g((e + c*v) mod n), v < n         over v < n: g(v), c prime to n

The new variables take the same values together as the old ones, each as often, in whatever order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import gcd, prod

from hlo_verify.index import expr
from hlo_verify.index.expr import Digit, Index, Opaque, Var
from hlo_verify.memory import once_a_session
from hlo_verify.terms import algebra
from hlo_verify.terms.term import Guard, Ix, Poly, Read, Tensor, atoms, indices, value_of
from hlo_verify.terms.used import used

Piece = tuple[Var, int]
"""A bound variable and a breakpoint of it: the part of its values from there to the next one. `(v, 1)` and `(v, 4)` are
`v mod 4` and `v div 4` where a variable is split at 4."""

Uses = dict[Piece, set[tuple[int, int]]]
"""Where each piece occurs: the index expressions, by number, with the coefficient that it has there."""

Merged = tuple[list[Var], tuple[Poly, ...]]
"""The new variables, and the bodies in them."""


def merge_in(bound: Sequence[Var], bodies: tuple[Poly, ...]) -> Merged | None:
    """Split bound variables at the digits that occur and join those that only occur together; turn them forwards.

    None if nothing changes; else the new variables and the bodies. They take the same values together, in whatever
    order.

    >>> from hlo_verify.terms.term import tensor
    >>> x = tensor("argument", "x", "f32", (12,))
    >>> a, b, k = expr.var("a", "", 4), expr.var("b", "", 3), expr.var("k", "", 12)

    In x[a + 4*b], b begins where a ends, and there is no other place where one is without the other: one variable of
    12 values takes their place.

    >>> place = expr.add(expr.of_var(a), expr.scale(expr.of_var(b), 4))
    >>> variables, (body,) = merge_in([a, b], (algebra.read(x, (place,)),))
    >>> [v.size for v in variables], body.free == set(variables)
    ([12], True)

    In x[k mod 4], only a part of k occurs: the variable is split there, and the other part is one of 3 values that
    nothing depends on.

    >>> variables, (body,) = merge_in([k], (algebra.read(x, (expr.modulo(expr.of_var(k), 4),)),))
    >>> [v.size for v in variables], [v.size for v in body.free]
    ([4, 3], [4])
    """
    variables = frozenset(bound)
    found: dict[int, Index] = {}
    for body in bodies:
        _indices(body, variables, found)
    spans: dict[Var, set[tuple[int, int]]] = {v: set() for v in bound}
    for digit, _, _ in _digits(found, variables):
        spans[digit.var].add((digit.low, _end(digit)))
    breakpoints = {v: _breakpoints(v, own) for v, own in spans.items()}
    uses: Uses = {}
    for digit, e, c in _digits(found, variables):
        for low in breakpoints[digit.var]:
            if digit.low <= low < _end(digit):
                uses.setdefault((digit.var, low), set()).add((e.uid, c * (low // digit.low)))
        ends = {*breakpoints[digit.var], digit.var.size}
        if not {digit.low, _end(digit)} <= ends:  # no pieces: it lies beside nothing, or is joined and split for ever
            uses.setdefault((digit.var, 1), set()).add((-digit.var.uid, 1))
    return (
        _join(bound, bodies, breakpoints, uses)
        or _forwards(bound, bodies, found)
        or _unrotated(bound, bodies, found)
        or _reunited(bound, bodies, found)
    )


def _digits(found: dict[int, Index], variables: frozenset[Var]) -> Iterator[tuple[Digit, Index, int]]:
    """The digits of bound variables, each with the index expression that it is in and its coefficient there."""
    for e in found.values():
        for atom, c in e.items:
            if isinstance(atom, Digit) and atom.var in variables:
                yield atom, e, c


def _end(digit: Digit) -> int:
    return digit.var.size if digit.top else digit.low * digit.radix


def _forwards(bound: Sequence[Var], bodies: tuple[Poly, ...], found: dict[int, Index]) -> Merged | None:
    """Count a bound variable from its other end where most places of tensors are counted down by it."""
    for v in bound:
        form = expr.of_var(v)
        if not form.items:
            continue
        is_down = any(a is form.items[0][0] and c < 0 for e in found.values() for a, c in e.items)
        if not is_down and not any(_reads_downwards(body) for body in bodies):
            continue
        places = {e for body in bodies for e in _places(body, v)}
        digits = [part for e in places for part in _counted(e, v)]
        down = sum(c < 0 for _, c in digits)
        if 2 * down > len(digits) and all(a is form.items[0][0] for a, _ in digits):
            used("counted down")
            substitution = algebra.Substitution({v: expr.subtract(expr.constant(v.size - 1), form)})
            return list(bound), tuple(substitution.poly(body) for body in bodies)
    return None


def _places(p: Poly, v: Var) -> set[Index]:
    """The places of tensors, the index values, and the conditions on what is looked up, that depend on a variable."""
    found: set[Index] = set()
    for atom in atoms(p):
        if v not in atom.free:
            continue
        if isinstance(atom, Read):
            found.update(_upwards(atom.tensor, n, e) for n, e in enumerate(atom.indices) if v in e.free)
        elif isinstance(atom, Ix):
            found.add(atom.index)
        elif isinstance(atom, Guard) and any(
            isinstance(part, Opaque) and v in part.free for part, _ in atom.form.items
        ):
            found.add(atom.form)
    return found


def _counted(e: Index, v: Var) -> list[tuple[Digit | Opaque, int]]:
    """The parts of a place that a variable takes part in, but for values that are looked up there: how often these are
    counted (`q[j] - k[v]`) says nothing of the way that the variable goes."""
    return [(a, c) for a, c in e.items if v in a.free and not (isinstance(a, Opaque) and a.operator == "value")]


def _upwards(source: Tensor, n: int, e: Index) -> Index:
    """An index that a tensor is read at; of a definition that counts down by it, the opposite."""
    return expr.scale(e, -1) if source.bodies and n in _downwards(source) else e


@once_a_session
def _downwards(source: Tensor) -> frozenset[int]:
    """The parameters of a definition, by number, that all places in it are counted down by."""
    found = []
    for n, v in enumerate(source.params):
        steps = [c for body in source.bodies for e in _places(body, v) for _, c in _counted(e, v)]
        if steps and all(c < 0 for c in steps):
            found.append(n)
    return frozenset(found)


@once_a_session
def _reads_downwards(p: Poly) -> bool:
    """Whether a term reads a definition that counts down by a parameter."""
    return any(isinstance(atom, Read) and atom.tensor.bodies and _downwards(atom.tensor) for atom in atoms(p))


def _indices(p: Poly, bound: frozenset[Var], found: dict[int, Index]) -> None:
    """Every index expression, at any depth, that mentions a bound variable."""
    if not p.free.isdisjoint(bound):
        for atom in atoms(p):
            for e in indices(atom):
                _index_and_inner(e, bound, found)


def _index_and_inner(e: Index, bound: frozenset[Var], found: dict[int, Index]) -> None:
    if e.free.isdisjoint(bound) or e.uid in found:
        return
    found[e.uid] = e
    for atom, _ in e.items:
        if not isinstance(atom, Digit) and not atom.free.isdisjoint(bound):
            for inner in atom.exprs:
                _index_and_inner(inner, bound, found)
            if atom.term is not None:
                _indices(value_of(atom), bound, found)


def _unrotated(bound: Sequence[Var], bodies: tuple[Poly, ...], found: dict[int, Index]) -> Merged | None:
    """Make a bound variable the shard that a full rotation reaches, not the steps that it takes there.

    `(e + c*v) mod n` takes every value once as v does, if v has n of them and c no divisor in common with n: another
    order of the same values. None where no rotation goes away by it.
    """
    variables = frozenset(bound)
    places = dict.fromkeys(place for body in bodies for atom in atoms(body) for place in indices(atom))
    for e in found.values():
        for atom, _ in e.items:
            turned = _rotation(atom, variables) if isinstance(atom, Opaque) and atom.operator == "mod" else None
            if turned is None:
                continue
            substitution = algebra.Substitution(turned)
            (v,) = turned
            if any(_is_rotated(substitution.index(place), v) for place in places if v in place.free):
                continue  # most turn one rotation into another: seen without making the bodies anew
            result = tuple(substitution.poly(body) for body in bodies)
            if all(_rotations(body, v) == 0 for body in result):
                used("rotation")
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
    """How many index expressions have an opaque integer that mentions a variable."""
    found: dict[int, Index] = {}
    _indices(p, frozenset((v,)), found)
    return sum(_is_rotated(e, v) for e in found.values())


def _is_rotated(e: Index, v: Var) -> bool:
    """Whether an opaque integer that mentions a variable is part of an index expression."""
    return any(isinstance(a, Opaque) and v in a.free for a, _ in e.items)


def _breakpoints(v: Var, spans: set[tuple[int, int]]) -> list[int]:
    """Where to split a variable: all ends of its digits if they divide one another and its size, else nowhere."""
    points = sorted({low for low, _ in spans} | {end for _, end in spans} | {1, v.size})
    if any(b % a for a, b in pairwise(points)):
        return [1]
    return points[:-1] if len(points) > 1 else [1]


def _join(
    bound: Sequence[Var], bodies: tuple[Poly, ...], breakpoints: dict[Var, list[int]], uses: Uses
) -> Merged | None:
    """The bodies with a new variable for each chain of pieces that always lie side by side.

    In x[a + 4*b] with a < 4, the uses of a are {(x's index, 1)} and those of b {(x's index, 4)}: b is used wherever a
    is, with 4 times its coefficient, and 4 is how many values a has. So b lies directly above a, and the chain a, b
    becomes one variable k: a is `k mod 4`, b is `k div 4`.
    """
    sizes = {
        (v, low): end // low
        for v in bound
        for low, end in zip(breakpoints[v], [*breakpoints[v][1:], v.size], strict=True)
    }
    chains = _chains(list(uses), _above(uses, sizes))
    if all(len(chain) == 1 for chain in chains) and all(len(c) == 1 for c in breakpoints.values()):
        return None
    if all(_same(chain, breakpoints) for chain in chains):
        return None
    parts: dict[Var, list[Index]] = {v: [] for v in bound}
    new_bound: list[Var] = []
    for chain in chains:
        merged = expr.fresh("f", prod(sizes[piece] for piece in chain))
        new_bound.append(merged)
        low = 1
        for v, start in chain:
            digit = expr.digit_of(expr.of_var(merged), low, sizes[v, start])
            parts[v].append(expr.scale(digit, start))
            low *= sizes[v, start]
    mapping = {v: expr.add(*ps) for v, ps in parts.items() if ps}
    for v in bound:
        if v not in mapping:
            new_bound.append(v)
        else:  # digits that do not occur still count: sum v<4. f(v mod 2) = 2 * sum v<2. f(v)
            new_bound.extend(expr.fresh("f", sizes[v, low]) for low in breakpoints[v] if (v, low) not in uses)
    used("digits joined")
    substitution = algebra.Substitution(mapping)
    return new_bound, tuple(substitution.poly(body) for body in bodies)


def _above(uses: Uses, sizes: dict[Piece, int]) -> dict[Piece, Piece]:
    """For each piece the one that lies directly above it: in the same places, with so many times its coefficient as it
    has values."""
    by_use = {frozenset(places): piece for piece, places in uses.items()}
    above: dict[Piece, Piece] = {}
    for piece, places in uses.items():
        n = sizes[piece]
        other = by_use.get(frozenset((e, c * n) for e, c in places))
        if other is not None and other != piece and uses[other] != places:
            above[piece] = other
    return above


def _chains(pieces: list[Piece], above: dict[Piece, Piece]) -> list[list[Piece]]:
    """The pieces, each in one list together with those that lie above it, lowest first."""
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


def _same(chain: list[Piece], breakpoints: dict[Var, list[int]]) -> bool:
    """Whether a chain is one whole variable again."""
    v = chain[0][0]
    return [(v, low) for low in breakpoints[v]] == chain


def _reunited(bound: Sequence[Var], bodies: tuple[Poly, ...], found: dict[int, Index]) -> Merged | None:
    """Join two bound variables that lie side by side at one place, where all others are remainders of the same.

    In x[a + 192*e] * y[(a mod 128 + 64*e) mod 128] with a < 192, what y is read at is k mod 128 of k = a + 192*e, as
    64 and 192 are the same modulo 128. `_join` does not see that: 128 is no divisor of 192.
    """
    for below, above in _neighbours(bound, found):
        if any(_is_apart(e, below, above) for e in found.values()):
            continue
        joined = expr.fresh("f", below.size * above.size)
        high, low = expr.floor_divmod(expr.of_var(joined), below.size)
        substitution = algebra.Substitution({below: low, above: high})
        result = tuple(substitution.poly(body) for body in bodies)
        if not any(below.size in _ends(body, joined) for body in result):
            used("digits reunited")
            return [*(v for v in bound if v not in (below, above)), joined], result
    return None


def _is_apart(e: Index, below: Var, above: Var) -> bool:
    """Whether an expression surely needs one of two variables without the other: all of the upper one, or a digit of
    the lower one that is none of the number that both are."""
    if (below in e.free) is (above in e.free):
        return False
    digits = [atom for atom, _ in e.items if isinstance(atom, Digit) and atom.var is below]
    return above in e.free or any(digit.top or below.size % _end(digit) for digit in digits)


def _neighbours(bound: Sequence[Var], found: dict[int, Index]) -> Iterator[tuple[Var, Var]]:
    """Two bound variables a and b that lie side by side at some place: c*a + c*n*b, where a has n values."""
    variables = frozenset(bound)
    for e in found.values():
        whole = {
            atom.var: c
            for atom, c in e.items
            if isinstance(atom, Digit) and atom.var in variables and atom.low == 1 and atom.top
        }
        yield from ((a, b) for a in whole for b in whole if a is not b and whole[b] == whole[a] * a.size)


def _ends(p: Poly, v: Var) -> set[int]:
    """Where digits of a variable begin and end."""
    found: dict[int, Index] = {}
    _indices(p, frozenset((v,)), found)
    return {end for digit, _, _ in _digits(found, frozenset((v,))) for end in (digit.low, _end(digit))}
