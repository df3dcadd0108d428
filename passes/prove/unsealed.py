"""Leaves that stand for definitions not made yet, found by the leaves that those definitions are of.

A value can equal a definition only if it is made of all of its leaves. Many definitions have a leaf in common, whatever
each layer uses (positions, a mask, a rate), so that none is made because one of its leaves has come up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from hlo_verify.terms.term import Tensor


@dataclass(slots=True)
class Unsealed:
    """Stand-ins, each of which waits at one of its definition's leaves, at the one that fewest values are about."""

    _at: dict[Tensor, list[tuple[Tensor, tuple[Tensor, ...]]]] = field(default_factory=dict)

    def add(self, stand: Tensor, of: tuple[Tensor, ...]) -> None:
        """A leaf that stands for a definition of other leaves."""
        self._wait(stand, of, of)

    def made_of(self, leaves: Collection[Tensor]) -> Iterator[Tensor]:
        """The stand-ins for definitions of no other leaves, or of such stand-ins besides, which wait no longer."""
        found = list(self._taken(leaves, frozenset(leaves)))
        yield from found
        reached = (*leaves, *found)
        yield from self._taken(reached, frozenset(reached))

    def _taken(self, leaves: Iterable[Tensor], reached: frozenset[Tensor]) -> Iterator[Tensor]:
        for leaf in leaves:
            for stand, of in self._at.pop(leaf, ()):
                missing = [inner for inner in of if inner not in reached]
                if missing:
                    self._wait(stand, of, missing)
                else:
                    yield stand

    def _wait(self, stand: Tensor, of: tuple[Tensor, ...], missing: Iterable[Tensor]) -> None:
        """Wait for the leaf that was made last: those made early are arguments and what all layers use."""
        self._at.setdefault(max(missing, key=lambda leaf: leaf.uid), []).append((stand, of))
