"""Which loops surely end: those that count up or down to a bound in steps, as scans do.

Of a loop that does not, nothing has a value that is made of what it gives, not even what is 0 after every turn.
"""

from __future__ import annotations

from collections.abc import Mapping

from hlo_verify.evaluate.numbers import bounds, is_integer
from hlo_verify.program.ir import Function, Name, Op

MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
"""How the second operand stands to the first, by how the first stands to the second."""


def surely_ends(loop: Op, numbers: Mapping[Name, int]) -> bool:
    """Whether a loop does, however it begins; `numbers` has the values of integers that are constants."""
    condition, _ = loop.regions
    (test,) = condition.results
    made = next((op for op in condition.ops if test in op.results), None)
    if made is None or made.name != "compare" or made.types[0].shape:
        return False
    direction = str(made.attributes["comparison_direction"])
    if direction not in MIRRORED:
        return False
    counter, bound = made.operands
    return _passes(loop, counter, direction, numbers.get(bound), numbers) or _passes(
        loop, bound, MIRRORED[direction], numbers.get(counter), numbers
    )


def _passes(loop: Op, counter: Name, direction: str, bound: int | None, numbers: Mapping[Name, int]) -> bool:
    """Whether what is carried as `counter`, and goes on while it is on that side of the bound, gets past it."""
    condition, body = loop.regions
    if bound is None or counter not in condition.arguments:
        return False
    place = condition.arguments.index(counter)
    dtype = condition.argument_types[place].dtype
    step = _step(body, place, numbers)
    if step is None or not is_integer(dtype):
        return False
    least, most = bounds(dtype)
    last = bound if direction in ("LE", "GE") else bound - 1 if direction == "LT" else bound + 1
    return 0 < step <= most - last if direction in ("LT", "LE") else least - last <= step < 0


def _step(body: Function, place: int, numbers: Mapping[Name, int]) -> int | None:
    """The constant that a turn adds to what is carried there."""
    before, after = body.arguments[place], body.results[place]
    made = next((op for op in body.ops if after in op.results), None)
    if made is None or made.name not in ("add", "subtract"):
        return None
    a, b = made.operands
    if a == before and b in numbers:
        return numbers[b] if made.name == "add" else -numbers[b]
    return numbers.get(a) if b == before and made.name == "add" else None
