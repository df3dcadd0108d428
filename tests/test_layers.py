"""Imports follow the order in which data flows: a room imports from rooms above it alone, lazily or for types too.

And no file and no function is longer than a reader can hold in mind.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

ROOMS = """
memory
collector
own_process
registered_calls
diagnostics
jaxlib_hlo
jaxlib_api           jaxlib_hlo
limits               diagnostics
looking
meter
scene
witness
report               diagnostics limits scene witness
tracebacks           diagnostics
session              memory collector registered_calls diagnostics limits looking meter report
version
render               diagnostics limits scene witness report version
shown                render report
cache                diagnostics scene witness report
hlo                  diagnostics
schedules            diagnostics render
workers
program              registered_calls diagnostics jaxlib_api
evaluate             diagnostics program
index                memory limits
terms                memory limits looking index program
equality             memory limits session index terms
ops                  memory limits registered_calls diagnostics session program index terms equality
passes.read          registered_calls diagnostics jaxlib_api program
passes.canonicalize  diagnostics jaxlib_api program
passes.load          collector diagnostics jaxlib_hlo jaxlib_api workers program evaluate passes.read
                     passes.canonicalize
traced               diagnostics program
plans                diagnostics schedules traced
sources              diagnostics render program passes.load traced
xla                  diagnostics jaxlib_api program passes.canonicalize passes.load sources
linter               diagnostics report render hlo schedules program passes.read passes.load sources xla
passes.cut           diagnostics program sources
passes.prove         memory limits meter diagnostics report session program index terms equality ops
passes.guess         program session evaluate passes.prove
passes.diagnose      jaxlib_api meter diagnostics scene report session program index terms equality ops passes.prove
                     passes.guess
export               diagnostics limits render report session program terms sources passes.prove passes.diagnose
passes.refute        limits diagnostics jaxlib_api witness report session program evaluate index xla passes.prove
                     passes.diagnose
passes.recheck       limits report session workers program index terms equality ops passes.prove passes.guess
passes.place         diagnostics report session program xla passes.load passes.prove passes.diagnose passes.refute
custom_calls         registered_calls diagnostics session program ops passes.load
defects              diagnostics program
passes.chain         diagnostics limits report session program evaluate terms equality ops sources custom_calls defects
                     passes.load passes.prove passes.diagnose passes.refute passes.place
"""
"""By room, from top to bottom, what it imports from; without `hlo_verify.`. What is in no room (`api`, `cli`) is a face
of the whole and may import all of it."""

NEVER = {
    "evaluate": ("index", "terms", "equality", "ops", "passes"),
    "passes.recheck.meanings": ("ops", "equality"),
    "passes.prove": ("passes.diagnose", "passes.refute", "passes.recheck", "evaluate"),
}
"""What stays apart whatever the list says: engines that check one another, and a proof and what is said of it."""


def _rooms() -> dict[str, list[str]]:
    rooms: dict[str, list[str]] = {}
    for line in ROOMS.strip("\n").splitlines():
        if line.startswith(" "):
            rooms[list(rooms)[-1]] += line.split()
        else:
            room, *others = line.split()
            rooms[room] = others
    return rooms


def _files() -> dict[str, Path]:
    """Every module by its name, without `hlo_verify.`."""
    found = {}
    for folder, prefix in ((ROOT / "hlo_verify", ()), (ROOT / "passes", ("passes",))):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            if folder.name == "passes" or parts[0] != "passes":  # hlo_verify/passes is a link
                found[".".join((*prefix, *parts)).removesuffix("__init__").removesuffix(".")] = path
    return found


FILES = _files()
ALLOWED = _rooms()


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    """The modules of this project that a file imports, anywhere in it, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports by a relative name"
            full = [f"{node.module}.{name.name}" for name in node.names]
            names = [name if name.removeprefix("hlo_verify.") in FILES else str(node.module) for name in full]
        elif isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        else:
            continue
        yield from ((node.lineno, name.removeprefix("hlo_verify.")) for name in names if name.startswith("hlo_verify"))


def _is_in(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}.")


def _room(name: str) -> str | None:
    return next((room for room in ALLOWED if _is_in(name, room)), None)


def test_rooms_import_from_rooms_above_them() -> None:
    rooms = list(ALLOWED)
    for room, others in ALLOWED.items():
        assert all(rooms.index(other) < rooms.index(room) for other in others), f"{room} imports from a room below it"


