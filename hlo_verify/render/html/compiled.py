"""Compiled templates, kept where Python keeps compiled modules (PEP 3147): to compile takes longer than to fill."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import cache_from_source
from pathlib import Path

from jinja2.bccache import Bucket, BytecodeCache


class Compiled(BytecodeCache):
    """What templates were compiled to, by their texts, the `settings` of their environment and the Jinja that did it.

    A file that cannot be read or written is none, nor is one that is not as it was written: code that was damaged may
    end the process. None is written where Python is to write no bytecode.
    """

    def __init__(self, settings: str) -> None:
        self._settings = f"{settings}\n{_jinja()}"

    def get_source_checksum(self, source: str) -> str:
        return super().get_source_checksum(f"{self._settings}\n{source}")

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError, NotImplementedError):
            held = _file(bucket).read_bytes()
            size = sha256().digest_size
            if held[:size] == sha256(held[size:]).digest():
                bucket.bytecode_from_string(held[size:])

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        made = bucket.bytecode_to_string()
        with suppress(OSError, NotImplementedError):
            file = _file(bucket)
            part = file.with_suffix(f".{os.getpid()}")
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                part.write_bytes(sha256(made).digest() + made)
                part.replace(file)
            except OSError:
                part.unlink(missing_ok=True)


def _file(bucket: Bucket) -> Path:
    """Raises `NotImplementedError` where Python keeps no compiled modules."""
    return Path(cache_from_source(__file__)).parent / f"{bucket.key}.{sys.implementation.cache_tag}.template"


def _jinja() -> str:
    try:
        return version("jinja2")
    except PackageNotFoundError:  # it is a copy in somebody's archive
        return ""
