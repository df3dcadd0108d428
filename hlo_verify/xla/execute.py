"""Run modules on XLA's virtual CPU devices: what they compute, told by code that shares nothing with the prover.

XLA runs in a child process (`hlo_verify.xla.execute_child`), because the number of virtual devices is fixed when jax
starts, and because a wrong module may crash it or wait for ever. The child stays, so that it compiles what it has
seen before only once; one that dies is replaced at the next run.
"""

from __future__ import annotations

import enum
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hlo_verify.passes.load.load import read_file
from hlo_verify.program.ir import Module

Array = npt.NDArray[Any]
Source: TypeAlias = "str | bytes | Path | Module"

_START = 120.0
"""Seconds that a child may take until it is ready; importing jax takes one or two."""
_FLAGS = (
    "--xla_force_host_platform_device_count={devices}",
    # Compiling takes far longer than running: do as little of it as there is.
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_parallel_codegen_split_count=1",
    "--xla_cpu_max_isa=SSE4_2",
)
_X86 = ("--xla_cpu_max_isa=SSE4_2",)
_BEFORE_0_11 = ("--xla_cpu_use_fusion_emitters=false",)
"""Newer versions of jaxlib end with an error for a flag that they do not know."""
_FATAL = re.compile(r"F\d{4} ")
"""How XLA logs why it ends its process."""


class Failure(enum.StrEnum):
    """REJECTED: XLA does not take the module, or its arguments do not fit. CRASH: the child died. TIMEOUT: too slow."""

    REJECTED = "rejected"
    CRASH = "crash"
    TIMEOUT = "timeout"


class ExecutionError(RuntimeError):
    """A module did not run; the message says why, and `failure` what kind of why."""

    def __init__(self, message: str, failure: Failure) -> None:
        super().__init__(message)
        self.failure = failure


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """What each device holds of one result of a global module."""

    values: Array
    """(devices, *shard shape)."""
    starts: Array
    """Where each shard starts in the whole, (devices, rank)."""


