"""Terms that are positive for some arguments, and the places at which they are.

    sum k<8. [k <= i]*[0 <= t[k] < 9]*exp(s[k])   >   0      where i >= 0, for a t of threes: the element at k = 0

Of such a term nothing at a place makes a function undefined that is defined of positive numbers: what it is hangs on
the arguments. No product of it may be negative, and one has to be positive where integers of arguments are in some
ranges; as large as a tensor may be, there are arguments that hold one number everywhere. What is to hold for places is
worked out once for a definition, in its own variables; an element is looked at by its indices alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hlo_verify.index import expr
from hlo_verify.index.expr import UNBOUNDED, Digit, Index, Var
from hlo_verify.memory import once_a_session
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.terms import guards, machine, signs
from hlo_verify.terms.doubts import INFINITE
from hlo_verify.terms.guards import Bound
from hlo_verify.terms.term import Apply, Atom, Guard, Monomial, Poly, Read, Tensor

_OF_SUCH = ("abs", "inverse", "sqrt")
"""Functions that are positive of what is."""

Needs = tuple[tuple[Index | Tensor, Bound, Bound], ...]
"""Forms of places, and arguments, with the bounds between which these are to be, or each of their elements."""


@once_a_session
def is_positive_for_some(p: Poly) -> bool:
    """Whether a term is positive for some arguments at each of its places, where it is a number: of what is read at
    places without bounds, at some of them."""
    found = needed(p)
    return found is not None and are_met(found, p.free)


def are_met(needs: Needs, variables: Iterable[Var]) -> bool:
    """Whether places are as they need to be for all values of variables with bounds, and some of those without."""
    found = for_all(needs, [v for v in variables if v.size < UNBOUNDED])
    return found is not None and all(_is_anything(form) for form, _, _ in found if isinstance(form, Index))


def _is_anything(form: Index) -> bool:
    """Whether a form is a place without bounds, so that it is what it has to be at some places."""
    ((part, c), *others) = form.items
    return not others and abs(c) == 1 and isinstance(part, Digit) and part.var.size == UNBOUNDED and part.low == 1


@once_a_session
def needed(p: Poly) -> Needs | None:
    """What suffices for a term to be positive; None where nothing is found."""
    if any(c < 0 or signs.of_product(mono) & (signs.NEGATIVE | signs.BEYOND) for mono, c in p.items):
        return None
    return _least(_of_product(mono) for mono, _ in p.items)


def _least(found: Iterable[Needs | None]) -> Needs | None:
    """The first of some needs that says least of places: nothing; or what holds of a place that is not negative, as
    most places are."""
    known = [needs for needs in found if needs is not None]
    return min(known, key=lambda needs: max(map(_said_of_places, needs), default=0), default=None)


def _said_of_places(need: tuple[Index | Tensor, Bound, Bound]) -> int:
    form, lo, hi = need
    if isinstance(form, Tensor):
        return 0
    return 1 if hi is None and lo is not None and lo <= 0 and all(c > 0 for _, c in form.items) else 2


def _of_product(mono: Monomial) -> Needs | None:
    return both(_of_factor(atom) for atom, _ in mono)


def _of_factor(atom: Atom) -> Needs | None:
    if isinstance(atom, Guard):
        return _of_guard(atom)
    if atom.boolean or atom.doubt & INFINITE:
        return None
    if signs.of_atom(atom) == signs.POSITIVE:
        return ()
    if isinstance(atom, Apply) and atom.function.name in _OF_SUCH:
        return needed(atom.args[0])
    if not isinstance(atom, Read) or atom.tensor.kind not in ("sum", "term"):
        return None
    if _counts_one(atom.tensor):
        return ()
    found = _of_definition(atom.tensor)
    return None if found is None else there(found, atom)


@once_a_session
def _counts_one(source: Tensor) -> bool:
    """Whether a definition counts elements one of which is the best, at each of its places."""
    from hlo_verify.terms.attained import counts_one_of_numbers  # made of terms, whose signs are asked for
    from hlo_verify.terms.products import read

    is_name = source.kind == "term"
    return counts_one_of_numbers(source.bodies[0] if is_name else read(source, list(map(expr.of_var, source.params))))


@once_a_session
def _of_definition(source: Tensor) -> Needs | None:
    """One element of a sum is positive, and none is negative."""
    from hlo_verify.terms.substitution import substitute  # made of terms, whose signs are asked for

    (body,) = source.bodies
    if signs.of(body) & ~(signs.ZERO | signs.POSITIVE):
        return None
    return _least(needed(substitute(body, at) if at else body) for at in _ends(source.bound))


def _ends(bound: Sequence[Var]) -> Iterator[dict[Var, Index]]:
    yield {v: expr.constant(0) for v in bound}
    if bound:
        yield {v: expr.constant(v.size - 1) for v in bound}


def _of_guard(guard: Guard) -> Needs | None:
    """What a condition says of a place, or of the integers of an argument by one of its elements."""
    if all(isinstance(part, Digit) for part, _ in guard.form.items):
        return ((guard.form, guard.lo, guard.hi),)
    element = machine.own_value(guard.form.items[0][0]) if guard.form.items[0][1] == 1 else None
    if len(guard.form.items) > 1 or guard.form.const or element is None or element.tensor.kind != "argument":
        return None
    if element.tensor.assumed is not None:
        return None
    lo, hi = INTEGER_RANGES[element.tensor.dtype]
    lo, hi = lo if guard.lo is None else max(lo, guard.lo), hi if guard.hi is None else min(hi, guard.hi)
    return ((element.tensor, lo, hi),) if lo <= hi else None


def both(parts: Iterable[Needs | None]) -> Needs | None:
    """What some needs say together; None where they exclude one another, or one of them is not known."""
    found: dict[Index | Tensor, tuple[Bound, Bound]] = {}
    for needs in parts:
        if needs is None:
            return None
        for form, lo, hi in needs:
            least, greatest = found.get(form, (None, None))
            lo = lo if least is None else least if lo is None else max(least, lo)
            hi = hi if greatest is None else greatest if hi is None else min(greatest, hi)
            if lo is not None and hi is not None and lo > hi:
                return None
            found[form] = lo, hi
    return tuple((form, *ends) for form, ends in found.items())


def there(needs: Needs, read: Read) -> Needs | None:
    """What is needed of a definition, at the places of an element; None where it does not hold at any of them."""
    mapping = dict(zip(read.tensor.params, read.indices, strict=False))
    return both(_decided(form, lo, hi, mapping) for form, lo, hi in needs)


def _decided(form: Index | Tensor, lo: Bound, hi: Bound, mapping: Mapping[Var, Index]) -> Needs | None:
    if isinstance(form, Tensor):
        return ((form, lo, hi),)
    holds = guards.interval_atom(expr.substitute(form, mapping), lo, hi)
    return () if holds is True else None if holds is False else _of_guard(holds)


def for_all(needs: Needs, bound: Sequence[Var]) -> Needs | None:
    """What is to hold of places for others to be as they need, whatever some variables are. Arguments are left out."""
    return both(_for_all(form, lo, hi, bound) for form, lo, hi in needs if isinstance(form, Index))


def _for_all(form: Index, lo: Bound, hi: Bound, bound: Sequence[Var]) -> Needs | None:
    inner = expr.build(0, [(part, c) for part, c in form.items if not part.free.isdisjoint(bound)])
    lo, hi = None if lo is None else lo - inner.lo, None if hi is None else hi - inner.hi
    if lo is not None and hi is not None and lo > hi:
        return None
    return _decided(expr.subtract(form, inner), lo, hi, {})
