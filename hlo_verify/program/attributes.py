"""Attributes of operations as values that can be compared and looked up."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


def fingerprint(value: Any) -> Any:
    """An attribute as a hashable value, equal for equal attributes alone: all elements of an array, not its print."""
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, _elements(value)
    if isinstance(value, dict):
        return "dict", tuple((name, fingerprint(item)) for name, item in sorted(value.items()))
    if isinstance(value, tuple | list):
        return "tuple", tuple(map(fingerprint, value))
    if is_dataclass(value):
        return type(value).__name__, tuple(fingerprint(getattr(value, each.name)) for each in fields(value))
    return type(value).__name__, repr(value)


def enumerator(value: Any) -> str:
    """The name of one of an enumeration, without what MLIR prints around it: `ADJOINT` of `#stablehlo<transpose
    ADJOINT>`."""
    return str(value).rstrip(">").split()[-1].split(".")[-1]


def _elements(array: npt.NDArray[Any]) -> bytes | tuple[str, bytes]:
    """The bytes of an array; of one element that is repeated without memory of its own, the bytes of that."""
    return ("splat", elements_once(array).tobytes()) if is_splat(array) else array.tobytes()


def is_splat(array: npt.NDArray[Any]) -> bool:
    """Whether an array is one element that is repeated without memory of its own, however often."""
    return bool(array.size) and not any(array.strides)


def elements_once(value: Any) -> npt.NDArray[Any]:
    """The elements of a constant, for what asks for no places: of one that is repeated, that one."""
    array = np.asarray(value)
    return array.reshape(-1)[:1] if is_splat(array) else array
