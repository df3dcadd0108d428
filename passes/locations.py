"""Source locations: MLIR's nests of names, call sites and files as an operation's name and the user's frames."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from hlo_verify.ir import Location
from hlo_verify.jaxlib_api import ir


class Locations:
    """Reads locations; each is read once.

    Inside a function that was called, JAX's names are relative: `inside` puts the call's in front of them.
    """

    def __init__(self) -> None:
        self.prefix = ""
        self.cache: dict[tuple[str, Any], Location] = {}

    def of(self, location: Any) -> Location:
        key = (self.prefix, location)
        found = self.cache.get(key)
        if found is None:
            name, frames = _read(location)
            found = self.cache[key] = Location(self.join(name), frames)
        return found

    def join(self, name: str) -> str:
        if not self.prefix or name.split("/", 1)[0] == self.prefix.split("/", 1)[0]:
            return name
        return f"{self.prefix}/{name}" if name else self.prefix

    @contextlib.contextmanager
    def inside(self, call: Any) -> Iterator[None]:
        """Read locations as those of the body of a function that is called at `call`."""
        outer = self.prefix
        self.prefix = self.of(call).name
        yield
        self.prefix = outer


def _read(location: Any) -> tuple[str, tuple[tuple[str, int], ...]]:
    """The outermost name, and the frames, innermost first."""
    name = ""
    frames: list[tuple[str, int]] = []
    pending = [location]
    while pending:
        here = pending.pop()
        if isinstance(here, ir.NameLoc):
            name = name or here.name_str
            pending.append(here.child_loc)
        elif isinstance(here, ir.CallSiteLoc):
            name = name or "\0"  # the names further in are functions, not operations
            pending += [here.caller, here.callee]
        elif isinstance(here, ir.FileLineColLoc):
            frames.append((here.filename, here.start_line))
        elif isinstance(here, ir.FusedLoc):
            pending += reversed(list(here.locations)[:1])
    return name.strip("\0"), tuple(frames)
