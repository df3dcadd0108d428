"""Partition a module with the XLA in jaxlib, and catch it before and after the SPMD partitioner.

XLA runs in a child process (`partition_child`): its flags, its memory and its crashes stay there. It dumps the module
around the partitioner and would go on to optimize and compile; it is ended as soon as the second dump
is complete. Text is dumped because a serialized proto loses the number of partitions.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hlo_verify.diagnostics import CODES, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.sources import dump_pairs
from hlo_verify.sources.shardings_file import Shardings

MAX_DEVICES = 2048
"""XLA's CPU client numbers the devices of one process up to here."""

_FLAGS = (
    "--xla_dump_to={folder}",
    "--xla_dump_hlo_as_text",
    "--xla_dump_large_constants=true",
    "--xla_dump_hlo_pass_re=spmd|shardy|sharding",
)
_POLL = 0.01
_FATAL = re.compile(r"F\d{4} ")
"""How XLA logs why it ends its process."""


@dataclass(frozen=True, slots=True)
class Partitioned:
    """What the partitioner was given and what it made of it, as HLO text."""

    annotated: Path
    partitioned: Path


@contextmanager
def partition(
    source: str | bytes | Path, *, devices: int | None = None, shardings: Shardings | None = None
) -> Iterator[Job]:
    """Begin to partition a module (a path, or its contents) for as many devices as its meshes and shardings say.

    `shardings` are put on arguments and results that the module leaves without.

    What the job makes lives as long as the context, and so does its process.
    """
    with tempfile.TemporaryDirectory(prefix="hlo-verify-") as name:
        folder = Path(name)
        path = source if isinstance(source, Path) else folder / "module"
        if not isinstance(source, Path):
            path.write_bytes(source.encode() if isinstance(source, str) else source)
        given = folder / "shardings"
        if shardings is not None:
            given.write_bytes(pickle.dumps(shardings))
        arguments = [str(folder), str(path), "" if devices is None else str(devices)]
        with (folder / "stderr").open("wb") as stderr:
            process = _start(folder, arguments, stderr)
        try:
            yield Job(folder, process, str(source) if isinstance(source, Path) else "the module")
        finally:
            process.kill()
            process.wait()


def _start(folder: Path, arguments: list[str], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    dump = folder / "dump"
    dump.mkdir()
    flags = " ".join(flag.format(folder=dump) for flag in _FLAGS)
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip(),
    }
    command = [sys.executable, "-P", "-m", "hlo_verify.xla.partition_child", *arguments]
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr)


@dataclass(frozen=True, slots=True)
class Job:
    """A module on its way through the partitioner. `what` is what messages call it."""

    folder: Path
    process: subprocess.Popen[bytes]
    what: str

    def wait(self, waiting: Callable[[], None] | None = None) -> Partitioned:
        """Both halves, as soon as they are there; `waiting` is called some times a second until then.

        Raises `InputError` for a module that cannot be read, that is for one device or for more than `MAX_DEVICES`,
        or that XLA does not take.
        """
        dump = self.folder / "dump"
        status = self.process.poll()
        while status is None and not _is_partitioned(dump):
            if waiting is not None:
                waiting()
            time.sleep(_POLL)
            status = self.process.poll()
        self.process.kill()
        return _collect(self.folder, status or 0, self.what)


def _is_partitioned(dump: Path) -> bool:
    """Whether the dump after the partitioner is there and complete: its last computation is ENTRY, and it is closed."""
    for found in dump_pairs.parse_names(dump, [entry.name for entry in dump.iterdir()]):
        if found.after in dump_pairs.PARTITIONERS:
            with found.path.open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - 16))
                closed = file.read().rstrip(b"\n").endswith(b"\n}")
            if closed and b"\nENTRY " in found.path.read_bytes():
                return True
    return False


def _collect(folder: Path, status: int, what: str) -> Partitioned:
    """What the child left. Errors that XLA ran into after the partitioner are of no interest."""
    dump, failure = folder / "dump", folder / "error"
    if not _is_partitioned(dump):
        error = _failure(failure) if failure.is_file() else _no_dump(folder, status)
        raise error if str(error).startswith(f"{what}: ") else error.within(what)
    pairs, _ = dump_pairs.find_pairs(dump)
    return Partitioned(pairs[0].annotated or pairs[0].logical, pairs[0].partitioned)


def _failure(file: Path) -> InputError:
    """The error that the child left in a file."""
    said = json.loads(file.read_text())
    return InputError(said["message"], CODES[said["code"]])


def _no_dump(folder: Path, status: int) -> InputError:
    if status == 0:
        return InputError("XLA compiled the module without running its SPMD partitioner", Input.XLA_REFUSES)
    how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    lines = (folder / "stderr").read_text(errors="replace").strip().splitlines()
    fatal = [line for line in lines if _FATAL.match(line)] or lines[-3:]
    said = f": {' | '.join(fatal)[:600]}" if fatal else ""
    return InputError(f"XLA {how} while it partitioned the module{said}", Input.XLA_REFUSES)
