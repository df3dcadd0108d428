"""Complex numbers and their parts: polynomials over the complex numbers, whose parts are taken product by product.

    real(z * w) = real(z) real(w) - imag(z) imag(w)        abs(z) = sqrt(real(z)**2 + imag(z)**2)
    real(sum k. z[k]) = sum k. real(z[k])                  exp(z) = exp(real(z)) (cos(imag(z)) + i sin(imag(z)))

So a power spectrum is the same as the square of a modulus, a product with the conjugate, or the squares of both parts,
and a multiplication by `exp(i t)` is a rotation by the angle t, as rotary embeddings have it in either spelling.
"""

from __future__ import annotations

from functools import reduce
from typing import TypeGuard

from hlo_verify.limits import allows
from hlo_verify.ops.elementwise import product
from hlo_verify.program.element_types import is_float
from hlo_verify.terms import algebra
from hlo_verify.terms.conditions import numbers_of
from hlo_verify.terms.definitions import unfold
from hlo_verify.terms.functions import COMPLEX, EXPONENTIAL, LOG, MAXIMUM, MINIMUM, SQRT, real, typed
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE, ZERO, Apply, Atom, Ix, Monomial, Number, Poly, Read, make_poly, of_atom


def is_complex(dtype: str) -> bool:
    return dtype.startswith("complex")


PARTS = tuple(typed(name, ("complex",), "real") for name in ("real", "imag"))

GIVEN = ("argument", "constant")
"""Tensors whose element types are the modules'."""
ADDED_UP = ("sum", "term")
"""Definitions whose parts are what they add up of parts."""
OF_REAL = (EXPONENTIAL, LOG, SQRT, MAXIMUM, MINIMUM)
"""Functions that are of real numbers alone, and give real ones."""
COSINE, SINE = real("cosine"), real("sine")

Parts = tuple[Poly, Poly]
"""A real and an imaginary part."""


def make_complex(real: Poly, imaginary: Poly) -> Poly:
    """`real + i * imaginary`, of which only the functions below know the parts."""
    return apply(COMPLEX, (real, imaginary))


def multiplied_out(p: Poly) -> Poly:
    """A term with `a + i*b` in the place of each `complex(a, b)` that is a factor, those in names of complex numbers
    too, if no term becomes too long."""
    p, found = _opened(p), list[Poly]()
    for mono, c in p.items:
        pairs = [_of_atom(atom) for atom, n in mono if _is_pair(atom, n) for _ in range(int(n))]
        if not allows("complex_factors", len(pairs)):
            return p
        rest = make_poly(((tuple(item for item in mono if not _is_pair(*item)), c),))
        real, imaginary = reduce(_times, pairs, (ONE, ZERO))
        found += [algebra.multiply(rest, real), reduce(algebra.multiply, (rest, imaginary, unit()))]
    whole = algebra.add(*found)
    return whole if allows("multiplied_terms", len(whole.items)) else p


def _opened(p: Poly) -> Poly:
    """A term with the names of complex numbers taken apart that are written with parts."""
    found = []
    for mono, c in p.items:
        named = [atom for atom, n in mono if _is_name(atom) and n == 1]
        rest = make_poly(((tuple(item for item in mono if item[0] not in named), c),))
        found.append(reduce(algebra.multiply, (unfold(atom)[1][0] for atom in named), rest))
    whole = algebra.add(*found)
    return whole if allows("multiplied_terms", len(whole.items)) else p


def _is_name(atom: Atom) -> TypeGuard[Read]:
    if not isinstance(atom, Read) or atom.tensor.kind != "term" or atom.tensor.seal is not None:
        return False
    return any(_is_pair(*item) for mono, _ in atom.tensor.bodies[0].items for item in mono)


def unit() -> Poly:
    """The imaginary unit."""
    return make_complex(ZERO, ONE)


def with_conditions(p: Poly) -> tuple[Poly, Atom | None]:
    """The conditions on the one thing that a product is of, with the imaginary unit if that is a factor; and the thing,
    which is None where there is none, or are several."""
    ((mono, c),) = p.items if len(p.items) == 1 else (((), 0),)
    others = [(atom, n) for atom, n in mono if not atom.boolean and atom is not unit().atom]
    if c != 1 or len(others) != 1 or others[0][1] != 1:
        return ONE, None
    return make_poly(((tuple(item for item in mono if item not in others), 1),)), others[0][0]


