"""Constants, as the text says them."""

from __future__ import annotations

from fractions import Fraction

from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.shapes import Array
from hlo_verify.linter.limits import LintLimits
from hlo_verify.linter.placement.devices import Devices
from hlo_verify.linter.placement.values import FREE, NOTHING, Numbers, Value


def constant(instruction: Instruction, shape: Array, devices: Devices) -> Value:
    """What is known of a constant."""
    one, rank = devices.one, len(shape.sizes)
    number = _literal(instruction.given)
    if number is None:
        elements = _vector(instruction.given) if rank == 1 else None
        return Value(NOTHING, NOTHING, one, one, (NOTHING,) * rank, None, elements, is_constant=True)
    numbers = (number,) * devices.count
    return Value(NOTHING, NOTHING, one, one, (FREE,) * rank, numbers, is_constant=bool(number))


def _literal(text: str) -> Fraction | None:
    """The one number of a constant; none for a list."""
    text = text.strip()
    if text in ("true", "false"):
        return Fraction(text == "true")
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _vector(text: str) -> Numbers | None:
    """The numbers of a constant vector; none where they are left out."""
    pieces = text.strip().strip("{}").split(",")
    if len(pieces) > LintLimits().table_elements:
        return None
    found = [_literal(piece) for piece in pieces]
    numbers = tuple(one for one in found if one is not None)
    return numbers if len(numbers) == len(found) else None
