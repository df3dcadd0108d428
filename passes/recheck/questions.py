"""From a claim to a question: both sides written out about the same definitions."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_verify.passes.recheck.claims import Claim
from hlo_verify.passes.recheck.plain import Expr, tensors_of, within
from hlo_verify.passes.recheck.transcribe import TRANSPARENT, Functions, Opening
from hlo_verify.terms.poles import POLE
from hlo_verify.terms.term import Tensor, reads


class Nesting:
    """Which definitions are inside which, as sets of bits, and the names of the functions that some are."""

    def __init__(self) -> None:
        self.functions = Functions()
        self._inside: dict[Tensor, int] = {}
        self._parts: dict[Tensor, set[Tensor]] = {}

    def inside(self, t: Tensor) -> int:
        """The definition and all that it is made of."""
        pending = [t]
        while pending:
            top = pending[-1]
            parts = self.parts(top)
            missing = [part for part in parts if part not in self._inside]
            if missing:
                pending.extend(missing)
            else:
                pending.pop()
                if top not in self._inside:
                    self._inside[top] = 1 << len(self._inside) | self.of(parts)
        return self._inside[t]

    def parts(self, t: Tensor) -> set[Tensor]:
        """What a definition reads."""
        found = self._parts.get(t)
        if found is None:
            found = self._parts[t] = {read.tensor for body in t.bodies for read in reads(body)}
        return found

    def holds(self, outer: int, t: Tensor) -> bool:
        """Whether a set that `of` gave holds a definition."""
        return outer | self.inside(t) == outer

    def to_open(self, first: set[Tensor], second: set[Tensor]) -> set[Tensor]:
        """What to take apart so that two sides become about the same definitions: what only one of them reads, or if
        the other one has it inside of something, the newest thing that it is a part of."""
        here, there = self.of(first), self.of(second)
        unlike = first ^ second
        apart = {t for t in unlike if not self.holds(there if t in first else here, t)}
        if apart:
            return apart
        around = {t for t in first | second if not unlike.isdisjoint(self.parts(t))}
        return {max(around - unlike or around or unlike, key=lambda t: t.uid)}

    def of(self, tensors: set[Tensor]) -> int:
        """Everything inside some definitions."""
        found = 0
        for t in tensors:
            found |= self.inside(t)
        return found


@dataclass(frozen=True, slots=True)
class Question:
    """Both sides of a claim. `final` says that there is nothing left in them to take apart."""

    sides: tuple[Expr, Expr]
    final: bool


def question(claim: Claim, nesting: Nesting, levels: int = 0) -> Question:
    """Both sides of a claim, about the same tensors: what only one side reads is taken apart, unless the other side has
    it inside of what is yet to be taken apart there.

    So many `levels` of the definitions that both sides read are taken apart too, but for those that are a function of
    their elements by name.
    """
    opened: frozenset[Tensor] = frozenset()
    turn = 0
    while True:
        turn += 1
        within("recheck_rounds", turn, "rounds of taking definitions apart")
        opening = Opening(opened, claim.constants, nesting.functions)
        sides = claim.meaning(opening), claim.claimed(opening)
        first, second = (_definitions(opening, side) for side in sides)
        written = {t for t in first if t.kind in TRANSPARENT}
        if first != second:
            opened |= nesting.to_open(first, second)
        elif levels and written:
            levels -= 1
            opened |= written
        else:
            return Question(sides, not written)


def _definitions(opening: Opening, side: Expr) -> set[Tensor]:
    read = tensors_of([side])
    return {t for t, symbol in opening.symbols.items() if symbol in read and t.bodies and t.kind != POLE}
