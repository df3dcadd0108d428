"""What turns compare a running maximum with, where they may skip it.

    next = where(seen at t at all, max(now, seen(t)), now)

A causal ring leaves out the keys that come after all of a device's rows: `lax.cond` gives back what it was given. Such
a turn sees minus infinity, and what is kept in units of the maximum stays as it is, as its unit does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlo_verify.index.expr import Index
from hlo_verify.ops.values import Value
from hlo_verify.program.ir import TensorType
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import MAXIMUM
from hlo_verify.terms.laws import apply
from hlo_verify.terms.no_number import infinity
from hlo_verify.terms.steps import steps
from hlo_verify.terms.term import ONE, Apply, Poly


@dataclass(frozen=True, slots=True)
class Compared:
    """What a turn compares a running maximum with where a condition holds; None where it leaves it as it is."""

    type: TensorType
    on: Poly
    seen: Poly | None

    def on_at(self, place: Sequence[Index]) -> Poly:
        """The condition, of that element of the maximum."""
        return Value(self.type, self.on).at(place)

    def after(self, now: Value) -> Value:
        """The maximum after such a turn, which before it is `now`."""
        return now if self.seen is None else Value(self.type, apply(MAXIMUM, (now.term, self.seen)))


def compared(now: Value, after: Poly) -> list[Compared]:
    """What a turn compares a maximum with that is `now` before it and `after` it that: one of the conditions holds, and
    no two do. Empty if it is no running maximum."""
    found = []
    for on, term in _cases(ONE, after):
        if term is now.term:
            found.append(Compared(now.type, on, None))
            continue
        atom = term.atom
        if not (isinstance(atom, Apply) and atom.function == MAXIMUM and now.term in atom.args):
            return []
        seen = apply(MAXIMUM, tuple(arg for arg in atom.args if arg is not now.term))
        found.append(Compared(now.type, on, seen))
    return found if any(each.seen is not None for each in found) else []


def seen_by(turn: Sequence[Compared]) -> Poly:
    """What a maximum is compared with: minus infinity where it is left as it is."""
    if len(turn) == 1 and turn[0].seen is not None:
        return turn[0].seen
    return algebra.add(*(algebra.multiply(each.on, each.seen or infinity(-1)) for each in turn))


def _cases(on: Poly, p: Poly) -> Iterator[tuple[Poly, Poly]]:
    """A term by the conditions that say what it is, on which each piece is one term."""
    parts = steps(p) if p.atom is None else []
    if not parts:
        yield on, p
    for here, term in parts:
        yield from _cases(algebra.multiply(on, here), term)
