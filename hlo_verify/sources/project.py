"""What a project says of itself under `[tool.hlo-verify]` in pyproject.toml: defaults of the command line, meanings of
custom calls, preconditions, and what the linter leaves out."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.render import FORMATS
from hlo_verify.sources.shardings_file import read_preconditions, read_table

if TYPE_CHECKING:
    from hlo_verify.program.preconditions import Precondition

_DEFAULTS: Mapping[str, type | tuple[str | type, ...]] = {
    "cache": (bool, str),
    "color": ("auto", "always", "never"),
    "devices": int,
    "effort": ("low", "normal", "high"),
    "format": FORMATS,
    "junit-unknown": ("failure", "skipped"),
    "progress": bool,
    "refute": bool,
    "time-limit": int,
    "verbose": bool,
}
"""What each key may hold: a value of a type, one of a few words, or of a few types."""

_TABLES = ("assume", "custom-calls", "lint")
"""Keys of tables."""


def read_defaults(start: Path) -> dict[str, Any]:
    """Defaults of the command line from the nearest pyproject.toml, at or above `start`, that has `[tool.hlo-verify]`.

    Keys are the long options. Raises `InputError` for a key or a type that is not known.
    """
    return _checked_defaults(*_project(start))


def _project(start: Path) -> tuple[Path, dict[str, Any]]:
    """The nearest pyproject.toml that has `[tool.hlo-verify]`, and that table; an empty one where there is none."""
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            tools = read_table(path, Input.CONFIGURATION).get("tool", {})
            table = tools.get("hlo-verify") if isinstance(tools, dict) else None
            if table is not None and not isinstance(table, dict):
                raise InputError(f"{path}: [tool.hlo-verify] must be a table, not {table!r}", Input.CONFIGURATION)
            if table is not None:
                return path, table
            if isinstance(tools, dict) and "hlo_verify" in tools:
                raise InputError(f"{path}: the table is called [tool.hlo-verify], not hlo_verify", Input.CONFIGURATION)
    return start / "pyproject.toml", {}


def read_custom_calls(start: Path) -> dict[str, Callable[..., Any] | int | None]:
    """Meanings of custom calls from `[tool.hlo-verify.custom-calls]` in the same pyproject.toml, by target.

    `"module:function"` is the function, imported with the file's folder on the path; a table says that nothing is
    known but the name, and may have `trailing`, given here as a number or None. Raises `InputError`.
    """
    path, table = _project(start)
    calls = table.get("custom-calls", {})
    if not isinstance(calls, dict):
        raise InputError(
            f"{path}: custom-calls in [tool.hlo-verify] must be a table from targets to meanings", Input.CONFIGURATION
        )
    return {target: _meaning(path, target, value) for target, value in calls.items()}


def _meaning(path: Path, target: str, value: Any) -> Callable[..., Any] | int | None:
    what = f"{path}: custom-calls: {target!r}"
    if isinstance(value, dict) and set(value) <= {"trailing"}:
        trailing = value.get("trailing")
        if trailing is not None and (type(trailing) is not int or trailing < 0):
            raise InputError(
                f"{what}: trailing must be a number of dimensions, not {trailing!r}", Input.CUSTOM_CALL_MEANING
            )
        return trailing
    if not isinstance(value, str) or not re.fullmatch(r"[\w.]+:[\w.]+", value):
        raise InputError(
            f'{what} must be "module:function", {{}} or {{ trailing = N }}, not {value!r}', Input.CUSTOM_CALL_MEANING
        )
    module, _, name = value.partition(":")
    sys.path.insert(0, str(path.parent))
    try:
        found = attrgetter(name)(import_module(module))
    except (Exception, SystemExit) as error:  # a script that is run where it is imported may end like that
        said = " ".join(str(error).split())[:300]
        raise InputError(
            f"{what}: {value} cannot be imported ({type(error).__name__}: {said})", Input.CUSTOM_CALL_MEANING
        ) from error
    finally:
        sys.path.remove(str(path.parent))
    if not callable(found):
        raise InputError(f"{what}: {value} is no function", Input.CUSTOM_CALL_MEANING)
    return found  # type: ignore[no-any-return]


def _checked_defaults(path: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in table.items():
        if key in _TABLES:
            continue
        if key not in _DEFAULTS:
            known = ", ".join((*_DEFAULTS, *_TABLES))
            raise InputError(f"{path}: [tool.hlo-verify] has no key {key!r}; it may have {known}", Input.CONFIGURATION)
        allowed = _DEFAULTS[key]
        may = allowed if isinstance(allowed, tuple) else (allowed,)
        if not any(type(value) is each if isinstance(each, type) else value == each for each in may):
            wanted = " or ".join(f"of type {each.__name__}" if isinstance(each, type) else repr(each) for each in may)
            raise InputError(f"{path}: {key} in [tool.hlo-verify] must be {wanted}, not {value!r}", Input.CONFIGURATION)
    if table.get("time-limit", 0) < 0:
        raise InputError(
            f"{path}: time-limit in [tool.hlo-verify] must not be negative, not {table['time-limit']}",
            Input.CONFIGURATION,
        )
    if "devices" in table:
        from hlo_verify.program.mesh import LIMIT

        if not 1 <= table["devices"] <= LIMIT:
            raise InputError(
                f"{path}: devices in [tool.hlo-verify] must be from 1 to {LIMIT}, not {table['devices']}",
                Input.CONFIGURATION,
            )
    found = {key: value for key, value in table.items() if key in _DEFAULTS}
    if isinstance(found.get("cache"), str):
        found["cache"] = path.parent / found["cache"]
    return found


def read_assumed(start: Path) -> tuple[Precondition, ...]:
    """Preconditions from `[tool.hlo-verify.assume]` in the nearest pyproject.toml that has `[tool.hlo-verify]`."""
    path, table = _project(start)
    what = f"{path}: assume in [tool.hlo-verify]"
    return read_preconditions(table.get("assume", {}), what, Input.CONFIGURATION)


def read_lint(start: Path) -> dict[str, Any]:
    """`[tool.hlo-verify.lint]` of the nearest pyproject.toml that has `[tool.hlo-verify]`: `select` and `ignore`, lists
    of codes, and `strict`. Raises `InputError` for another key or type."""
    path, table = _project(start)
    found = table.get("lint", {})
    what = f"{path}: [tool.hlo-verify.lint]"
    if not isinstance(found, dict):
        raise InputError(f"{what} must be a table, not {found!r}", Input.CONFIGURATION)
    for key, value in found.items():
        if key not in ("select", "ignore", "strict"):
            raise InputError(f"{what} has no key {key!r}; it may have select, ignore, strict", Input.CONFIGURATION)
        if key == "strict" and not isinstance(value, bool):
            raise InputError(f"{what}: strict must be true or false, not {value!r}", Input.CONFIGURATION)
        if key != "strict" and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            raise InputError(f"{what}: {key} must be a list of codes, not {value!r}", Input.CONFIGURATION)
    return found
