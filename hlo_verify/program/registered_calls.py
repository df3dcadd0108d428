"""Which targets of custom calls users have given a meaning; `hlo_verify.custom_calls` is where they say it."""

from __future__ import annotations

SAID: dict[str, str] = {}
"""What was said of each target, in words."""


def registered() -> frozenset[str]:
    """The targets that users have given a meaning."""
    return frozenset(SAID)
