"""What evaluation cannot do."""

from __future__ import annotations


class UnknownError(Exception):
    """An operation that cannot be evaluated exactly, or not within the limits: its results are unknown."""


class TooLargeError(UnknownError):
    """One that takes more memory or work than there may be."""


class ArgumentsError(UnknownError):
    """One that is unknown for these arguments, and may be known for others: a matrix that has no such factors."""


class FollowsError(UnknownError):
    """One that is unknown as something that it takes is: what that is says why."""
