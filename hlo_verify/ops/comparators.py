"""Comparators of sorts that order elements by one operand: upwards or downwards.

A comparator that does nothing but compare, select and combine truth values depends on how its arguments and the
constants in it are ordered, and on nothing else. So trying every order of two elements and 0 is a proof, for numbers.
Zeros of both signs are tried, as the total order tells them apart: JAX makes them one before it compares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from hlo_verify.program.element_types import COMPARED, compare_types, is_float, is_integer
from hlo_verify.program.ir import Function, Op, TensorType

Scalar = float | int | bool

FLOATS = (-2.0, -1.0, -0.0, 0.0, 1.0, 2.0)
INTEGERS = (0, 1, 2)


def order_of(region: Function) -> tuple[int, bool] | None:
    """The operand that a comparator orders elements by, and whether the least comes first; None where it does not."""
    if len(region.results) != 1 or len(region.arguments) % 2:
        return None
    if any(len(op.results) != 1 or op.types[0].shape or op.regions for op in region.ops):
        return None
    compared = {name for op in region.ops for name in op.operands}
    keys = [n for n in range(len(region.arguments) // 2) if compared & set(region.arguments[2 * n : 2 * n + 2])]
    if len(keys) != 1:
        return None
    (key,) = keys
    return _ordered(key, [_of(region, key, a, b) for a, b in _elements(region.argument_types[2 * key])])


def first_key(region: Function) -> tuple[int, bool] | None:
    """The operand by which a comparator orders elements first, whatever it asks of the others where that is equal, and
    whether the least comes first. That operand itself comes out in order. None where no operand is seen to be such."""
    if len(region.results) != 1 or any(len(op.results) != 1 or op.types[0].shape or op.regions for op in region.ops):
        return None
    for key in range(len(region.arguments) // 2):
        found = [_of(region, key, a, b) for a, b in _elements(region.argument_types[2 * key])]
        order = _ordered(key, [(a, b, less) for a, b, less in found if a != b])
        if order is not None and not any(less for a, b, less in found if a == b):
            return order
    return None


def _ordered(key: int, found: Sequence[tuple[Scalar, Scalar, bool | None]]) -> tuple[int, bool] | None:
    """An operand, and whether the least comes first, if that is what a comparator says of some elements, where it says
    anything; None where it says something else."""
    for ascending in (True, False):
        if found and all(less == ((a < b) if ascending else (a > b)) for a, b, less in found):
            return key, ascending
    return None


def _elements(type_: TensorType) -> Iterator[tuple[Scalar, Scalar]]:
    values: tuple[Scalar, ...] = FLOATS if is_float(type_.dtype) else INTEGERS if is_integer(type_.dtype) else ()
    yield from product(values, repeat=2)


def _of(region: Function, key: int, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar, bool | None]:
    """Two elements, and whether the first comes before the second; None if that hangs on something else."""
    known: dict[int, Scalar] = dict(zip(region.arguments[2 * key : 2 * key + 2], (a, b), strict=True))
    for op in region.ops:
        value = _step(op, [known.get(name) for name in op.operands], region.argument_types[2 * key])
        if value is not None:
            known[op.results[0]] = value
    found = known.get(region.results[0])
    return a, b, found if isinstance(found, bool) else None


def _step(op: Op, operands: list[Scalar | None], type_: TensorType) -> Scalar | None:
    if op.name == "constant":
        return _constant(op, type_)
    if op.name in ("and", "or") and (op.name == "or") in [value for value in operands if isinstance(value, bool)]:
        return op.name == "or"  # whatever the other one is
    values = [value for value in operands if value is not None]
    if len(values) != len(operands) or not values:
        return None
    if op.name == "compare":
        said = op.attributes.get("compare_type", "NOTYPE")
        total = said == "TOTALORDER"
        if any(isinstance(value, bool) for value in values) or (total and any(map(math.isnan, values))):
            return None
        if said not in compare_types(type_.dtype):
            return None
        places = [(value, math.copysign(1, value)) for value in values] if total else values
        return COMPARED[op.attributes["comparison_direction"]](*places)
    if op.name == "select" and isinstance(values[0], bool):
        return values[1] if values[0] else values[2]
    if not all(isinstance(value, bool) for value in values):
        return None
    logical: dict[str, Callable[..., bool]] = {
        "and": lambda p, q: p and q,
        "or": lambda p, q: p or q,
        "xor": lambda p, q: p != q,
        "not": lambda p: not p,
    }
    return logical[op.name](*values) if op.name in logical else None


def _constant(op: Op, type_: TensorType) -> Scalar | None:
    """A truth value, or, of floats, 0 or NaN: with those, the elements that are tried are in every order."""
    dtype, value = op.types[0].dtype, op.attributes["value"].reshape(-1)[0]
    if dtype == "i1":
        return bool(value)
    number = float(value) if is_float(dtype) and dtype == type_.dtype else 1.0
    return number if number == 0 or math.isnan(number) else None
