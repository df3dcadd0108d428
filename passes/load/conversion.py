"""What jaxlib makes of a file's contents, in a process of its own: jaxlib ends the process for some damaged modules.

The process stays for the next file, and is replaced where jaxlib has ended it. A file that nobody damaged costs what
its bytes take on their way there and back; the process starts while the parent imports what it needs itself.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import re
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.workers import Lost, Pool

SECONDS = 300.0
"""For one conversion: hundreds of megabytes of HLO text take a minute."""

MEMORY = 16 << 30
"""Bytes for one conversion: a damaged shape may ask for any number."""

TASKS = 10_000
"""After so many conversions the process is replaced."""

TRIES = 2
"""How often a file may end the process: an earlier one may have harmed it, or the system ended it meanwhile."""

_BEGIN = 64
_MLIR = (b"module", b"builtin", b"func", b"sdy.", b"#", b"!", b"//", b"{-#", b'"')
"""How MLIR text begins; a comment may begin HLO text as well."""

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextlib.contextmanager
def until(deadline: float | None) -> Iterator[None]:
    """Convert no longer than that in this thread, as `time.monotonic` counts, where it is not None."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


_Task = tuple[str, bytes]
_Answer = tuple[bytes, str]
"""What a conversion gave, and what jaxlib said where it gave nothing."""


class ConversionError(ValueError):
    """jaxlib does not take the contents, and says why."""


def text_to_proto(text: str) -> bytes:
    """A serialized HloModuleProto from HLO text."""
    return _convert("text to proto", text.encode())


def proto_to_text(proto: bytes) -> str:
    return _convert("proto to text", proto).decode()


def proto_to_stablehlo(proto: bytes) -> bytes:
    """StableHLO bytecode from a serialized HloModuleProto (see `jaxlib_hlo.proto_to_stablehlo`)."""
    return _convert("proto to StableHLO", proto)


def check_bytecode(contents: bytes) -> None:
    """Parse bytecode, or a portable artifact, once: what does not end that process does not end this one."""
    _convert("bytecode", contents)


_SHORT = 16
"""Elements beyond which constants are not printed."""

_NO_ASCII = re.compile(r"\\[89A-F][0-9A-F]")
"""How MLIR prints a byte of a string that is not ASCII."""


def start() -> None:
    """Start the process, without waiting for it, if there is none."""
    with _ONE_AT_A_TIME:
        _pool(os.getpid()).start()


def needed(path: Path) -> bool:
    """Whether reading a file will take a conversion, by how it begins; no where it cannot be told, or read."""
    try:
        with path.open("rb") as file:
            begin = file.read(_BEGIN).lstrip()
    except (OSError, ValueError):
        return False
    return bool(begin) and not begin.startswith(_MLIR)


def _convert(what: str, contents: bytes) -> bytes:
    """Raises `ConversionError` for what jaxlib refuses, and `InputError` where it ends its process instead, or where
    the user's time is up."""
    deadline = _deadline.get()
    with _ONE_AT_A_TIME:
        left = SECONDS if deadline is None else max(0.001, deadline - time.monotonic())
        (answer,) = _pool(os.getpid()).map([(what, contents)], left)
    if isinstance(answer, Lost) and deadline is not None and time.monotonic() > deadline:
        raise InputError(
            "not read within the time limit; give it more (--time-limit 3000, time_limit=3000), or 0 or None for none",
            Input.NOT_READ_IN_TIME,
        )
    if isinstance(answer, Lost):
        raise InputError(
            f"damaged: jaxlib gives no answer when it reads it, its process {answer.reason}; fetch or make it again",
            Input.DAMAGED,
        )
    converted, said = answer
    if said:
        raise ConversionError(said)
    return converted


_ONE_AT_A_TIME = threading.Lock()


@functools.cache
def _pool(process: int) -> Pool[_Task, _Answer]:
    """One for each process: a copy that `os.fork` makes has no children of its own."""
    pool = Pool(convert, jobs=1, seconds=SECONDS, memory=MEMORY, tasks=TASKS, quiet=True, tries=TRIES)
    atexit.register(lambda: pool.__exit__() if os.getpid() == process else None)
    return pool


def convert(task: _Task) -> _Answer:
    """What the child does."""
    what, contents = task
    try:
        return _converted(what, contents), ""
    except Exception as error:
        return b"", str(error) or type(error).__name__


def _converted(what: str, contents: bytes) -> bytes:
    from hlo_verify import jaxlib_hlo

    if what == "text to proto":
        return jaxlib_hlo.hlo_text_to_proto(contents.decode())
    if what == "proto to text":
        return jaxlib_hlo.proto_to_text(contents).encode()
    if what == "proto to StableHLO":
        return jaxlib_hlo.proto_to_stablehlo(contents)
    _walk(contents)
    return b""


def _walk(bytecode: bytes) -> None:
    """Parse bytecode; where it has names that may be no text, read it as the parent is about to: jaxlib's bindings end
    the process for names of locations that are not."""
    from hlo_verify import jaxlib_api
    from hlo_verify.passes.canonicalize.entry import canonicalize

    module = jaxlib_api.read_bytecode(bytecode, jaxlib_api.make_context())
    text = str(module.operation.get_asm(enable_debug_info=True, large_elements_limit=_SHORT))
    if _NO_ASCII.search(text):
        with contextlib.suppress(InputError):
            canonicalize(module)
