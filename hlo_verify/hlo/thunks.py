"""Read XLA's sequence of thunks for GPUs (`*.thunk_sequence_after_thunk_passes.txt`): what is launched, in order, on
which streams, and what waits for what.

A line is a thunk: `011: kAsyncStart [prev=008 (2) | next=031 (4)] stream=communication_stream[0], async_id=11`. What
it runs stands below it, further in; of a loop under `condition:` and `body:`, of a conditional under its branches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError

_THUNK = re.compile(r"( *)(\d+): (k\w+)\s+\[(?:prev=(\d+)[^|]*|source *)\|(?: next=\d+[^\]]*| sink *)\]\s*(.*?)\s*")
_LABEL = re.compile(r"\s*([\w ]+):\s*")
_ASYNC_ID = re.compile(r"\basync_id=(\d+)")
_STREAM = re.compile(r"\bstream=([\w\[\]]+)")


@dataclass(eq=False)
class Thunk:
    """One launch: its number (0 where it has none of its own), its kind without the `k`, what is said of it (first of
    all its kernel), the thunk that it runs behind, its line in the file, and what it runs, by label."""

    number: int
    kind: str
    said: str
    behind: int | None
    line: int
    inner: list[tuple[str, list[Thunk]]] = field(default_factory=list, repr=False)

    @property
    def async_id(self) -> int | None:
        """What a start and its done share."""
        found = _ASYNC_ID.search(self.said)
        return int(found[1]) if found else None

    @property
    def stream(self) -> str:
        """The stream that an asynchronous operation runs on."""
        found = _STREAM.search(self.said)
        return found[1] if found else ""

    @property
    def kernel(self) -> str:
        """The kernel that is launched; nothing of what is no kernel."""
        return self.said.partition(" ")[0] if self.kind == "CustomKernel" else ""

    def within(self) -> Iterator[Thunk]:
        """The thunk, and all that it runs."""
        yield self
        for _, sequence in self.inner:
            for one in sequence:
                yield from one.within()

    def __str__(self) -> str:
        return f"{self.number:03} {self.kind}"


def parse_thunks(text: str) -> list[Thunk]:
    """The sequence of a module. Raises InputError for a text that is none."""
    top: list[Thunk] = []
    around: list[tuple[int, Thunk]] = []
    label = ""
    for number, line in enumerate(text.splitlines(), 1):
        thunk = _THUNK.fullmatch(line)
        if thunk is None:
            named = _LABEL.fullmatch(line)
            if named is None and line.strip():
                said = f"line {number} of the thunk sequence is not understood: {line.strip()[:80]}"
                raise InputError(said, Input.NOT_A_MODULE if not top else Input.DAMAGED)
            label = named[1].strip() if named is not None else label
            continue
        depth = len(thunk[1])
        one = Thunk(int(thunk[2]), thunk[3].removeprefix("k"), thunk[5], int(thunk[4] or 0) or None, number)
        while around and around[-1][0] >= depth:
            around.pop()
        _sequence(around, top, label).append(one)
        label = ""
        around.append((depth, one))
    if not top:
        raise InputError("this is no thunk sequence: it has no thunks", Input.NOT_A_MODULE)
    return top


def _sequence(around: list[tuple[int, Thunk]], top: list[Thunk], label: str) -> list[Thunk]:
    """Where a thunk belongs: to what was said last within the one that it stands under."""
    if not around:
        return top
    inner = around[-1][1].inner
    if label or not inner:
        inner.append((label, []))
    return inner[-1][1]
