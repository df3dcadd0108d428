"""The operands by which it is decided what operations give that are not steady, and where these are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hlo_verify.program.ir import Name, Op, operations
from hlo_verify.program.op_families import HAS_EDGES, plain_name

if TYPE_CHECKING:
    from hlo_verify.evaluate.maps import Array

TOP_K = frozenset({"chlo.top_k", "mhlo.topk"})
_ABOVE, _BELOW = 1, -1
_EDGES: Mapping[str, tuple[tuple[float, int], ...]] = {
    "acos": ((-1, _ABOVE), (1, _BELOW)),
    "acosh": ((1, _ABOVE),),
    "asin": ((-1, _ABOVE), (1, _BELOW)),
    "atanh": ((-1, _ABOVE), (1, _BELOW)),
    "erf_inv": ((-1, _ABOVE), (1, _BELOW)),
    "log_plus_one": ((-1, _ABOVE),),
}
"""Where numbers begin, above or below, that are those of functions, which are none or infinite there or beyond; all
others have their edge at 0."""
_OF_TWO = ("atan2", "polygamma", "power", "zeta")
_HAS_POLES = frozenset("digamma lgamma polygamma zeta".split())
"""Functions that are infinite at all integers that are not positive."""
_HOLDS_EDGES = frozenset("acos acosh asin sqrt".split())
"""Functions that are numbers at their edges, near those inside."""


def decisive(op: Op) -> Sequence[Name]:
    """The operands whose elements an operation compares with each other, or that lie within its edges or not: of a
    quotient the divisor, and of most others the first one."""
    if op.name not in HAS_EDGES:
        return _compared(op)
    is_of_all = plain_name(op.name) in _OF_TWO
    return op.operands if is_of_all else (op.operands[int(op.name == "divide")],)


def is_cut(op: Op, *, is_complex: bool) -> bool:
    """Whether what an operation gives is another number, and a number, on either side of its edge: an angle, and roots
    and logarithms of complex numbers."""
    return op.name == "atan2" or (is_complex and op.name != "divide")


def may_be_beyond(name: str, values: Sequence[Array | None]) -> bool:
    """Whether intervals of what an operation is of, as far as they are known, reach beyond an edge, and do not lie
    there as a whole. An exponent is asked where the base may be 0 or less, and of an angle the length where the height
    may be 0."""
    from hlo_verify.evaluate.intervals import is_point

    name, (first, second) = plain_name(name), (*values, None)[:2]
    if name in _HAS_POLES:
        return any(each is not None and bool(((each["low"] <= 0) & ~is_point(each)).any()) for each in (first, second))
    if name == "power" and second is not None and ((first is None or first["low"] <= 0) & ~is_point(second)).any():
        return True
    if first is None:
        return False
    if name == "atan2" and second is not None:
        is_at_cut = (first["low"] <= 0) & (first["high"] >= 0) & ~(second["low"] > 0)
        return bool((is_at_cut & ~(is_point(first) & is_point(second))).any())
    return _reaches_beyond(name, first)


def _reaches_beyond(name: str, values: Array) -> bool:
    from hlo_verify.evaluate.intervals import is_point

    low, high = values["low"], values["high"]
    is_open = np.zeros(low.shape, np.bool_)
    for edge, side in _EDGES.get(name, ((0, _ABOVE),)):
        is_inside = low >= edge if side == _ABOVE else high <= edge
        is_open |= (low <= edge) & (edge <= high) & ~(is_inside & (name in _HOLDS_EDGES))
    return bool((is_open & ~is_point(values)).any())


def _compared(op: Op) -> Sequence[Name]:
    """The operands whose elements an operation compares with each other."""
    if op.name in TOP_K or not op.regions:
        return op.operands
    region = op.regions[0]
    if op.name == "select_and_scatter":
        return op.operands[:1]
    if op.name != "sort":
        return op.operands if any(inner.name == "compare" for inner in operations(region)) else ()
    asked = {v for inner in operations(region) for v in inner.operands}
    if len(op.operands) == 1:
        return ()  # whichever of equal elements is first
    return [v for k, v in enumerate(op.operands) if asked.intersection(region.arguments[2 * k : 2 * k + 2])]
