"""Which tests run where not all do: those marked `slow` do not, and of those marked `drawn` only some.

`slow` is a test that takes long and says in more places what quick tests say in one. `drawn(n)` is a test over many
cases that differ little: `n` of its cases run, drawn by the seed of the run, and the others are slow. `drawn(n,
each=kind)` draws as many of every kind, which is a function of the case's parameters, by their names.

`--slow` runs all of them, `--slow-part K/N` the K-th of N parts of the slow ones beside the others, and a test whose
name is given on the command line runs as well.

What costs more than a tenth of a second of a processor stands in `tests/costly.txt`, dearest first, as
`--write-costs` found it: `--costly-part K/N` runs the K-th of N parts of these, and all others.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

COSTLY = Path(__file__).parent.parent / "costly.txt"

COSTS = 0.1
"""Seconds of a processor, its children's too, from which on a test is costly."""

ALWAYS = (
    "tests/test_fixtures.py",
    "tests/test_examples.py",
    "tests/test_soundness",
    "tests/test_layers.py",
    "tests/test_limits.py",
    "tests/program/test_operations.py",
)
"""How the names begin of those that run whatever they cost: what users rely on first, and how the code is laid out."""


@dataclass(frozen=True, slots=True)
class Part:
    """The `number`-th of `of` parts, counted from one."""

    number: int
    of: int

    def holds(self, name: str) -> bool:
        """Whether a test is in it: every test is in one part."""
        return _drawn(name) % self.of == self.number - 1


def part(text: str) -> Part:
    """`K/N` as it stands on the command line; a `ValueError` where it is no such part."""
    number, of = map(int, text.split("/"))
    if not 1 <= number <= of:
        raise ValueError(f"{text} is no part: the first of three is 1/3")
    return Part(number, of)


def slow(items: Iterable[pytest.Item], seed: int) -> set[str]:
    """The names of the slow ones, the same in every process of a run that collects the same tests."""
    found, groups = set(), defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is not None:
            found.add(item.nodeid)
        elif (drawn := item.get_closest_marker("drawn")) is not None:
            groups[_group(item, **drawn.kwargs)].append((item.nodeid, *drawn.args))
    for group in groups.values():
        group.sort(key=lambda case: _drawn(f"{seed} {case[0]}"))
        found.update(name for at, (name, count) in enumerate(group) if at >= count)
    return found


def others_than(part: Part, text: str) -> set[str]:
    """The names of costly tests that are not in a part of them: they are dealt out, for parts that cost the same."""
    names = [line.partition(" ")[2] for line in text.splitlines()]
    return {name for at, name in enumerate(names) if at % part.of != part.number - 1}


def listed(costs: dict[str, float]) -> str:
    """What `others_than` reads, of the seconds that tests cost."""
    dearest = sorted(costs.items(), key=lambda test: (-test[1], test[0]))
    return "".join(f"{cost:.1f} {name}\n" for name, cost in dearest if cost >= COSTS and not name.startswith(ALWAYS))


def _group(item: pytest.Item, each: Callable[..., Hashable] | None = None) -> tuple[str, Hashable]:
    """What the cases of a test are drawn among."""
    callspec: Any = getattr(item, "callspec", None)
    return item.nodeid.partition("[")[0], each(**callspec.params) if each else None


def _drawn(text: str) -> int:
    """A number that looks random and is the same in every process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
