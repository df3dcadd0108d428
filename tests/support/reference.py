"""StableHLO's reference interpreter, in a child process: where it does not know something it aborts.

As a script, the child: requests and answers are pickles on standard input and output.
"""

from __future__ import annotations

import atexit
import contextlib
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.support.modules import Program, literal

Array = npt.NDArray[Any]

ROOT = Path(__file__).resolve().parents[2]


class InterpreterError(Exception):
    """The interpreter refused a program, or died of it."""


_child: subprocess.Popen[bytes] | None = None


def reference(program: Program) -> list[Array]:
    """The results of a program on the interpreter. Raises `InterpreterError`."""
    text, inputs = program.split()
    return program.join(evaluate(text, inputs))


def evaluate(text: str, inputs: Sequence[Array]) -> list[Array]:
    """The results of `main` of a module on the interpreter. Raises `InterpreterError`."""
    global _child
    if _child is None or _child.poll() is not None:
        _child = subprocess.Popen(
            [sys.executable, "-m", "tests.support.reference"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
    assert _child.stdin is not None and _child.stdout is not None and _child.stderr is not None
    pickle.dump((text, [literal(x) for x in inputs]), _child.stdin)
    _child.stdin.flush()
    try:
        answer = pickle.load(_child.stdout)
    except EOFError:
        said = _child.stderr.read().decode(errors="replace")
        _stop()
        raise InterpreterError(f"the interpreter aborted: {said[:600]}\n{text}") from None
    if isinstance(answer, str):
        raise InterpreterError(f"{answer}\n{text}")
    results: list[Array] = answer
    return results


@atexit.register
def _stop() -> None:
    global _child
    if _child is not None:
        for pipe in (_child.stdin, _child.stdout, _child.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        _child.wait()
        _child = None


def _serve() -> None:
    from hlo_verify.jaxlib_api import ir, make_context, stablehlo
    from hlo_verify.passes.canonicalize.dense import read_elements

    context = make_context()
    with context:
        stablehlo.register_interpreter_dialect(context)
        while True:
            try:
                text, literals = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            try:
                module = ir.Module.parse(text)
                found = stablehlo.eval_module(module, [ir.Attribute.parse(x) for x in literals])
                answer: Any = [np.array(read_elements(a)) for a in found]
            except Exception as error:
                answer = repr(error)
            pickle.dump(answer, sys.stdout.buffer)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()