@pytest.mark.parametrize("name", sorted(name for name in FILES if _room(name)))
def test_a_file_imports_what_its_room_may(name: str) -> None:
    room = _room(name)
    assert room is not None
    may = (room, *ALLOWED[room])
    for line, target in _imports(FILES[name]):
        assert any(_is_in(target, other) for other in may), f"{FILES[name]}:{line}: {room} does not import {target}"


@pytest.mark.parametrize("room", NEVER)
def test_what_must_stay_apart(room: str) -> None:
    for name, path in FILES.items():
        for line, target in _imports(path) if _is_in(name, room) else ():
            assert not any(_is_in(target, other) for other in NEVER[room]), f"{path}:{line} imports {target}"


FOREIGN = {
    "program.ir.Op.source": "an operation of MLIR",
    "program.ir.Module.mlir": "a module of MLIR",
    "passes.load.load.Source.module": "a module of MLIR",
    "xla.execute_child.Compiled.executable": "of jaxlib",
    "evaluate.placement.Difference.expected": "an element of an array",
    "evaluate.placement.Difference.found": "an element of an array",
    "evaluate.unary.Unary.low": "a ball, or none",
    "evaluate.unary.Unary.high": "a ball, or none",
    "traced.functions.Function.given": "whatever a user has for a function",
    "passes.chain.constant_values.Computed.rounded": "an element of an array",
    "passes.recheck.plain.Entry.values": "an array",
    "terms.term.Tensor.values": "an array",
    "terms.term.Tensor.attributes": "what tells it from others of its kind, as whoever makes it likes",
    "terms.term.Tensor.location": "what is shown of where it comes from",
    "index.interned.Var.key": "what tells it from others of its kind, as whoever makes it likes",
}
"""What has no type, and why: things of other libraries, and keys. It is nothing of a room further down."""


def _untyped(name: str, path: Path) -> Iterator[str]:
    """The attributes of classes that may hold anything."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and ast.unparse(field.annotation).replace(" | None", "") == "Any":
                    yield f"{name}.{node.name}.{ast.unparse(field.target)}"


def test_nothing_refers_to_a_room_below_without_a_type() -> None:
    """A class that is handed something of a room below it says what it needs of that, by a `Protocol`."""
    assert {field for name, path in FILES.items() for field in _untyped(name, path)} == FOREIGN.keys()


def test_every_file_has_a_room_or_is_a_face() -> None:
    faces = {
        "",
        "__main__",
        "api",
        "asked",
        "checking",
        "cli",
        "cluster",
        "comparing",
        "decorator",
        "executed",
        "in_parallel",
        "jobs",
        "kept",
        "options",
        "passes",
        "pytest_plugin",
        "tasks",
        "watching",
    }
    assert {name for name in FILES if _room(name) is None} == faces


def test_every_room_imports_what_the_list_says() -> None:
    """A direction that nothing takes any more is taken off the list."""
    for room, others in ALLOWED.items():
        targets = {target for name, path in FILES.items() if _room(name) == room for _, target in _imports(path)}
        unused = [other for other in others if not any(_is_in(target, other) for target in targets)]
        assert not unused, f"{room} imports nothing of {unused}"


# How long files and functions are

FILE_LINES = 400
"""Of a file."""

FUNCTION_LINES = 60
"""Lines of a function, but for its docstring: about a screen."""

LONGER: dict[str, str] = {}
"""By file, or file and function, why it is longer."""


def _lengths(root: Path) -> Iterator[tuple[str, int, int]]:
    """Each file, and each function in it, with its lines and how many it may have."""
    for folder in ("hlo_verify", "passes", "tools", "tests", "benchmarks"):
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if name.startswith("hlo_verify/passes/"):  # a link to passes/
                continue
            text = path.read_text()
            yield name, text.count("\n"), FILE_LINES
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    first = node.body[0] if ast.get_docstring(node) is not None else None
                    said = 0 if first is None else (first.end_lineno or 0) - first.lineno + 1
                    yield f"{name}: {node.name}", (node.end_lineno or 0) - node.lineno + 1 - said, FUNCTION_LINES


def test_a_file_and_a_function_can_be_held_in_mind() -> None:
    longer = {name: f"{count} lines, not {most}" for name, count, most in _lengths(ROOT) if count > most}
    assert longer.keys() == LONGER.keys(), longer


def test_what_is_too_long_is_found(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/long.py").write_text("def f():\n    'Said.'\n" + "    pass\n" * 60)
    assert {name: count for name, count, _ in _lengths(tmp_path)} == {"tools/long.py": 62, "tools/long.py: f": 61}
