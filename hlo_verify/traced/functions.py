"""Whatever a user has for a function, traced for arguments: plain, under the jit of JAX, flax or equinox, under pmap,
with some arguments bound, or lowered and compiled already."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import MethodType
from typing import Any

import jax

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.source_lines import Frame, is_library
from hlo_verify.traced import stages
from hlo_verify.traced.arguments import has_arrays, jitted, odd_arguments
from hlo_verify.traced.stages import Stage, stage_of

_NO_MESH = re.compile(r"context mesh|non-empty mesh|[Nn]umber of devices", re.ASCII)
"""What JAX says where a mesh, or its devices, are not there."""

SILENT = "JAX does not say why; an axis that the mesh does not have, for instance, as in psum(x, 'no such axis')"
"""Where it asserts something."""

_KEYWORD = re.compile(r"unexpected keyword argument '(\w+)'")
"""What Python says of a name that a function does not take."""

OPTIONS = (*("mesh", "keep", "assume", "approximations", "refute", "recheck", "effort", "time_limit", "progress"),)
"""What `check` takes by name for itself."""

_HERE = str(Path(__file__).parents[1])

SAID = 500
"""Characters of what JAX says that a message quotes."""


@dataclass(frozen=True, slots=True)
class Function:
    """What a user passed, with how messages name it."""

    given: Any
    called: str

    @property
    def is_of_equinox(self) -> bool:
        return _is_from(self.given, "equinox") and hasattr(self.given, "__wrapped__")

    @property
    def is_of_nnx(self) -> bool:
        return _is_from(self.given, "flax.nnx") and hasattr(self.given, "trace")

    def __str__(self) -> str:
        inner = self.given
        while isinstance(inner, partial):
            inner = inner.func
        name = getattr(inner, "__name__", "")
        return f"{self.called} ({name})" if name and name != "<lambda>" else self.called


def is_function(value: object) -> bool:
    """Whether something in the place of an argument is a function to compare with: a model that can be called is a tree
    of arrays, and an argument, unless it was jitted."""
    if stage_of(value) is not None:
        return True
    return callable(value) and (
        hasattr(value, "lower") or isinstance(value, partial) or jax.tree_util.all_leaves([value])
    )


def alike(first: Function, second: Function) -> Function:
    """The first function under `flax.nnx.jit` if the second one is, which returns what became of its modules too.

    The shardings that it has there say how the arrays of a module are grouped, and so in which order they are.
    """
    if not second.is_of_nnx or stage_of(first.given) is not None or not callable(first.given):
        return first
    plain = getattr(first.given, "__wrapped__", first.given) if hasattr(first.given, "trace") else first.given
    grouped = {name: getattr(second.given, name, None) for name in ("in_shardings", "out_shardings", "static_argnums")}
    return Function(sys.modules["flax.nnx"].jit(plain, **grouped), first.called)


def traced(
    function: Function,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    *,
    static_numbers: bool = False,
    alone: str = "",
) -> Stage:
    """A function traced for its arguments; one that was lowered is given back as it is.

    Numbers are arguments of a plain function, unless they are static. `alone` is said of one that cannot be traced.
    Raises `InputError` for what is no function, and for whatever JAX raises.
    """
    stage = stage_of(function.given)
    if stage is not None and _is_from(function.given, "equinox"):
        raise InputError(
            f"{function.called} was lowered by equinox, for which it returns a marker too: pass the function itself",
            Input.USAGE,
        )
    if stage is not None:
        return stage
    if not callable(function.given):
        raise InputError(
            f"{function.called} is a {type(function.given).__name__}: pass a function of JAX arrays, under jax.jit or "
            "not, or what it was traced, lowered or compiled to",
            Input.USAGE,
        )
    try:
        found = stage_of(_trace(function.given, arguments, keywords, static_numbers))
    except InputError:
        raise
    except Exception as error:
        odd = _odd_name(error, keywords) or odd_arguments(arguments, keywords)
        raise _not_traced(function, error, odd + alone) from error
    assert found is not None
    return found


def contents(function: Function, stage: Stage) -> str | bytes:
    """The module of a function that was traced. Raises `InputError` for whatever JAX raises."""
    try:
        return stages.contents(stage)
    except InputError:
        raise
    except Exception as error:
        raise _not_traced(function, error) from error


def _trace(given: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], static_numbers: bool) -> object:
    if isinstance(given, partial | MethodType):
        inner, bound, named = _taken_apart(given)
        if hasattr(inner, "trace") and not has_arrays((bound, named)):
            return inner.trace(*bound, *arguments, **{**named, **keywords})
    elif hasattr(given, "trace"):
        return given.trace(*arguments, **keywords)
    if _is_from(given, "equinox"):  # its own jit takes no shapes in the place of arrays
        given, static_numbers = getattr(given, "__wrapped__", given), True
    function, some, others = jitted(given, arguments, keywords, static_numbers)
    return function.trace(*some, **others)


def _taken_apart(given: partial[Any] | MethodType) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function of which arguments are bound, and these."""
    if isinstance(given, partial):
        return given.func, given.args, given.keywords
    function: Callable[..., Any] = given.__func__
    return function, (given.__self__,), {}