class Executor:
    """Runs modules on `devices` virtual devices, one run at a time; a context manager that ends the child.

    Devices are a module's partitions, or its replicas. `timeout` is in seconds, for each run with its compilation.
    """

    def __init__(self, devices: int, *, timeout: float = 60.0) -> None:
        self.devices = devices
        self.timeout = timeout
        self._folder = tempfile.TemporaryDirectory(prefix="hlo-verify-")
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None
        self._is_ready = False

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child. A later run starts another one, after which this is to be called again."""
        self._stop()
        self._folder.cleanup()

    def run(self, module: Source, arguments: Sequence[Array], *, logical: bool = False) -> list[Array]:
        """The results of a module for such arguments, in the order of its signature.

        `module` is a path, the contents of a file (a `str` of several lines is text), or a loaded module.

        - With `logical`, and on one device, it is a logical module, which one device runs; what it says of shardings
          is dropped. Arguments and results have a leading dimension of 1.
        - On several devices it is what each of them runs: arguments and results are stacked, (devices, *local shape).
        - A module with manual regions is global: arguments are (1, *shape), and are placed as it says itself. Results
          are whole, (1, *shape), each element taken from the first device that has it (`run_shards` has all).

        Raises `ExecutionError`.
        """
        return self._answer(module, arguments, per_device=False, logical=logical)

    def run_shards(self, module: Source, arguments: Sequence[Array]) -> list[Shards]:
        """What each device holds of the results of a global module, where XLA placed it: a result that the module gives
        no sharding may be split, and one that only claims to be replicated shows. Raises `ExecutionError`."""
        found = self._answer(module, arguments, per_device=True, logical=False)
        return [Shards(values, starts) for values, starts in zip(found[::2], found[1::2], strict=True)]

    def _answer(self, module: Source, arguments: Sequence[Array], *, per_device: bool, logical: bool) -> list[Array]:
        """What the child answers to a request."""
        request = (*_contents(module), [np.asarray(argument) for argument in arguments], per_device, logical)
        connection = self._started()
        try:
            connection.send(request)
            if not connection.poll(self.timeout):
                raise ExecutionError(f"the module ran for more than {self.timeout:g} s", Failure.TIMEOUT)
            results, message = connection.recv()
        except (EOFError, ConnectionError) as error:
            raise ExecutionError(self._why_it_died(), Failure.CRASH) from error
        except BaseException:  # also Ctrl-C: the child's answer to this request must not be that to the next one
            self._stop()
            raise
        if message:
            raise ExecutionError(message, Failure.REJECTED)
        return list(results)

    def start(self) -> None:
        """Start the child, if there is none, and do not wait for it: `run` does."""
        if self._connection is not None and self._process is not None and self._process.poll() is None:
            return
        self._stop()
        self._connection, there = _pair()
        Path(self._folder.name).mkdir(exist_ok=True)
        with there, self._stderr("wb") as stderr:
            self._process = _start(there.fileno(), self.devices, stderr)

    def _started(self) -> Connection[Any, Any]:
        """The connection to a child that is ready. Raises `ExecutionError`."""
        self.start()
        here = self._connection
        assert here is not None
        if self._is_ready:
            return here
        try:
            if not here.poll(_START):
                raise ExecutionError(f"the child process was not ready after {_START:g} s", Failure.TIMEOUT)
            here.recv()
        except (EOFError, ConnectionError) as error:
            raise ExecutionError(self._why_it_died(), Failure.CRASH) from error
        except BaseException:
            self._stop()
            raise
        self._is_ready = True
        return here

    def _stderr(self, mode: str) -> IO[Any]:
        return (Path(self._folder.name) / "stderr").open(mode)

    def _stop(self) -> int | None:
        """End the child; the status it ended with."""
        status = None
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            status = self._process.wait()
        self._connection = self._process = None
        self._is_ready = False
        return status

    def _why_it_died(self) -> str:
        if self._process is not None:
            deadline = time.monotonic() + 5  # its end of the connection is closed before it is gone
            while self._process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
        status = self._stop()
        how = f"was ended by {signal.Signals(-status).name}" if status and status < 0 else f"ended with status {status}"
        with self._stderr("rb") as file:
            lines = file.read().decode(errors="replace").strip().splitlines()
        fatal = [line for line in lines if _FATAL.match(line)] or lines[-3:]
        said = f": {' | '.join(fatal)[:600]}" if fatal else ""
        return f"XLA {how} while it ran the module{said}"


def _pair() -> tuple[Connection[Any, Any], Connection[Any, Any]]:
    from multiprocessing import Pipe

    return Pipe()


def _contents(module: Source) -> tuple[bytes, int | None]:
    """The contents of a module's file, and the number of replicas where only the loaded module knows it."""
    if isinstance(module, Module):
        buffer = io.BytesIO()
        module.mlir.operation.write_bytecode(buffer)
        return buffer.getvalue(), module.replicas
    if isinstance(module, str) and "\n" in module:
        return module.encode(), None
    return (module if isinstance(module, bytes) else read_file(Path(module))), None


def _start(descriptor: int, devices: int, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    chosen = [flag.format(devices=devices) for flag in _FLAGS if flag not in _X86 or _is_x86()]
    flags = " ".join((*chosen, *(_BEFORE_0_11 if _jaxlib() < (0, 11) else ())))
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "XLA_FLAGS": flags,
    }
    command = [sys.executable, "-P", "-m", "hlo_verify.xla.execute_child", str(descriptor), str(devices)]
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=stderr,
        stderr=stderr,
        pass_fds=[descriptor],
        start_new_session=True,  # Ctrl-C is for the parent, which then ends the child
    )


def _is_x86() -> bool:
    import platform

    return platform.machine() in ("x86_64", "AMD64")


def _jaxlib() -> tuple[int, ...]:
    """The first two numbers of jaxlib's version."""
    return tuple(int(part) for part in version("jaxlib").split(".")[:2])
