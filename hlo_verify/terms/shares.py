"""How large a term is beside another one: an element beside the greatest of all, by cases of what that is.

    |x[i]|  <=  127 * (m / 127)      |x[i]|  <=  1 * where(m == 0, 1, m)      for m = max v. |x[v]|

Where m is 0, so is each element, and no multiple of what stands for m there is less.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from hlo_verify.index.expr import Index, Var
from hlo_verify.limits import allows
from hlo_verify.terms.addition import build, scale
from hlo_verify.terms.conditions import Case
from hlo_verify.terms.counts import solved
from hlo_verify.terms.functions import ABS, IS_ZERO, MAXIMUM, POSITIVE
from hlo_verify.terms.term import Apply, Atom, Poly, Read, make_poly, of_atom


def share(part: Atom, most: Poly) -> Fraction | None:
    """How many times the size of a term the size of an atom is at most, where it is one of those that the term is the
    greatest of, or the term is a part of that: 127, of `maximum(max v. |x[v]| / 127, 1e-8)`. None where it is none."""
    from hlo_verify.terms.laws import apply  # whose laws ask for bounds

    return None if part.doubt or most.doubt else of_size(apply(ABS, (of_atom(part),)), most)


def of_size(element: Poly, most: Poly) -> Fraction | None:
    """The same of a term that is the size of something, by cases where the other one is a choice."""
    told = list(dict.fromkeys(atom for mono, _ in most.items for atom, _ in mono if atom.boolean))
    if not all(isinstance(atom, Apply) for atom in told) or not allows("bound_choices", len(told)):
        return None
    choices = product((True, False), repeat=len(told))
    found = [_in_case(element, most, dict(zip(told, holds, strict=True))) for holds in choices]
    known = [each for each in found if each is not None]
    return max(known) if len(known) == len(found) else None


def _in_case(element: Poly, most: Poly, told: dict[Atom, bool]) -> Fraction | None:
    """The same where it is known which conditions hold: a number is told by what an element is no greater than."""
    here = build(Case({}, told).coefficients(most.items))
    number = here.constant
    if number is None:
        return _of_greatest(element, here if here.items[0][1] > 0 else scale(here, -1))
    bounds = [_bound(element, atom, holds) for atom, holds in told.items() if isinstance(atom, Apply)]
    least = min((bound for bound in bounds if bound is not None), default=None)
    return None if least is None or number == 0 else least / abs(Fraction(number))


def _bound(element: Poly, condition: Apply, holds: bool) -> Fraction | None:
    """What an element is no greater than where a condition on the greatest m holds, or not: `c*m + k` is 0, or not
    positive."""
    from hlo_verify.terms.laws import apply

    asked = condition.args[0]
    of = [(mono, c) for mono, c in asked.items if mono]
    if len(of) != 1 or asked.doubt or condition.function not in (IS_ZERO, POSITIVE):
        return None
    ((mono, c),) = of
    if holds is not (condition.function == IS_ZERO or c < 0):
        return None
    k = sum(Fraction(each) for mono, each in asked.items if not mono)
    greatest = make_poly(((mono, 1),))
    is_zero = condition.function == IS_ZERO and k == 0  # of a number, as of its size
    times = _of_greatest(element, apply(ABS, (greatest,)) if is_zero else greatest)
    return None if times is None else max(times * -k / Fraction(c), Fraction(0))


def _of_greatest(element: Poly, most: Poly) -> Fraction | None:
    """How many times a positive multiple of a greatest an element is at most."""
    if len(most.items) != 1:
        return None
    ((mono, c),) = most.items
    if len(mono) != 1 or mono[0][1] != 1 or c <= 0:
        return None
    atom = mono[0][0]
    found: list[Fraction | None] = []
    if isinstance(atom, Apply) and atom.function == MAXIMUM:
        found = [_of_greatest(element, arg) for arg in atom.args]
    elif atom is element.atom or (isinstance(atom, Read) and atom.tensor.kind == "max" and _is_read_of(element, atom)):
        found = [Fraction(1)]
    return min((each / Fraction(c) for each in found if each is not None), default=None)


def _is_read_of(element: Poly, greatest: Read) -> bool:
    """Whether an element is one of those that a maximum is over, as what it is at some values of the variables."""
    from hlo_verify.terms.definitions import define, unfold  # made of laws
    from hlo_verify.terms.substitution import substitute

    bound, (body,) = unfold(greatest)
    one, other = define("term", (), (body,)).atom, define("term", (), (element,)).atom
    if not isinstance(one, Read) or not isinstance(other, Read) or one.tensor is not other.tensor:
        return False
    at: dict[Var, Index] = {}
    for e, fixed in zip(one.indices, other.indices, strict=True):
        for v in bound:
            found = solved(e, fixed, v) if v in e.free and v not in at else None
            if found is not None:
                at[v] = found
    inside = len(at) == len(bound) and all(e.lo >= 0 and e.hi < v.size for v, e in at.items())
    return inside and substitute(body, at) is element