def _is_from(value: object, package: str) -> bool:
    return f"{type(value).__module__}.".startswith(f"{package}.")


def _not_traced(function: Function, error: Exception, odd: str = "") -> InputError:
    """What JAX, or the user's own code, says, with the user's line and what helps: where devices are not there, and of
    arguments that are `odd`."""
    said = " ".join(str(error).split()) or SILENT
    said = said if len(said) <= SAID else said[: SAID - 1] + "…"
    hint = odd if isinstance(error, TypeError) else ""
    if "PartitionSpec" in said and "in_shardings" in said:
        hint = "; that takes a mesh of devices that are there (mesh=jax.make_mesh(...)), or NamedShardings"
    elif "does not match the specs of the input" in said:
        hint = (
            "; along axes of type Explicit, which jax.make_mesh makes, arguments have to lie as in_specs says: pass "
            "jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, P(...))), or make the mesh with "
            "axis_types=(AxisType.Auto,)"
        )
    elif "should match the mesh passed" in said:
        hint = "; it has a mesh of its own, and is under another one: leave mesh= out, or give that one"
    elif _NO_MESH.search(said):
        hint = '; functions that need a mesh around them take mesh=, of devices that need not be there: {"data": 8}'
    elif "squeeze out" in said:
        hint = "; jax.pmap takes a part for each device along the dimensions of in_axes: as many as there are devices"
    line = own_line(error)
    where = f" (at {line[0]}:{line[1]})" if line is not None else ""
    return InputError(f"{function} cannot be traced: {type(error).__name__}: {said}{where}{hint}", Input.NOT_TRACED)


def _odd_name(error: Exception, keywords: dict[str, Any]) -> str:
    """What is odd about an argument that a function does not take by its name, as a hint; empty if that is not so."""
    found = _KEYWORD.search(str(error)) if isinstance(error, TypeError) else None
    if found is None or found[1] not in keywords:
        return ""
    meant = get_close_matches(found[1], OPTIONS, n=1)
    if meant:
        return f"; did you mean {meant[0]}=?"
    return (
        "; functions that are compared get the same arguments by the same names: pass by position what one of them "
        "does not call so"
    )


def own_line(error: Exception) -> Frame | None:
    """The user's own line at which something was raised, if it was raised within one of his functions."""
    frames = [(found.filename, found.lineno or 0) for found in traceback.extract_tb(error.__traceback__)]
    own = [frame for frame in frames[::-1] if not is_library(frame[0]) and not frame[0].startswith(_HERE)]
    return own[0] if own and frames[-1][0].startswith(_HERE) is False else None
