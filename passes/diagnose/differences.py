"""What differs between two terms that nearly agree, in words.

What both have is set aside: equal summands, then equal factors of the summands that are left, then equal
arguments of functions, down to where they part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from hlo_verify.diagnostics import Mismatch
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.passes.prove.notation import Notation, apart
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import LESS_OR_EQUAL
from hlo_verify.terms.laws import greater
from hlo_verify.terms.term import ONE, Apply, Atom, Guard, Ix, Monomial, Number, Poly, Read, make_poly, monomial_skey

DEPTH = 5
"""How deep definitions are compared."""

SAID = 3
"""The most differences that are told."""


@dataclass(frozen=True, slots=True)
class Difference:
    """`parts` say what differs; the smaller `size`, the nearer the two terms are.

    `mismatches` are those of the parts.
    """

    parts: tuple[str, ...]
    size: int
    mismatches: frozenset[Mismatch] = frozenset()

    @property
    def text(self) -> str:
        """All parts, or the first ones of many."""
        more = len(self.parts) - SAID
        return "; ".join(self.parts[:SAID]) + (f"; and {more} more differences" if more > 0 else "")

    @property
    def mismatch(self) -> Mismatch:
        """The mismatch of all parts, where they are of one."""
        return next(iter(self.mismatches)) if len(self.mismatches) == 1 else Mismatch.DIFFERS


NOTHING = Difference((), 0)
"""Between equal terms."""


def _one(text: str, size: int, mismatch: Mismatch = Mismatch.DIFFERS) -> Difference:
    return Difference((text,), size, frozenset((mismatch,)))


def _all(differences: Iterable[Difference], size: int = 0) -> Difference:
    """Several differences together, each said once; the size is theirs and `size`."""
    found = list(differences)
    parts = dict.fromkeys(part for each in found for part in each.parts)
    mismatches = frozenset(mismatch for each in found for mismatch in each.mismatches)
    return Difference(tuple(parts), size + sum(each.size for each in found), mismatches)


def _is_opposite(one: Poly, other: Poly) -> bool:
    """Whether of two conditions on numbers the one holds where the other does not.

    `1 - [a > b]` is a term of its own, `[a <= b]`, where a or b may be no number: then neither holds.
    """
    for p, q in ((one, other), (other, one)):
        if isinstance(p.atom, Apply) and p.atom.function == LESS_OR_EQUAL:
            return q is greater(*p.atom.args)
    return algebra.add(one, other) is ONE


def difference(found: Poly, expected: Poly, notation: Notation, depth: int = DEPTH) -> Difference:
    """What differs between two terms; a `size` of 100 and more says that they have nothing to do with each other."""
    if found is expected:
        return NOTHING
    if found.constant is not None and expected.constant is not None:
        return _one(_instead(found.constant, expected.constant), 2)
    if _is_opposite(found, expected):
        return _one("the opposite (1 minus it) is expected", 1)
    mine, theirs = dict(found.items), dict(expected.items)
    if mine.keys() == theirs.keys() and mine:
        return _coefficients(found, expected, notation)
    left = [(mono, c) for mono, c in found.items if theirs.get(mono) != c]
    right = [(mono, c) for mono, c in expected.items if mine.get(mono) != c]
    pairs, extra, missing = _paired(left, right)
    shared = len(found.items) - len(left)
    if not pairs and not shared:
        return Difference((), 100)
    parts = [_monomials(a, b, notation, depth) for a, b in pairs]
    mismatch = Mismatch.WRONG_VALUE if extra and missing else Mismatch.DIFFERS
    parts += _summands(extra, "is not expected", mismatch, notation) + _summands(
        missing, "is missing", mismatch, notation
    )
    return _all(parts)


def _coefficients(found: Poly, expected: Poly, notation: Notation) -> Difference:
    """The same summands with other numbers in front of them."""
    theirs = dict(expected.items)
    changed = [(mono, c, theirs[mono]) for mono, c in found.items if theirs[mono] != c]
    if not changed:
        return NOTHING
    if len({Fraction(c) / Fraction(k) for _, c, k in changed}) == 1 and len(changed) == len(found.items):
        _, c, k = changed[0]
        factor = Fraction(c) / Fraction(k)
        mismatch = Mismatch.WRONG_VALUE if factor == -1 else Mismatch.WRONG_FACTOR  # a - b is -1 times b - a
        if len(found.items) > 1:
            return _one(f"the factor is {_instead(factor, 1)}", 1, mismatch)
        return _one(f"the factor is {_instead(c, k)}", 1, mismatch)
    mono, c, k = changed[0]
    what = notation.term(make_poly(((mono, 1),)), 0) if mono else "the constant"
    mismatch = Mismatch.WRONG_FACTOR if mono else Mismatch.DIFFERS
    return _one(f"the factor of {what} is {_instead(c, k)}", 1 + len(changed), mismatch)


def _instead(found: Number, expected: Number) -> str:
    return "{} where {} is expected".format(*apart(found, expected))


Item = tuple[Monomial, Number]


def _paired(left: list[Item], right: list[Item]) -> tuple[list[tuple[Item, Item]], list[Item], list[Item]]:
    """Summands that belong together: of the same form, else those that share most; and those left over."""
    pairs: list[tuple[Item, Item]] = []
    for alike in (_same_form, _shares):
        for item in list(left):
            best = max(right, key=lambda other, item=item: alike(item, other), default=None)  # type: ignore[misc]
            if best is not None and alike(item, best) > 0:
                pairs.append((item, best))
                left = [i for i in left if i is not item]
                right = [i for i in right if i is not best]
    if len(left) == len(right) == 1:
        return [*pairs, (left[0], right[0])], [], []
    return pairs, left, right


def _same_form(a: Item, b: Item) -> int:
    if monomial_skey(a[0]) != monomial_skey(b[0]):
        return 0
    atoms = {atom for atom, _ in b[0]}
    return 1 + sum(atom in atoms for atom, _ in a[0])


def _shares(a: Item, b: Item) -> int:
    atoms = {atom.skey for atom, _ in b[0]}
    return sum(atom.skey in atoms for atom, _ in a[0])


def _summands(items: Sequence[Item], what: str, mismatch: Mismatch, notation: Notation) -> list[Difference]:
    if not items:
        return []
    if len(items) > 1:
        return [_one(f"{len(items)} summands {what.replace('is', 'are', 1)}", 4 * len(items), mismatch)]
    return [_one(f"the summand {notation.term(make_poly((items[0],)), 0)} {what}", 4, mismatch)]


def _monomials(a: Item, b: Item, notation: Notation, depth: int) -> Difference:
    extra = [item for item in a[0] if item not in b[0]]
    missing = [item for item in b[0] if item not in a[0]]
    parts: list[Difference] = []
    if len(extra) == len(missing) == 1 and extra[0][1] == missing[0][1] and _alike(extra[0][0], missing[0][0]):
        parts.append(_atoms(extra[0][0], missing[0][0], notation, depth))
        extra, missing = [], []
    for item in list(extra):
        other = _partner(item, missing)
        if other is not None:
            parts.append(_atoms(item[0], other[0], notation, depth))
            extra.remove(item)
            missing.remove(other)
    if len(extra) == len(missing) == 1 and extra[0][1] == missing[0][1]:
        parts.append(_atoms(extra[0][0], missing[0][0], notation, depth))
        extra, missing = [], []
    if missing:
        parts.append(_one(f"the factor {_product(missing, notation)} is missing", 3 * len(missing)))
    if extra:
        parts.append(_one(f"the factor {_product(extra, notation)} is not expected", 3 * len(extra)))
    if a[1] != b[1] and not parts:
        parts.append(_one(f"the factor is {_instead(a[1], b[1])}", 1, Mismatch.WRONG_FACTOR))
    return _all(parts)


def _partner(item: tuple[Atom, Number], others: list[tuple[Atom, Number]]) -> tuple[Atom, Number] | None:
    """The factor of the same form, else the only one of the same kind."""
    same = [other for other in others if other[0].skey == item[0].skey and other[1] == item[1]]
    if same:
        return same[0]
    alike = [other for other in others if _alike(item[0], other[0]) and other[1] == item[1]]
    return alike[0] if len(alike) == 1 else None


def _alike(a: Atom, b: Atom) -> bool:
    if isinstance(a, Read) and isinstance(b, Read):
        return a.tensor is b.tensor or (bool(a.tensor.bodies) and a.tensor.kind == b.tensor.kind)
    if isinstance(a, Apply) and isinstance(b, Apply):
        return a.function == b.function or a.args == b.args
    return type(a) is type(b)


def _product(items: list[tuple[Atom, Number]], notation: Notation) -> str:
    return notation.term(make_poly(((tuple(items), 1),)))


def _atoms(a: Atom, b: Atom, notation: Notation, depth: int) -> Difference:
    if isinstance(a, Read) and isinstance(b, Read):
        return _reads(a, b, notation, depth)
    if isinstance(a, Apply) and isinstance(b, Apply) and a.function == b.function and len(a.args) == len(b.args):
        return _all((difference(x, y, notation, depth) for x, y in zip(a.args, b.args, strict=True)), 1)
    if isinstance(a, Apply) and isinstance(b, Apply) and a.args == b.args:
        return _one(f"the function is {a.function.name} where {b.function.name} is expected", 2)
    if isinstance(a, Guard) and isinstance(b, Guard):
        mismatch = Mismatch.DIFFERS if a.form.items == b.form.items else Mismatch.WRONG_PLACE
        return _one(f"the condition is {notation.atom(a)} where {notation.atom(b)} is expected", 2, mismatch)
    if isinstance(a, Ix) and isinstance(b, Ix):
        return _one(_offset(a.index, b.index, notation), 2, Mismatch.WRONG_PLACE)
    return _one(f"{notation.atom(a)} where {notation.atom(b)} is expected", 20)


def _reads(a: Read, b: Read, notation: Notation, depth: int) -> Difference:
    if a.tensor is b.tensor:
        offsets = [(x, y) for x, y in zip(a.indices, b.indices, strict=True) if x is not y]
        texts = dict.fromkeys(f"{notation.tensor(a.tensor)}: {_offset(x, y, notation)}" for x, y in offsets)
        return Difference(tuple(texts), 1 + len(offsets), frozenset((Mismatch.WRONG_PLACE,)))
    if a.tensor.kind != b.tensor.kind or not (a.tensor.bodies and b.tensor.bodies):
        code = Mismatch.DIFFERS if a.tensor.bodies or b.tensor.bodies else Mismatch.WRONG_VALUE
        return _one(f"{notation.atom(a)} where {notation.atom(b)} is expected", 20, code)
    kind = a.tensor.kind
    mine, theirs = (prod(v.size for v in r.tensor.bound) for r in (a, b))
    if mine != theirs:
        return _one(_counts(kind, mine, theirs), 5)
    if depth > 0 and len(a.tensor.bodies) == len(b.tensor.bodies):
        inside = _bodies(a, b, notation, depth - 1)
        if inside is not None:
            where = "" if kind == "term" or inside.text.startswith("in the") else f"in the {kind}: "
            return _one(f"{where}{inside.text}" if inside.text else "", 1 + inside.size, inside.mismatch)
    return _one(f"another {kind} than {notation.atom(b)}", 20)


def _counts(kind: str, mine: int, theirs: int) -> str:
    said = f"a {kind} of {mine} where one of {theirs} is expected"
    if theirs % mine == 0:
        return f"{said}: {theirs // mine} parts of it are not joined"
    return said


def _bodies(a: Read, b: Read, notation: Notation, depth: int) -> Difference | None:
    first, bodies = unfold(a)
    second, others = unfold(b)
    if [v.size for v in first] != [v.size for v in second]:
        return None
    mapping = {w: expr.of_var(v) for v, w in zip(first, second, strict=True)}
    pairs = zip(bodies, others, strict=True)
    return _all(difference(x, algebra.substitute(y, mapping), notation, depth) for x, y in pairs)


def _offset(found: Index, expected: Index, notation: Notation) -> str:
    """The parts in which two index expressions differ."""
    theirs, mine = dict(expected.items), dict(found.items)
    a = expr.build(found.const - min(found.const, expected.const), [i for i in found.items if theirs.get(i[0]) != i[1]])
    b = expr.build(
        expected.const - min(found.const, expected.const), [i for i in expected.items if mine.get(i[0]) != i[1]]
    )
    return f"offset {notation.index(a)} where {notation.index(b)} is expected"
