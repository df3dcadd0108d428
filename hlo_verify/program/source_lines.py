"""Which line of a stack of calls is the user's own, and which module of a network an operation belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator

Frame = tuple[str, int]
"""A file and a line."""

_LIBRARY = re.compile(
    r"[/\\](site|dist)-packages[/\\]"  # what is installed
    r"|[/\\]lib[/\\]python3\.\d+[/\\]|^<frozen "  # Python's own
    r"|[/\\]jax[/\\]_src[/\\]|[/\\](jax|flax|optax|equinox)[/\\]\2[/\\]"  # a checkout, which has a folder in a folder
    r"|[/\\]hlo_verify[/\\]((plans|traced)[/\\]|(checking|decorator|executed|pytest_plugin)\.py$)"  # around a user's
)

_ENTRY = re.compile(r"[/\\]hlo_verify[/\\](traced[/\\]|(checking|decorator|executed|pytest_plugin)\.py$)")
"""Where functions are traced that a user asks about: whoever called that is no part of them."""

_OURS = re.compile(r"[/\\]hlo_verify[/\\]plans[/\\]")
"""What makes operations of a plan, which has no line but that of whoever asked."""

_CALL = re.compile(r"(\w*)\((.*)\)")
"""A function that JAX transformed, as `jvp(Block)`, or that was jitted, as `jit(loss)`."""

_FUNCTIONS = {"jit", "pjit"}
_CONTROL = re.compile(
    r"while|body|cond|scan|branch_\d+_fun|shard_map|xla_pmap|closed_call|core_call|checkpoint|remat\d*"
    r"|rematted_computation|custom_(jvp|vjp)_call\w*"
)
"""What JAX calls the inside of its own operations."""


def own_line(frames: tuple[Frame, ...]) -> Frame | None:
    """The innermost frame outside of libraries; of a program that is a library itself, the innermost one.

    None where there is nothing of the program, only who asked about it.
    """
    entry = next((n for n, frame in enumerate(frames) if _ENTRY.search(frame[0])), len(frames))
    inside = frames[:entry]
    if not inside:
        return None
    own = (frame for frame in (*inside, *(frames if _OURS.search(inside[0][0]) else ())) if not is_library(frame[0]))
    return next(own, inside[0])


def is_library(file: str) -> bool:
    """Whether a file belongs to Python, to JAX, or to what is installed."""
    return _LIBRARY.search(file) is not None


def module_path(name: str) -> str:
    """`Block/Dense_1` of `jit(loss)/transpose(jvp(Block))/Dense_1/dot_general`: modules of flax, and named scopes."""
    return "/".join(scopes(name))


def scopes(name: str) -> tuple[str, ...]:
    """The named scopes that an operation is in, outermost first; modules of flax are such."""
    parts = [each for part in list(_parts(name))[:-1] for each in _plain(part).split("/")]
    return tuple(part for part in parts if part and not _CONTROL.fullmatch(part))


def is_backward(name: str) -> bool:
    """Whether an operation hands gradients back, by its name. What is computed once more on the way is not that."""
    *_, again = name.split("rematted_computation")
    return "transpose(" in again


def _parts(name: str) -> Iterator[str]:
    """What slashes separate that are in no parentheses."""
    depth, part = 0, ""
    for letter in name:
        depth += (letter == "(") - (letter == ")")
        if letter == "/" and depth == 0:
            yield part
            part = ""
        else:
            part += letter
    yield part


def _plain(part: str) -> str:
    """A part of a name without what JAX made of it; nothing of a function that was jitted."""
    call = _CALL.fullmatch(part)
    if call is None:
        return part
    return "" if call[1] in _FUNCTIONS else _plain(call[2])
