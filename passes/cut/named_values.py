"""The values that a user names by a scope or a source line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.approximations import Named
from hlo_verify.program.ir import Function, Module, Name, Op, TensorType, operations, used
from hlo_verify.program.op_families import REGION
from hlo_verify.program.source_lines import is_backward, own_line, scopes

LOOP = "while"
_LOOKED_INTO = (REGION, LOOP, "case", "if")
"""Operations whose regions hold values that somebody wrote; those of a reduction hold how it joins numbers."""

_SUM_OF_GRADIENTS = "/add_any"
"""How JAX's name of an operation ends that adds what several uses of a value hand back to it."""

SHOWN = 6
"""Values, scopes or lines that a message names."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A value of a module, the operation that computes it, and those in whose regions that is, outermost first."""

    name: Name
    type: TensorType
    op: Op
    inside: tuple[Op, ...]

    def __str__(self) -> str:
        return f"{self.op.name} {self.type} ({self.op.location})"


def values_of(named: Named, module: Module, which: str) -> list[Value]:
    """The values of a name: what a scope or line computes and something else uses.

    Several are alike: of one operation and type, as in the layers of a network. `which` module it is, messages say.
    Raises `InputError` where there is none, or where there are several that are not alike.
    """
    found = list(_leaving(module.main, named, ()))
    if not found:
        raise InputError(f"{named}: {_nothing(named, module, which)}", Input.APPROXIMATION)
    if named.which is not None:
        if named.which >= len(found):
            raise InputError(f"{named}: there {_are(found)} in {which}", Input.APPROXIMATION)
        return [found[named.which]]
    if len({_kind(each, named) for each in found}) > 1:
        raise InputError(
            f"{named}: there {_are(found)} in {which} that are used elsewhere and are not alike; name an inner scope, "
            f"a source line, or one of them: {named}[0]",
            Input.APPROXIMATION,
        )
    return found


def _are(found: Sequence[Value]) -> str:
    listed = [f"[{n}] {each}" for n, each in enumerate(found[:SHOWN])]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{'is 1 value' if len(found) == 1 else f'are {len(found)} values'}, {', '.join(listed)}{more},"


def _leaving(function: Function, named: Named, inside: tuple[Op, ...]) -> Iterator[Value]:
    """The values of a name in a function and in the regions of other operations of it, in their order."""
    members = _members(function, named)
    elsewhere = set(function.results)
    for op in function.ops:
        # What the backward part of a scope takes from it is no value that others see.
        if id(op) not in members and (named.backward or not _is_of(op, named, backward=True)):
            elsewhere |= used(op)
    for op in function.ops:
        if id(op) in members:
            if op.name not in ("constant", "iota"):
                each = zip(op.results, op.types, strict=True)
                yield from (Value(name, type_, op, inside) for name, type_ in each if name in elsewhere)
        elif op.name in _LOOKED_INTO:
            for region in op.regions:
                yield from _leaving(region, named, (*inside, op))


def _members(function: Function, named: Named) -> set[int]:
    """The operations of a name, by identity. A sum of gradients is one if all that it adds is."""
    members: set[int] = set()
    made: set[Name] = set()
    for op in function.ops:
        if not _is_of(op, named, named.backward):
            continue
        if op.location.name.endswith(_SUM_OF_GRADIENTS) and not made.issuperset(op.operands):
            continue
        members.add(id(op))
        made.update(op.results)
    return members


def _is_of(op: Op, named: Named, backward: bool) -> bool:
    """Whether an operation belongs to the scope or line, or to what hands gradients back there."""
    if is_backward(op.location.name) is not backward:
        return False
    if named.line:
        line = own_line(op.location.frames)
        return line is not None and line[1] == named.line and _is_file(line[0], named.file)
    return _start_of(named.scope, scopes(op.location.name)) is not None


def _is_file(path: str, asked: str) -> bool:
    """Whether the path ends with the parts of another one."""
    parts = PurePath(asked.replace("\\", "/")).parts
    return PurePath(path.replace("\\", "/")).parts[-len(parts) :] == parts


def _start_of(scope: Sequence[str], path: Sequence[str]) -> int | None:
    """Where a scope begins among those of an operation."""
    size = len(scope)
    return next((k for k in range(len(path) - size + 1) if tuple(path[k : k + size]) == tuple(scope)), None)


def _kind(value: Value, named: Named) -> tuple[str, TensorType, str]:
    """What alike values share. Of names, what stands behind the scope; layers differ in numbers."""
    path, last = scopes(value.op.location.name), value.op.location.name.rsplit("/", 1)[-1]
    behind = path[_start_of(named.scope, path) or 0 :] if named.scope else ()
    return value.op.name, value.type, re.sub(r"_\d+\b", "", "/".join((*behind, last)))


def _nothing(named: Named, module: Module, which: str) -> str:
    every = list(operations(module.main))
    if any(_is_of(op, named, named.backward) for op in every):
        return f"nothing that it computes in {which} is used elsewhere"
    if any(_is_of(op, named, not named.backward) for op in every):
        other = f"transpose({named})" if not named.backward else str(named).removeprefix("transpose(").removesuffix(")")
        return f"{which} computes nothing there but {'gradients' if not named.backward else 'values'}: {other}"
    if named.line:
        lines = {line for op in every for line in [own_line(op.location.frames)] if line is not None}
        there = sorted({line for file, line in lines if _is_file(file, named.file)})
        files = sorted({PurePath(file).name for file, _ in lines})
        if not there:
            return f"no operation of {which} is of such a file; they are of {', '.join(files[:SHOWN]) or 'none'}"
        near = sorted(there, key=lambda line: abs(line - named.line))[:SHOWN]
        return f"no operation of {which} is of that line; near it are {', '.join(map(str, sorted(near)))}"
    paths = dict.fromkeys("/".join(scopes(op.location.name)) for op in every)
    known = [path for path in paths if path]
    asked = "/".join(named.scope)
    parts = [path for path in known if named.scope[-1] in path.split("/")]
    near_paths = (parts or get_close_matches(asked, known, SHOWN, 0.4) or known)[:SHOWN]
    return f"there is no such scope in {which}; " + (
        f"there are {', '.join(near_paths)}" if near_paths else "none of its operations is in a named scope"
    )
