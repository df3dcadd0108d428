"""The process in which XLA runs modules (`hlo_verify.xla.execute_child`), and the one that waits for whoever is next.

A process starts in two or three seconds, most of it for importing jax, and a small module runs in a tenth of one. So a
child outlives the verification that it was started for: it waits a minute for another, and ends with this process.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from importlib.metadata import version
from multiprocessing.connection import Connection
from typing import Any

_START = 120.0
"""Seconds that a child may take until it is ready; importing jax takes one or two."""
_WAITING = 60.0
"""Seconds that a child which nobody uses waits."""
_DEVICES = 8
"""A child has at least so many virtual devices, and serves all who need no more."""
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
_READ = ("JAX", "XLA", "TF_", "PYTHON", "LD_", "OMP_")
"""How the names of variables begin by which a child of another environment would do something else."""
_FATAL = re.compile(r"F\d{4} ")
"""How XLA logs why it ends its process."""


class Child:
    """A process with `devices` virtual devices or more, which answers one request at a time."""

    def __init__(self, devices: int) -> None:
        from multiprocessing import Pipe

        self.devices = max(devices, _DEVICES)
        environment = _environment(self.devices)
        self._settings = _settings(environment)
        self._output = tempfile.TemporaryFile(prefix="hlo-verify-")  # noqa: SIM115  # closed by `end`
        here, there = Pipe()
        self._connection: Connection[Any, Any] = here
        command = [sys.executable, "-P", "-m", "hlo_verify.xla.execute_child", str(there.fileno()), str(self.devices)]
        with there:
            self.process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=[there.fileno()],
                start_new_session=True,  # Ctrl-C is for the parent, which then ends the child
            )
        self._is_ready = False

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def serves(self, devices: int) -> bool:
        """Whether it is what a child started now, for so many devices, would be."""
        return devices <= self.devices and self.is_alive() and self._settings == _settings(_environment(self.devices))

    def ask(self, request: Any, timeout: float) -> Any:
        """Its answer to a request. Raises `TimeoutError`, and `EOFError` or `ConnectionError` where it died: then, as
        after any other exception, it is to be ended, for its answer must not be taken for that to the next request."""
        if not self._is_ready:
            if not self._connection.poll(_START):
                raise TimeoutError(f"the child process was not ready after {_START:g} s")
            self._connection.recv()
            self._is_ready = True
        self._connection.send(request)
        if not self._connection.poll(timeout):
            raise TimeoutError(f"the module ran for more than {timeout:g} s")
        return self._connection.recv()

    def end(self) -> int:
        """End it; the status it ended with."""
        self._connection.close()
        self.process.kill()
        self._output.close()
        return self.process.wait()

    def why_it_died(self) -> str:
        """End it, and say how it ended by itself."""
        deadline = time.monotonic() + 5  # its end of the connection is closed before it is gone
        while self.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        status = self.end()
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        fatal = [line for line in lines if _FATAL.match(line)] or lines[-3:]
        said = f": {' | '.join(fatal)[:600]}" if fatal else ""
        return f"XLA {how} while it ran the module{said}"


class _Waiting:
    """At most one child that nobody uses."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._timer = threading.Timer(0, self.end)

    def take(self, devices: int) -> Child | None:
        """The one that waits, if it serves so many devices."""
        self._forget_what_was_forked()
        with self._lock:
            if self._child is None or not self._child.serves(devices):
                return None
            self._timer.cancel()
            child, self._child = self._child, None
            return child

    def keep(self, child: Child | None) -> None:
        """Let a child wait, if there is one, in the place of the one that does."""
        self._forget_what_was_forked()
        with self._lock:
            self._timer.cancel()
            before, self._child = self._child, child
            if child is not None:
                self._timer = threading.Timer(_WAITING, self.end, [child])
                self._timer.daemon = True
                self._timer.start()
        if before is not None:
            before.end()

    def end(self, child: Child | None = None) -> None:
        """End the one that waits; where a child is given, only if it is that one."""
        with self._lock:
            is_another = child is not None and child is not self._child
        if not is_another:
            self.keep(None)

    def _forget_what_was_forked(self) -> None:
        """The child of the process that this one was forked from waits there."""
        if self._process != os.getpid():
            self.__init__()  # type: ignore[misc]


_waiting = _Waiting()
take, keep = _waiting.take, _waiting.keep
atexit.register(_waiting.end)


def _environment(devices: int) -> dict[str, str]:
    chosen = [flag.format(devices=devices) for flag in _FLAGS if flag not in _X86 or _is_x86()]
    return {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "XLA_FLAGS": " ".join((*chosen, *(_BEFORE_0_11 if _jaxlib() < (0, 11) else ()))),
    }


def _settings(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ)}


def _is_x86() -> bool:
    import platform

    return platform.machine() in ("x86_64", "AMD64")


def _jaxlib() -> tuple[int, ...]:
    """The first two numbers of jaxlib's version."""
    return tuple(int(part) for part in version("jaxlib").split(".")[:2])
