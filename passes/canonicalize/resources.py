"""Constants that a module keeps apart from its text, `dense_resource<name>`: what they hold, not what they are called.

jaxlib's bindings give no access to such a blob, but print it behind the module, as text that is quick to read.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.canonicalize.dense import numpy_dtype

Array = npt.NDArray[Any]

REFERENCE = re.compile(r'dense_resource<("(?:[^"\\]|\\.)*"|[^>\s]+)>')
_ENTRY = re.compile(r'("(?:[^"\\]|\\.)*"|[\w.$-]+):\s*"0x([0-9A-Fa-f]*)"')
_SHORT = 16
"""Elements beyond which other constants are not printed."""
_ALIGNMENT = 8
"""Hexadecimal digits at the start of a blob that say how it is aligned in memory."""


class Resources:
    """The blobs of one MLIR module; they are read at the first question."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self._blobs: dict[str, bytes] | None = None

    def of(self, name: str) -> bytes:
        """The bytes of a blob. Raises `InputError` where the module does not hold it."""
        if self._blobs is None:
            text = str(self.module.operation.get_asm(large_elements_limit=_SHORT))
            _, section, blobs = text.rpartition("\n{-#")
            found = _ENTRY.findall(blobs) if section else ()
            self._blobs = {key: bytes.fromhex(digits[_ALIGNMENT:]) for key, digits in found}
        if name not in self._blobs:
            raise InputError(
                f"the value of a constant is not in the module: dense_resource<{name}>; write the module again without "
                "--mlir-elide-resource-strings-if-larger",
                Input.ELIDED_CONSTANTS,
            )
        return self._blobs[name]

    def elements(self, name: str, shape: tuple[int, ...], element_type: str) -> Array:
        """A blob as elements. Raises `InputError` where it is none of that type."""
        dtype = numpy_dtype(element_type)
        if element_type in ("i2", "i4", "ui2", "ui4") or element_type.startswith(("f4", "f6")):
            raise InputError(
                f"a constant of element type {element_type} in a dense_resource is not supported: it is not said how "
                "its elements are packed",
                Input.UNSUPPORTED_MODULE,
            )
        blob = self.of(name)
        if len(blob) != dtype.itemsize * int(np.prod(shape, dtype=object)):
            raise InputError(
                f"dense_resource<{name}> has {len(blob)} bytes, which are not {element_type}{list(shape)}: the module "
                "is damaged",
                Input.DAMAGED,
            )
        if dtype == np.bool_ and any(byte > 1 for byte in set(blob)):
            raise InputError(f"dense_resource<{name}> holds truth values that are neither 0 nor 1", Input.DAMAGED)
        return np.frombuffer(blob, dtype).reshape(shape)

    def written_out(self, text: str) -> str:
        """The text of an attribute with digests of the blobs that it names in the place of their names."""

        def digest(reference: re.Match[str]) -> str:
            return f"dense_resource<{hashlib.sha256(self.of(reference[1])).hexdigest()}>"

        return REFERENCE.sub(digest, text)
