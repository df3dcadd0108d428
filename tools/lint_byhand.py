"""Lint programs that people distributed by hand, as they are given to the compiler and as it leaves them.

`python -m tools.lint_byhand [FILE...] [--only NAME...]`. FILE is a script of `../shared/corpora/jax`, as of
`python -m tools.byhand`. Each is lowered to HLO, and compiled for CPU devices; both are linted, the latter with the
shardings of its arguments and results. Prints the findings of placement and of collectives. The exit status is 1 if a
right program (one without "wrong" in its name) has an error.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from hlo_verify.diagnostics import Severity
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.linter.finding import Finding
from hlo_verify.linter.lint import lint
from tools.byhand import CORPUS, LABS, PROGRAMS

SAID = ("HV5", "HV6")


class Traced(Exception):
    """Carries what a program would have had verified."""

    def __init__(self, distributed: Any) -> None:
        self.distributed = distributed


def traced(pair: Any, *, is_lab: bool) -> Any:
    """What is distributed of a pair, traced."""
    import jax

    import hlo_verify

    if is_lab:
        return jax.jit(pair[1], keep_unused=True).trace(*pair[2])

    def caught(*given: Any, **_: Any) -> Any:
        raise Traced(given[1] if len(given) > 1 and hasattr(given[1], "lower") else given[0].trace(*given[1:]))

    hlo_verify.verify = hlo_verify.check = caught  # type: ignore[attr-defined]
    try:
        pair[0]()
    except Traced as found:
        return found.distributed
    raise InputError("nothing is verified")


def texts(distributed: Any) -> Iterator[tuple[str, str, str | None]]:
    """The stages of a program: what they are called, the HLO text, and the shardings of the final one."""
    import jax

    lowered = distributed.lower()
    yield "given", lowered.as_text("hlo", debug_info=True), None
    compiled = lowered.compile()
    text = compiled.as_text()
    shapes = [jax.tree.leaves(one) for one in (compiled.in_avals, compiled.out_info)]
    given = [jax.tree.leaves(one) for one in (compiled.input_shardings[0], compiled.output_shardings)]
    try:
        said = [
            [str(one._to_xla_hlo_sharding(len(shape.shape))) for one, shape in zip(*pair, strict=True)]
            for pair in zip(given, shapes, strict=True)
        ]
    except (AttributeError, ValueError):
        yield "final", text, None
        return
    yield "final", text, json.dumps({"in": said[0], "out": said[1]})


def findings(distributed: Any) -> Iterator[tuple[str, Finding]]:
    """What is found of a program, and at which stage."""
    for stage, text, shardings in texts(distributed):
        try:
            report = lint(text, shardings=shardings)
        except InputError:  # arguments that the program does not use are left out
            report = lint(text)
        yield from ((stage, one) for one in report.findings if one.code.startswith(SAID))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.lint_byhand", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="as labs/lab3 or programs/s1; all, if none is named")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="these programs alone")
    options = parser.parse_args()
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=16")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    false = right = wrong = found_wrong = 0
    for file in options.files or [*LABS, *PROGRAMS]:
        path = CORPUS / file
        os.chdir(path.parent)
        sys.path.insert(0, str(path.parent))
        module = importlib.import_module(path.name)
        pairs: Mapping[str, Any] = dict(module.LAB if hasattr(module, "LAB") else module.PROGS)
        for name, pair in pairs.items():
            if options.only and name not in options.only:
                continue
            try:
                found = list(findings(traced(pair, is_lab=hasattr(module, "LAB"))))
            except Exception as error:
                print(f"{file} {name}: {type(error).__name__}: {' '.join(str(error).split())[:150]}", flush=True)
                continue
            has_error = any(one.severity is Severity.ERROR for _, one in found)
            right, wrong = right + ("wrong" not in name), wrong + ("wrong" in name)
            false += has_error and "wrong" not in name
            found_wrong += bool(found) and "wrong" in name
            for stage, one in found:
                print(f"{file} {name} {stage}: {one.severity}[{one.code}] {one.instruction}: {one.message}", flush=True)
    print(f"{right} right, {false} of them with an error; {wrong} wrong, {found_wrong} of them with a finding")
    return int(false > 0)


if __name__ == "__main__":
    sys.exit(main())
