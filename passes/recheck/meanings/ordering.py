"""What regions pick of two pairs by their values: argmax and argmin."""

from __future__ import annotations

from itertools import product

from hlo_verify.passes.recheck.meanings.site import UnwrittenError
from hlo_verify.program.ir import Function

COMPARISONS = {
    "EQ": int.__eq__,
    "NE": int.__ne__,
    "LT": int.__lt__,
    "LE": int.__le__,
    "GT": int.__gt__,
    "GE": int.__ge__,
}


def best_of_pairs(region: Function) -> str:
    """Whether a region picks the greater (`max`) or the lesser (`min`) of two pairs by their values, of equal ones the
    pair of the lesser index.

    It may only compare numbers and choose between them, so that it is decided by how two values and two indices are
    ordered: all such orders are tried. Raises `UnwrittenError` for any other region.
    """
    if len(region.arguments) != 4 or len(region.results) != 2:
        raise UnwrittenError("reduce of several operands together")
    values = (0, 1) if region.argument_types[0].dtype == "i1" else (0, 1, 2)
    for reducer in ("max", "min"):
        for a, b, i, j in product(values, values, range(3), range(3)):
            first = (a > b if reducer == "max" else a < b) or (a == b and i <= j)
            if _picked(region, (a, i, b, j)) != ((a, i) if first else (b, j)):
                break
        else:
            return reducer
    raise UnwrittenError("reduce of several operands together")


def _picked(region: Function, arguments: tuple[int, int, int, int]) -> tuple[int, ...]:
    known = dict(zip(region.arguments, arguments, strict=True))
    truths: set[int] = set()
    for op in region.ops:
        given = [known[v] for v in op.operands]
        if op.name == "compare":
            found = int(COMPARISONS[op.attributes["comparison_direction"]](given[0], given[1]))
        elif op.name == "select" and op.operands[0] in truths:
            found = given[1] if given[0] else given[2]
        elif op.name in ("and", "or", "not") and truths.issuperset(op.operands):
            found = 1 - given[0] if op.name == "not" else min(given) if op.name == "and" else max(given)
        elif op.name == "maximum":
            found = max(given)
        elif op.name == "minimum":
            found = min(given)
        else:
            raise UnwrittenError(f"reduce of several operands together, with {op.name}")
        if op.name in ("compare", "and", "or", "not"):
            truths.add(op.results[0])
        known[op.results[0]] = found
    return tuple(known[v] for v in region.results)
