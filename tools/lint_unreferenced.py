"""How many wrong programs the linter finds without their reference, and whether it leaves right ones alone.

`python -m tools.lint_unreferenced [zoo fixtures maxtext programs labs compiled] [--only NAME...] [--findings]`: the bug
zoo, the fixtures with their broken twins, train steps of MaxText, and programs and minimal pairs of
`../shared/corpora/jax` (what is not partitioned yet is partitioned by XLA), these once more as XLA compiles them for
CPU devices. How arguments and results lie is told, as a user would tell it; what the program should compute is not. A
table by set; the exit status is 1 if a right one has an error.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.byhand import CORPUS, LABS, PROGRAMS, ROOT

CORPORA = CORPUS.parent


@dataclass(frozen=True, slots=True)
class Case:
    """A module, made when it is asked for, with how its results lie if it does not say that itself."""

    set: str
    name: str
    is_right: bool
    make: Callable[[], tuple[Any, str | None]]


@dataclass(frozen=True, slots=True)
class Found:
    """What the linter says of a case: `error`, `warning`, nothing, or `unread` with why."""

    case: Case
    said: str
    what: str
    seconds: float


def zoo() -> Iterator[Case]:
    from tools.zoo.case import load, lower, names

    for name in names():
        yield Case("zoo", name, True, lambda name=name: (lower(load(name)).right, None))  # type: ignore[misc]
        yield Case("zoo", f"{name} (wrong)", False, lambda name=name: (lower(load(name)).wrong, None))  # type: ignore[misc]


def fixtures() -> Iterator[Case]:
    for manifest in sorted((ROOT / "testdata").glob("*/manifest.json")):
        folder = manifest.parent
        files = [path for path in sorted(folder.iterdir()) if path.name.startswith(("partitioned.", "broken_"))]
        for path in files:
            right = path.name.startswith("partitioned.")
            yield Case("fixtures", f"{folder.name}/{path.name}", right, lambda path=path: _beside(path))  # type: ignore[misc]


def _beside(path: Path) -> tuple[Path, str | None]:
    """A partitioned module, and how the logical one beside it says that arguments and results lie."""
    from hlo_verify.linter import reading

    if ".mlir" in path.name:
        return path, None
    logical = next(path.parent.glob("logical.*"))
    said = reading.annotated_shardings(reading.as_it_is(logical))
    return path, json.dumps({"in": list(said.arguments), "out": list(said.results)})


def maxtext() -> Iterator[Case]:
    for path in sorted((CORPORA / "maxtext").glob("*/partitioned.hlo.pb.gz")):
        yield Case("maxtext", path.parent.name, True, lambda path=path: _beside(path))  # type: ignore[misc]


class _TakenError(Exception):
    """Ends a program where it would be verified."""


def programs() -> Iterator[Case]:
    """What the scripts have verified, instead of verifying it."""
    import hlo_verify

    taken: list[Any] = []

    def verify(reference: Any, source: Any, *_: Any, **__: Any) -> None:
        taken.append(source)
        raise _TakenError

    def check(reference: Any, jitted: Any, *args: Any, **__: Any) -> None:
        taken.append(jitted.trace(*args))
        raise _TakenError

    hlo_verify.verify, hlo_verify.check = verify, check  # type: ignore[assignment]
    for script in PROGRAMS:
        module = _imported(script)
        every = dict(module.s1.PROGS if hasattr(module, "s1") else module.PROGS)
        for name, (function, *_) in every.items():

            def make(function: Callable[[], Any] = function) -> tuple[Any, None]:
                taken.clear()
                with contextlib.suppress(_TakenError):
                    function()
                return taken[0], None

            yield Case("programs", f"{module.__name__}.{name}", "wrong" not in name, make)


def labs() -> Iterator[Case]:
    import jax

    for lab in LABS:
        module = _imported(lab)
        for name, (_, dist, arguments, *_rest) in dict(module.LAB).items():

            def make(dist: Any = dist, arguments: Any = arguments) -> tuple[Any, None]:
                return (dist if hasattr(dist, "trace") else jax.jit(dist)).trace(*arguments), None

            yield Case("labs", f"{module.__name__}.{name}", True, make)


def _imported(file: str) -> ModuleType:
    path = CORPUS / file
    sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.name)


def compiled() -> Iterator[Case]:
    """Programs and labs as XLA compiles them for CPU devices, with the shardings that JAX knows of."""
    for case in (*programs(), *labs()):
        yield Case("compiled", case.name, case.is_right, lambda case=case: _compiled(case.make()[0]))  # type: ignore[misc]


def _compiled(traced: Any) -> tuple[str, str | None]:
    """The final HLO, and how its arguments and results lie: where JAX says it of each of them."""
    import jax

    final = traced.lower().compile()
    shapes = [jax.tree.leaves(one) for one in (final.in_avals, final.out_info)]
    given = [jax.tree.leaves(one) for one in (final.input_shardings[0], final.output_shardings)]
    if [len(one) for one in shapes] != [len(one) for one in given]:  # arguments that are not used
        return final.as_text(), None
    taken, returned = (
        [str(one._to_xla_hlo_sharding(len(shape.shape))) for one, shape in zip(*pair, strict=True)]
        for pair in zip(given, shapes, strict=True)
    )
    return final.as_text(), json.dumps({"in": taken, "out": returned})


SETS = {
    "zoo": zoo,
    "fixtures": fixtures,
    "maxtext": maxtext,
    "programs": programs,
    "labs": labs,
    "compiled": compiled,
}


def look(case: Case) -> Found:
    from hlo_verify.diagnostics.errors import InputError
    from hlo_verify.linter.lint import lint

    started = time.process_time()

    def found(said: str, what: str) -> Found:
        return Found(case, said, what, time.process_time() - started)

    try:
        module, shardings = case.make()
        report = lint(module, shardings=shardings)
    except InputError as error:
        return found("unread", str(error))
    except Exception as error:  # a program of another version of JAX
        return found("unread", f"{type(error).__name__}: {error}")
    what = "; ".join(f"{one.severity}[{one.code}] {one.name} at {one.instruction}" for one in report.findings)
    return found("error" if report.errors else "warning" if report.findings else "nothing", what)


def table(found: list[Found]) -> str:
    """Markdown: by set, what was said of right and of wrong programs."""
    lines = ["| set | right | with an error | warnings | wrong | errors | warnings | unread |", f"|---|{'--:|' * 7}"]
    for name in dict.fromkeys(one.case.set for one in found):
        cells = []
        for right in (True, False):
            those = [one for one in found if one.case.set == name and one.case.is_right is right]
            read = [one for one in those if one.said != "unread"]
            cells += [len(read), *(sum(one.said == said for one in read) for said in ("error", "warning"))]
        cells.append(sum(one.said == "unread" for one in found if one.case.set == name))
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.lint_unreferenced", description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", choices=[*SETS, []], help="all, if none is named")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="cases with one of these in their name")
    parser.add_argument("--findings", action="store_true", help="what was found of each case")
    arguments = parser.parse_args()
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=16")
    found: list[Found] = []
    for name in arguments.sets or SETS:
        for case in SETS[name]():
            if not arguments.only or any(word in case.name for word in arguments.only):
                one = look(case)
                found.append(one)
                wrong = case.is_right and one.said == "error"
                if arguments.findings or wrong or one.said == "unread":
                    truth = "right" if case.is_right else "wrong"
                    print(
                        f"{case.set} {case.name} ({truth}): {one.said}: {one.what[:200]} ({one.seconds:.1f} s)",
                        flush=True,
                    )
    print(table(found))
    return int(any(one.case.is_right and one.said == "error" for one in found))


if __name__ == "__main__":
    sys.exit(main())
