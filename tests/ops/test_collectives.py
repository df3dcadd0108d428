"""The transcription of the specification that collectives are tested against, itself against the reference interpreter.

The interpreter runs a thread for every process and hangs where there are fewer cores than processes.
"""

from __future__ import annotations

import os
import re
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.ops.cases import collectives
from tests.ops.cases.drawing import Case
from tests.support.compare import assert_same
from tests.support.modules import NAMES, Program, tensor_type
from tests.support.reference import evaluate

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.mark.skipif(CORES < 2, reason="the interpreter needs a core for every process")
@pytest.mark.parametrize("name", [name for name in collectives.CASES if not name.startswith("mhlo.")])
@settings(max_examples=5)
@given(data=st.data())
def test_transcription_agrees_with_interpreter(name: str, data: st.DataObject) -> None:
    with mock.patch.object(collectives, "MESHES", ((2, 1), (1, 2))):
        case = data.draw(collectives.CASES[name])
    assert case.expected is not None
    # It waits in vain for a process that sends to itself.
    assume(not re.search(r"source_target_pairs = dense<.*\[(\d+), \1\]", case.program.text))
    results = evaluate(in_parallel(case), [x[n] for n in range(2) for x in case.program.inputs])
    count = len(case.program.results)
    for k, wanted in enumerate(case.expected):
        found = np.stack([results[n * count + k] for n in range(2)])
        assert_same(np.asarray(found, dtype=object), wanted, case.program.text)


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
