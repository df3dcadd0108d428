"""The integers that a tensor's elements may be: those of its type, and of an argument those that the user assumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlo_verify.program.element_types import INTEGER_RANGES

if TYPE_CHECKING:
    from hlo_verify.terms.term import Tensor


def of_elements(source: Tensor) -> tuple[int, int] | None:
    """The least and the greatest of a tensor's elements, as the machine holds them; None where they are no integers."""
    if source.assumed is None or source.dtype not in INTEGER_RANGES:
        return INTEGER_RANGES.get(source.dtype)
    return source.assumed.integers
