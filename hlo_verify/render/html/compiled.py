"""Compiled templates, kept where Python keeps compiled modules (PEP 3147): to compile takes longer than to fill."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from pickle import UnpicklingError

from jinja2.bccache import Bucket, BytecodeCache


class Compiled(BytecodeCache):
    """What templates were compiled to, by their texts and the `settings` of their environment.

    A file that cannot be read or written is none, and none is written where Python is to write no bytecode.
    """

    def __init__(self, settings: str) -> None:
        self._settings = settings

    def get_source_checksum(self, source: str) -> str:
        return super().get_source_checksum(f"{self._settings}\n{source}")

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError, EOFError, ValueError, UnpicklingError), _file(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        file = _file(bucket)
        part = file.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(bucket.bytecode_to_string())
            part.replace(file)


def _file(bucket: Bucket) -> Path:
    return Path(cache_from_source(__file__)).parent / f"{bucket.key}.{sys.implementation.cache_tag}.template"