def _is_pair(atom: Atom, n: Number) -> bool:
    return isinstance(atom, Apply) and atom.function == COMPLEX and isinstance(n, int) and n > 0


def in_parts(p: Poly, q: Poly) -> list[tuple[Poly, Poly]]:
    """What is to be equal for two complex numbers to be: their parts. None of what may be no number."""
    if p.doubt or q.doubt:
        return []
    return [(part(p), part(q)) for part in (real_part, imaginary_part)]


def real_part(p: Poly) -> Poly:
    """The real part, which is linear over the rationals and truth values."""
    return algebra.add(*(algebra.scale(_of_monomial(mono)[0], c) for mono, c in p.items))


def imaginary_part(p: Poly) -> Poly:
    """The imaginary part, likewise."""
    return algebra.add(*(algebra.scale(_of_monomial(mono)[1], c) for mono, c in p.items))


def _of_monomial(mono: Monomial) -> Parts:
    gates = make_poly(((tuple(item for item in mono if item[0].boolean), 1),))
    real, imaginary = _of_product(numbers_of(mono))
    return algebra.multiply(gates, real), algebra.multiply(gates, imaginary)


def _of_product(mono: Monomial) -> Parts:
    """The parts of a product: those of its factors multiplied out, if there are few and each is surely a number."""
    factors = [atom for atom, n in mono if isinstance(n, int) and n > 0 for _ in range(n)]
    whole = make_poly(((mono, 1),))
    all_of_it = sum(1 if not isinstance(n, int) else abs(n) for _, n in mono) == len(factors)
    if len(factors) == 1 or (all_of_it and not whole.doubt and allows("complex_factors", len(factors))):
        return reduce(_times, map(_of_atom, factors), (ONE, ZERO))
    return apply(PARTS[0], (whole,)), apply(PARTS[1], (whole,))


def _of_atom(atom: Atom) -> Parts:
    if isinstance(atom, Apply) and atom.function == COMPLEX:
        return atom.args[0], atom.args[1]
    p = of_atom(atom)
    if _is_real(atom):
        return p, ZERO
    if isinstance(atom, Read) and atom.tensor.kind in ADDED_UP and atom.tensor.bodies and not atom.doubt:
        bound, (body,) = unfold(atom)
        return reduce_sum(bound, real_part(body)), reduce_sum(bound, imaginary_part(body))
    return apply(PARTS[0], (p,)), apply(PARTS[1], (p,))


def _is_real(atom: Atom) -> bool:
    """Whether an atom is a real number, as are functions of real numbers that have laws."""
    if isinstance(atom, Read):
        return atom.tensor.kind in GIVEN and is_float(atom.tensor.dtype)
    if isinstance(atom, Apply):
        is_part = atom.function.gives == "real" and len(atom.function.takes) == 1
        return not atom.doubt and (is_part or atom.function in OF_REAL)
    return isinstance(atom, Ix)


def _times(a: Parts, b: Parts) -> Parts:
    if a == (ONE, ZERO):
        return b
    straight = [product(x, y, "f32") for x, y in zip(a, b, strict=True)]
    across = [product(x, y, "f32") for x, y in zip(a, reversed(b), strict=True)]
    return algebra.subtract(*straight), algebra.add(*across)


def modulus(p: Poly) -> Poly:
    """The absolute value of what is surely a number; of a product, the product of those of its factors."""
    powers = [n for mono, _ in p.items for _, n in mono]
    if len(p.items) == 1 and all(isinstance(n, int) and n > 0 for n in powers):
        ((mono, c),) = p.items
        gates = make_poly(((tuple(item for item in mono if item[0].boolean), 1),))
        sizes = [_size(*_of_product(((atom, 1),))) for atom, n in numbers_of(mono) for _ in range(int(n))]
        return algebra.scale(algebra.multiply(gates, reduce(algebra.multiply, sizes, ONE)), c if c > 0 else -c)
    return _size(real_part(p), imaginary_part(p))


def exponential(p: Poly) -> Poly:
    """Of what is surely a number: a size, that of the real part, and a direction."""
    size, angle = apply(EXPONENTIAL, (real_part(p),)), (imaginary_part(p),)
    return make_complex(*(product(size, apply(of_angle, angle), "f32") for of_angle in (COSINE, SINE)))


def _size(real: Poly, imaginary: Poly) -> Poly:
    return apply(SQRT, (algebra.add(product(real, real, "f32"), product(imaginary, imaginary, "f32")),))
