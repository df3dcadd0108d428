"""Where the same operations come again in a list of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

LEAST = 4
"""Turns that are worth a loop."""

PERIODS = 4
"""Distances at which operations may come again that are tried."""


def periods(keys: Sequence[Hashable]) -> list[int]:
    """Distances at which operations come again, the most frequent first."""
    seen: dict[Hashable, int] = {}
    found: Counter[int] = Counter()
    for n, key in enumerate(keys):
        if key is not None and key in seen:
            found[n - seen[key]] += 1
        seen[key] = n
    by_length = Counter[int]()
    for period in found:
        by_length[period] = max((length for _, length in runs(keys, period)), default=0)
    return [period for period, length in by_length.most_common(PERIODS) if length >= (LEAST - 1) * period]


def runs(keys: Sequence[Hashable], period: int) -> list[tuple[int, int]]:
    """Where what comes after so many operations is the same, and for how long, the longest first."""
    found, start = [], 0
    for n in range(len(keys) - period + 1):
        is_same = n + period < len(keys) and keys[n] is not None and keys[n] == keys[n + period]
        if not is_same:
            if n > start:
                found.append((start, n - start))
            start = n + 1
    return sorted(found, key=lambda run: -run[1])[:2]
