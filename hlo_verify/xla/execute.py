"""Run modules on XLA's virtual CPU devices: what they compute, told by code that shares nothing with the prover.

XLA runs in a child process (`hlo_verify.xla.execute_child`), because the number of virtual devices is fixed when jax
starts, and because a wrong module may crash it or wait for ever. The child stays (`hlo_verify.xla.child`), so that it
compiles what it has seen before only once; one that dies is replaced at the next run.
"""

from __future__ import annotations

import enum
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hlo_verify.passes.load.load import read_file
from hlo_verify.program.ir import Module
from hlo_verify.xla import child

Array = npt.NDArray[Any]
Source: TypeAlias = "str | bytes | Path | Module"


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
    """Runs modules on `devices` virtual devices, one run at a time; a context manager, as its child is left to others.

    Devices are a module's partitions, or its replicas. `timeout` is in seconds, for each run with its compilation.
    """

    def __init__(self, devices: int, *, timeout: float = 60.0) -> None:
        self.devices = devices
        self.timeout = timeout
        self._child: child.Child | None = None

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the child to whoever is next. A later run takes another one, after which this is to be called again."""
        if self._child is not None:
            child.keep(self._child)
        self._child = None

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
        given = [np.asarray(argument) for argument in arguments]
        request = (*_contents(module), given, per_device, logical, self.devices)
        self.start()
        asked = self._child
        assert asked is not None
        try:
            results, message = asked.ask(request, self.timeout)
        except (EOFError, ConnectionError) as error:
            self._child = None
            raise ExecutionError(asked.why_it_died(), Failure.CRASH) from error
        except BaseException as error:  # also Ctrl-C: the child would answer this request when the next one is made
            self._child = None
            asked.end()
            if isinstance(error, TimeoutError):
                raise ExecutionError(str(error), Failure.TIMEOUT) from error
            raise
        if message:
            raise ExecutionError(message, Failure.REJECTED)
        return list(results)

    def start(self) -> None:
        """See that there is a child, and do not wait for it: `run` does."""
        if self._child is not None and not self._child.is_alive():
            self._child.end()
            self._child = None
        if self._child is None:
            self._child = child.take(self.devices) or child.Child(self.devices)


def _contents(module: Source) -> tuple[bytes, int | None]:
    """The contents of a module's file, and the number of replicas where only the loaded module knows it."""
    if isinstance(module, Module):
        buffer = io.BytesIO()
        module.mlir.operation.write_bytecode(buffer)
        return buffer.getvalue(), module.replicas
    if isinstance(module, str) and "\n" in module:
        return module.encode(), None
    return (module if isinstance(module, bytes) else read_file(Path(module))), None
