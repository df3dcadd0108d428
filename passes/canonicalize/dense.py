"""Element types, and dense elements as numpy arrays of the exact type."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jaxlib_api import ir
from hlo_verify.program.element_types import DTYPES

Array = npt.NDArray[Any]


def read_elements(attribute: Any) -> Array:
    """The elements of a dense attribute; a splat is a view with zero strides. Raises `InputError`."""
    type_ = ir.ShapedType(attribute.type)
    shape, dtype = tuple(type_.shape), numpy_dtype(str(type_.element_type))
    if 0 in shape:
        return np.zeros(shape, dtype)
    if dtype.kind in "biuf" and dtype.isbuiltin == 1:  # numpy's own types
        elements = np.asarray(attribute)
        return elements if elements.dtype == dtype else elements.astype(dtype)
    if attribute.is_splat:
        return np.broadcast_to(np.array(attribute.get_splat_value().value, dtype), shape)
    return elements_from_text(str(attribute), type_)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of a StableHLO element type. Raises `InputError`."""
    if name == "index":
        return np.dtype(np.int64)
    if name not in DTYPES:
        raise InputError(f"constants of element type {name} are not supported", Input.UNSUPPORTED_MODULE)
    dtype: np.dtype[Any] = np.dtype(DTYPES[name])
    return dtype


# One element, or one part of a complex element, as MLIR prints it.
_ELEMENT = re.compile(r"true|false|0x[0-9A-Fa-f]+|[-+]?[0-9][-+0-9.eE]*")


def elements_from_text(text: str, type_: Any) -> Array:
    """The elements in `dense<…>`, for those that jaxlib's binding gives no access to (bf16, fp8, i4, complex)."""
    type_ = ir.ShapedType(type_)
    shape, dtype = tuple(type_.shape), numpy_dtype(str(type_.element_type))
    match = re.search(r"dense<(.*)> : ", text, re.DOTALL)
    if match is None:
        raise InputError(f"the value of a constant is not in the module: {text[:80]}", Input.ELIDED_CONSTANTS)
    body = match[1].strip()
    if body.startswith('"0x'):
        elements = np.frombuffer(bytes.fromhex(body[3:-1]), dtype)
    else:
        part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
        parts = np.array([_element(token, part) for token in _ELEMENT.findall(body)], part)
        elements = parts.view(dtype) if dtype.kind == "c" else parts
    return np.broadcast_to(elements.reshape(()), shape) if elements.size == 1 else elements.reshape(shape)


def _element(token: str, dtype: np.dtype[Any]) -> Any:
    if token.startswith("0x"):  # the bits of a float that no decimal gives
        return np.array(int(token, 16), f"u{dtype.itemsize}").view(dtype)[()]
    if token in ("true", "false"):
        return token == "true"
    return dtype.type(float(token)) if dtype.kind in "fV" else dtype.type(int(token))
