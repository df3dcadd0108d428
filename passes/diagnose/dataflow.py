"""Which values of a module follow from which, through its loops, branches and manual regions too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hlo_verify.ops.values import Value
from hlo_verify.passes.prove.stages import Step
from hlo_verify.program.ir import Location, Name, Op
from hlo_verify.program.op_families import BRANCHES


class Flow:
    """The computed values of one module, by name. A loop's body counts as it was walked first: with every guess
    about what it carries, before wrong ones were dropped."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._made: dict[Name, tuple[Step, int]] = {}
        self._order: dict[Name, int] = {}
        self._passed: dict[Name, Name] = {}
        for n, step in enumerate(steps):
            op = step.op
            if op.results and op.results[0] in self._made:
                continue
            for k, result in enumerate(op.results):
                self._made[result] = step, k
                self._order[result] = n
            for arguments, passed in _entries(op):
                self._passed.update(zip(arguments, passed, strict=False))

    def __contains__(self, name: Name) -> bool:
        return name in self._made

    def value(self, name: Name) -> Value:
        """What was computed."""
        step, k = self._made[name]
        return step.values[k]

    def step(self, name: Name) -> Step:
        """Where it was computed."""
        return self._made[name][0]

    def op(self, name: Name) -> Op:
        """The operation that computes it."""
        return self._made[name][0].op

    def result(self, name: Name) -> int:
        """Which of its operation's results it is."""
        return self._made[name][1]

    def inputs(self, step: Step) -> list[Name]:
        """The computed operands of an operation."""
        return [name for name in map(self.origin, step.op.operands) if name in self._made]

    def order(self, name: Name) -> int:
        """When it was computed."""
        return self._order[name]

    def origin(self, name: Name) -> Name:
        """The value that the argument of a region is at first; any other value itself."""
        while name in self._passed:
            name = self._passed[name]
        return name

    def sources(self, name: Name) -> list[Name]:
        """The computed values that a value follows from; for a loop's, those it starts from and those of its body."""
        step, k = self._made[name]
        op = step.op
        found: Iterable[Name] = op.operands
        if op.name == "while":
            found = (*op.operands, *op.regions[1].results)
        elif op.name in BRANCHES:
            found = (op.operands[0], *(region.results[k] for region in op.regions))
        elif op.name == "sdy.manual_computation":
            found = (op.regions[0].results[k],)
        return [source for source in dict.fromkeys(map(self.origin, found)) if source in self._made]

    def back(self, name: Name, beyond: Callable[[Name], bool] | None = None) -> Iterator[Name]:
        """The value and those that it follows from, nearest first, going on from those that `beyond` accepts."""
        todo, seen = [name], {name}
        for at in todo:
            yield at
            if beyond is not None and not beyond(at):
                continue
            new = [source for source in self.sources(at) if source not in seen]
            seen.update(new)
            todo += new

    def line(self, name: Name) -> Location:
        """The source line of a value: its own, else that of the nearest value that it is made from."""
        for at in self.back(name):
            if self.op(at).location.frames:
                return self.op(at).location
        return self.op(name).location


def _entries(op: Op) -> Iterator[tuple[tuple[Name, ...], tuple[Name, ...]]]:
    """The arguments of an operation's regions, and the operands that they are at first."""
    if op.name in ("while", "sdy.manual_computation"):
        yield from ((region.arguments, op.operands) for region in op.regions)
    elif op.name in BRANCHES:
        yield from ((region.arguments, op.operands[1:]) for region in op.regions)
