"""Source locations: MLIR's nests of names, call sites and files as an operation's name and the user's frames."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from hlo_verify.jaxlib_api import ir
from hlo_verify.program.ir import Location

Frames = tuple[tuple[str, int], ...]


class Locations:
    """Reads locations; each is read once. They hash by identity in the bindings, their attributes by value.

    Inside a function that was called, JAX's names are relative: `inside` puts the call's in front of them. An operation
    without frames, in a function of JAX's own, has those of the call.
    """

    def __init__(self, path: str = "") -> None:
        self.path = path or "<text>"
        self.prefix = ""
        self.caller: Frames = ()
        self.cache: dict[tuple[str, Frames, Any], Location] = {}
        self.stacks: dict[Any, Frames] = {}

    def of(self, location: Any) -> Location:
        key = (self.prefix, self.caller, location.attr)
        found = self.cache.get(key)
        if found is None:
            name, frames = self._read(location)
            found = self.cache[key] = Location(self.join(name), frames or self.caller)
        return found

    def join(self, name: str) -> str:
        """A name as it is outside the call: absolute ones, which begin with the traced function, stay as they are.

        Those in a jitted function that another one calls begin with its own name: `jit(_where)/select_n`."""
        if not self.prefix or name.split("/", 1)[0] == self.prefix.split("/", 1)[0]:
            return name
        called, _, rest = name.partition("/")
        if called == self.prefix.rsplit("/", 1)[-1]:
            return f"{self.prefix}/{rest}" if rest else self.prefix
        return f"{self.prefix}/{name}" if name else self.prefix

    @contextlib.contextmanager
    def inside(self, call: Any) -> Iterator[None]:
        """Read locations as those of the body of a function that is called at `call`."""
        outer = self.prefix, self.caller
        here = self.of(call)
        self.prefix, self.caller = here.name, here.frames
        yield
        self.prefix, self.caller = outer

    def _read(self, location: Any) -> tuple[str, Frames]:
        """The outermost name, and the frames, innermost first."""
        if isinstance(location, ir.NameLoc):
            child = location.child_loc
            return location.name_str, self.frames(child)
        if isinstance(location, ir.FusedLoc) and len(location.locations):
            return self._read(location.locations[0])
        return "", self.frames(location)

    def frames(self, location: Any) -> Frames:
        """The files and lines of a location, innermost first; stacks share their outer part, so each is read once."""
        key = location.attr
        found = self.stacks.get(key)
        if found is None:
            found = self.stacks[key] = self._frames(location)
        return found

    def _frames(self, location: Any) -> Frames:
        if isinstance(location, ir.CallSiteLoc):
            return self.frames(location.callee) + self.frames(location.caller)
        if isinstance(location, ir.NameLoc):  # the name of a function
            return self.frames(location.child_loc)
        if isinstance(location, ir.FileLineColLoc):
            # An operation of a text without locations has that of its own line there, in a file called "-".
            return ((self.path if location.filename == "-" else location.filename, location.start_line),)
        if isinstance(location, ir.FusedLoc) and len(location.locations):
            return self.frames(location.locations[0])
        return ()
