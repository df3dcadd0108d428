"""Which laws made terms what they are, and how often: `-v` names them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hlo_verify.memory import per_session

_counts: Callable[[], Counter[str]] = per_session("laws used", Counter)


def used(law: str) -> None:
    """Note that a law of the table (`laws.TABLE`) changed a term."""
    _counts()[law] += 1


def counts() -> dict[str, int]:
    """The laws that were used since the session forgot its terms, in the order of their names."""
    return dict(sorted(_counts().items()))
