"""The transcription of the specification that collectives are tested against, itself against the reference interpreter.

The interpreter runs a thread for every process, as many as there are cores, and waits for ever where one is missing:
two processes at most, in a child that is killed when it takes too long.
"""

from __future__ import annotations

import os
import pickle
import re
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.cases import collectives
from tests.ops.cases.drawing import Case
from tests.support.compare import Array, assert_same
from tests.support.modules import NAMES, Program, literal, tensor_type
from tests.support.reference import ROOT

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
SECONDS = 10.0
"""What an answer may take: far more than it does, but less than for ever."""


class Child:
    """A process with the interpreter, started when it is needed."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, text: str, inputs: Sequence[Array]) -> Any:
        """The results, an error's text, or None where there was no answer in time."""
        if self.process is None:
            command = [sys.executable, "-m", "tests.support.reference"]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
            )
        assert self.process.stdin is not None and self.process.stdout is not None
        pickle.dump((text, [literal(x) for x in inputs]), self.process.stdin)
        self.process.stdin.flush()
        if select.select([self.process.stdout], [], [], SECONDS)[0]:
            try:
                return pickle.load(self.process.stdout)
            except EOFError:
                self.end()
                return "the interpreter aborted"
        self.end()
        return None

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    child = Child()
    yield child
    child.end()


def waits_in_vain(case: Case) -> bool:
    """The interpreter never ends where a process sends to itself."""
    return re.search(r"source_target_pairs = dense<.*\[(\d+), \1\]", case.program.text) is not None


@pytest.mark.drawn(4)
@pytest.mark.skipif(CORES < 2 or sys.platform == "win32", reason="needs a core for each of two processes")
@pytest.mark.parametrize("name", [name for name in collectives.CASES if not name.startswith("mhlo.")])
def test_transcription_agrees_with_interpreter(name: str, child: Child) -> None:
    answered = 0

    @settings(max_examples=40)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        nonlocal answered
        with mock.patch.object(collectives, "MESHES", ((2, 1), (1, 2))):
            case = data.draw(collectives.CASES[name])
        assert case.expected is not None
        if waits_in_vain(case):
            return
        results = child.ask(in_parallel(case), [x[n] for n in range(2) for x in case.program.inputs])
        assert not isinstance(results, str), f"{results}\n{case.program.text}"
        if results is None:
            pytest.skip("the interpreter gave no answer in time")
        answered += 1
        count = len(case.program.results)
        for k, wanted in enumerate(case.expected):
            found = np.stack([results[n * count + k] for n in range(2)])
            assert_same(np.asarray(found, dtype=object), wanted, case.program.text)

    check()
    assert answered


def in_parallel(case: Case) -> str:
    """A module that runs a program in two processes."""
    program: Program = case.program
    kinds = [tensor_type(x.shape[1:], NAMES[x.dtype]) for x in program.inputs] * 2
    arguments = ", ".join(f"%a{k}: {kind}" for k, kind in enumerate(kinds))
    names = ", ".join(f"%a{k}" for k in range(len(kinds)))
    results = [r.type for r in program.results] * 2
    left = f"%r:{len(results)}"
    given_back = ", ".join(f"%r#{k}" for k in range(len(results)))
    programs = "[[@device, @device]]" if case.partitions == 2 else "[[@device], [@device]]"
    return (
        f"module @m {{\n{program.function('device')}"
        f"  func.func public @main({arguments}) -> ({', '.join(results)}) {{\n"
        f'    {left} = "interpreter.run_parallel"({names}) {{programs = {programs}}} : '
        f"({', '.join(kinds)}) -> ({', '.join(results)})\n"
        f"    func.return {given_back} : {', '.join(results)}\n  }}\n}}\n"
    )
