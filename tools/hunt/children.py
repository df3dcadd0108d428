"""The child process that runs cases: watched, ended where it takes too long, and replaced."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from tools.hunt.case import Case, to_data
from tools.hunt.kinds import Outcome

ROOT = Path(__file__).resolve().parents[2]
DEVICES = 8
TURNS = 250
"""Cases after which a child is replaced, so that what it keeps does not add up."""
TIMEOUT = 90.0
"""Seconds for one case, with the start of the child."""
FLAGS = (
    f"--xla_force_host_platform_device_count={DEVICES} --xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true --xla_cpu_parallel_codegen_split_count=1"
)
_FATAL = re.compile(r"F\d{4} .*|.*Check failed.*|.*CHECK failed.*")


class Child:
    """A context manager; what it starts ends with it."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self.timeout = timeout
        self.turns = 0
        self._folder = tempfile.TemporaryDirectory(prefix="hunt-")
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, value: BaseException | None, at: TracebackType | None
    ) -> None:
        self.stop()
        self._folder.cleanup()

    def examine(self, case: Case, draws: Sequence[int], *, verify: bool = True, confirm: bool = False) -> Outcome:
        """What becomes of a case. A child that dies on it is an `abort`, or `slow`."""
        if self.turns >= TURNS:
            self.stop()
        process = self._started()
        self.turns += 1
        asked = {"case": to_data(case), "draws": list(draws), "verify": verify, "confirm": confirm}
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            line = self._answers.get(timeout=self.timeout)
        except queue.Empty:
            self.stop()
            return Outcome("slow", f"more than {self.timeout:g} s")
        except BrokenPipeError:
            line = ""
        if line:
            found: dict[str, Any] = json.loads(line)
            return Outcome(**found | {"codes": tuple(found["codes"])})
        return self._aborted()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
        self._process, self.turns = None, 0

    def _aborted(self) -> Outcome:
        assert self._process is not None
        status = self._process.wait()
        self.stop()
        lines = self._errors("r").read().strip().splitlines()
        fatal = [line for line in lines if _FATAL.match(line)] or lines[-3:]
        return Outcome("abort", f"status {status}: {' | '.join(fatal)[:800]}")

    def _errors(self, mode: str) -> IO[str]:
        return (Path(self._folder.name) / "stderr").open(mode, errors="replace")

    def _started(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.stop()
        environment = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "PYTHONPATH": os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)]),
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "XLA_FLAGS": FLAGS,
        }
        command = [sys.executable, "-P", "-m", "tools.hunt.machine"]
        self._answers = queue.Queue()
        with self._errors("w") as errors:
            self._process = subprocess.Popen(
                command, env=environment, cwd=ROOT, text=True, bufsize=1,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
            )  # fmt: skip
        threading.Thread(target=_read, args=(self._process.stdout, self._answers), daemon=True).start()
        return self._process


def _read(stream: IO[str], answers: queue.Queue[str]) -> None:
    """Hand on the child's lines, and an empty one at its end."""
    try:
        for line in stream:
            answers.put(line)
    except ValueError:  # closed by `stop`
        pass
    answers.put("")
