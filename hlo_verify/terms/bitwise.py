"""Bits of integers as sums: multiples of the bits that some integers have in common.

    a | b = a + b - (a & b)        a ^ b = a + b - 2*(a & b)        ~a = -1 - a

What such operations make of single bits is a polynomial of these that is linear in each. A number is the sum of its
bits times powers of two (of a type with a sign, less the last), so the same polynomial holds of numbers, with `a & b`
for a product: exactly, and not modulo 2^n alone, where each number is what the machine holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial, reduce
from itertools import product

from hlo_verify.limits import allows
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import Function, typed
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Apply, Atom, Ix, Poly, Read, number, of_atom

Bits = dict[frozenset[Atom], int]
"""A polynomial of bits, by which it multiplies: how often."""


def written(function: Function, args: tuple[Poly, ...]) -> Poly | None:
    """`and`, `or` or `xor` of integers as such a sum; None of other functions, and of what is not made of few integers
    by these alone."""
    if function.name not in ("and", "or", "xor") or len(args) < 2 or function.gives not in INTEGER_RANGES:
        return None
    each = [bits for arg in args if (bits := _bits(arg, function.gives)) is not None]
    if len(each) < len(args) or not _are_few(frozenset[Atom]().union(*map(_numbers, each))):
        return None
    return _sum(reduce(partial(_joined, function.name), each), function.gives)


def _joined(name: str, first: Bits, second: Bits) -> Bits:
    both = _times(first, second)
    return both if name == "and" else _added((first, 1), (second, 1), (both, -1 if name == "or" else -2))


def _bits(p: Poly, dtype: str) -> Bits | None:
    """What a term makes of bits, where it makes one bit of them, and the term has that number's bits."""
    found: Bits = {}
    lo, hi = INTEGER_RANGES[dtype]
    size = hi - lo + 1
    for mono, c in p.items:
        if not isinstance(c, int) or len(mono) > 1:
            return None
        times = (c + size // 2) % size - size // 2  # operands count modulo 2^n
        if not mono:
            found[frozenset()] = -times  # bits that are all 1 are the number -1
            continue
        ((atom, power),) = mono
        common = _common(atom, dtype)
        if power != 1 or common is None:
            return None
        found[common] = found.get(common, 0) + times
    return found if _is_bit(found) else None


def _common(atom: Atom, dtype: str) -> frozenset[Atom] | None:
    """The integers, as the machine holds them, of which an atom has the bits that they have in common."""
    if isinstance(atom, Apply) and atom.function.name == "and" and atom.function.gives == dtype:
        found = [_common(arg.atom, dtype) if arg.atom is not None else None for arg in atom.args]
        if all(each is not None for each in found):
            return frozenset[Atom]().union(*(each for each in found if each is not None))
    return frozenset((atom,)) if _is_held(atom, dtype) else None


def _is_held(atom: Atom, dtype: str) -> bool:
    """Whether an atom is a number of that type, rather than one that is so modulo 2^n."""
    if isinstance(atom, Apply):
        return atom.function.gives == dtype
    if isinstance(atom, Ix):
        lo, hi = INTEGER_RANGES[dtype]
        return lo <= atom.index.lo and atom.index.hi <= hi
    return isinstance(atom, Read) and not atom.tensor.bodies and atom.tensor.dtype == dtype


def _is_bit(bits: Bits) -> bool:
    """Whether a polynomial is 0 or 1 wherever all bits are."""
    numbers = sorted(_numbers(bits), key=lambda atom: atom.uid)
    if not _are_few(numbers):
        return False
    for chosen in product((False, True), repeat=len(numbers)):
        ones = {atom for atom, is_one in zip(numbers, chosen, strict=True) if is_one}
        if sum(c for common, c in bits.items() if common <= ones) not in (0, 1):
            return False
    return True


def _are_few(numbers: Collection[Atom]) -> bool:
    return allows("mixed_integers", len(numbers))


def _numbers(bits: Bits) -> frozenset[Atom]:
    return frozenset[Atom]().union(*bits)


def _times(one: Bits, other: Bits) -> Bits:
    found: Bits = {}
    for (a, c), (b, d) in product(one.items(), other.items()):
        found[a | b] = found.get(a | b, 0) + c * d
    return found


def _added(*parts: tuple[Mapping[frozenset[Atom], int], int]) -> Bits:
    found: Bits = {}
    for bits, times in parts:
        for common, c in bits.items():
            found[common] = found.get(common, 0) + c * times
    return found


def _sum(bits: Bits, dtype: str) -> Poly:
    lo, hi = INTEGER_RANGES[dtype]
    ones = number(-1 if lo < 0 else hi)
    parts = ((_having(common, dtype) if common else ones, c) for common, c in bits.items())
    return algebra.add(*(algebra.scale(p, c) for p, c in parts))


def _having(common: frozenset[Atom], dtype: str) -> Poly:
    each = tuple(of_atom(atom) for atom in sorted(common, key=lambda atom: atom.uid))
    return each[0] if len(each) == 1 else apply(typed("and", (dtype,) * len(each), dtype), each)
