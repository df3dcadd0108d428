"""What was given in the place of something else: how it is shown, and the error that says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from numbers import Integral
from typing import Any, TypeGuard

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.traced.arguments import is_array

WIDTH = 60
"""Characters of a value in a message; a longer one is called by its type."""


def wrong(message: str) -> InputError:
    """The error of a plan that cannot be carried out."""
    return InputError(message, Input.PLAN)


def is_number(value: object) -> TypeGuard[int]:
    """Whether it is a whole number, of Python or numpy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def listed(value: object) -> tuple[Any, ...] | None:
    """The elements of what has an order and is no text, table or array; None of all else."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping | Set) or is_array(value):
        return None
    return tuple(value)


def call(name: str, *values: object, **named: object) -> str:
    """A call as the user has written it, for the beginning of a message."""
    given = [*map(shown, values), *(f"{key}={shown(value)}" for key, value in named.items())]
    return f"{name}({', '.join(given)})"


def shown(value: object) -> str:
    """A value in a message: as it is written where that is short, a function by its name, all else by its type."""
    text = _written(value)
    return text if len(text) <= WIDTH else _typed(value)


def _written(value: object) -> str:
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    if type(value) in (tuple, list) and isinstance(value, tuple | list):
        inner = ", ".join(map(_written, value))
        single = "," * (isinstance(value, tuple) and len(value) == 1)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{single})"
    if isinstance(value, dict) and type(value) is dict:
        return f"{{{', '.join(f'{_written(key)}: {_written(part)}' for key, part in value.items())}}}"
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else _typed(value)


def _typed(value: object) -> str:
    return "an array" if is_array(value) and not isinstance(value, type) else f"a {type(value).__name__}"


def check_name(name: object, said: str) -> None:
    """Raise `InputError` unless it is a name; `said` is where."""
    if not isinstance(name, str):
        raise wrong(f"{said}: {shown(name)} is no name; a plan names values by text")


def check_rank(rank: object, said: str) -> None:
    """Raise `InputError` unless it may be the number of a rank."""
    if not is_number(rank):
        raise wrong(f"{said}: {shown(rank)} is not the number of a rank")


def check_values(values: object, said: str) -> None:
    """Raise `InputError` unless they are the names of what is brought together."""
    if not isinstance(values, tuple | list) or not values:
        raise wrong(f"{said}: what is brought together is a list of names, such as ['g0', 'g1']")
    for name in values:
        check_name(name, said)


def check_like(tree: object, leaves: Callable[[Any], list[Any]], said: str) -> None:
    """Raise `InputError` unless all leaves have a shape and a type."""
    for leaf in leaves(tree):
        if not is_array(leaf) or isinstance(leaf, type):
            raise wrong(
                f"{said}: {shown(leaf)} has no shape and type; like= is an array, a tree of them, or "
                "jax.ShapeDtypeStruct(shape, dtype)"
            )
