"""Follow through a module which devices agree on each value: one walk forward, loops until nothing changes.

What an operation gives is the same on two devices where its operands are; a collective makes it the same within its
groups, or moves it between devices; what is new at every execution is another value on each device. Within a loop,
devices are compared turn by turn; behind it, those that leave it at different turns differ in all that it changes.

Assumed: a collective that reduces gives all devices of a group the same bits, and a custom call without side effects
is a function of its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hlo_verify.hlo.groups import Groups
from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.module import Computation, HloModule, Instruction
from hlo_verify.hlo.shapes import Path, Shape, Tuple
from hlo_verify.linter.agreement import Agreements, Labels, Tree, Value, leaves, numbered
from hlo_verify.linter.limits import LintLimits
from hlo_verify.linter.placement.opcodes import is_new
from hlo_verify.linter.tables import compute

Mask = npt.NDArray[np.bool_]

NOT_OWN = frozenset(("is-finite", "custom-call"))
"""Operations that may give one answer for all inputs: for all that are numbers, or for what is not known of them."""

MEMORY = ("AllocateBuffer", "SliceId")
"""Custom calls that give what is in memory, or hangs on the device."""


@dataclass(eq=False)
class Choice:
    """A loop or a conditional, and how the devices that come to it choose, over all times that they do.

    `labels` are those of the predicate. `own` holds the labels of each walk in which the predicate was a function of
    each device's own data. `reached`: the devices that may come to it.
    """

    instruction: Instruction
    labels: Labels
    tables: list[list[int] | None]
    own: list[Labels]
    reached: Mask

    @property
    def is_known(self) -> bool:
        """Whether it is known for each device, by its number, which branch it takes."""
        return all(taken is not None for taken in self.tables)


@dataclass(eq=False)
class Flow:
    """The walk, and the `choices` that devices come to."""

    module: HloModule
    meetings: Meetings
    limits: LintLimits = field(default_factory=LintLimits)
    choices: dict[Instruction, Choice] = field(default_factory=dict)
    _met: dict[tuple[str, int, Labels, bool], Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.agreements = Agreements(self.meetings.devices)

    def run(self, arguments: Sequence[Tree]) -> Tree:
        return self.enter(self.module.entry, arguments, np.ones(self.meetings.devices, np.bool_))

    def enter(self, computation: Computation, arguments: Sequence[Tree], reached: Mask) -> Tree:
        """What a computation gives for these arguments, on the devices that come to it."""
        values: dict[str, Tree] = {}
        for instruction in computation.instructions:
            values[instruction.name] = self.give(instruction, values, arguments, reached)
        root = computation.root or computation.instructions[-1]
        return values[root.name]

    def give(self, i: Instruction, values: dict[str, Tree], arguments: Sequence[Tree], reached: Mask) -> Tree:
        if i.opcode == "parameter":
            number = int(i.given)
            return self.fit(i.shape, arguments[number] if number < len(arguments) else self.agreements.unknown)
        given = [_part(values.get(operand.name, self.agreements.unknown), operand.path) for operand in i.operands]
        special = _SPECIAL.get(i.opcode)
        if special is not None:
            return special(self, i, given, reached)
        if is_new(i.opcode) or (i.opcode == "custom-call" and _is_new(i)):
            return self._shaped(i, self.agreements.unknown)
        return self._computed(i, [leaf for one in given for leaf in leaves(one)])

    def _computed(self, i: Instruction, given: Sequence[Value]) -> Tree:
        tables = [one.table for one in given if one.table is not None]
        if len(tables) == len(given):
            table = compute(i, tables, self.limits.table_elements)
            if table is not None:
                return self.agreements.of_table(table)
        found = self.agreements.function(given)
        if i.opcode in NOT_OWN or (i.opcode == "compare" and len(set(i.operands)) < 2):
            found = Value(found.labels)
        return self._shaped(i, found)

    def fit(self, shape: Shape, tree: Tree) -> Tree:
        """A value in the structure of a shape; what does not fit it is unknown."""
        if isinstance(tree, Value):
            return _filled(shape, tree)
        if not isinstance(shape, Tuple) or len(shape.parts) != len(tree):
            return _filled(shape, self.agreements.unknown)
        return tuple(self.fit(part, one) for part, one in zip(shape.parts, tree, strict=True))

    def _shaped(self, i: Instruction, value: Value) -> Tree:
        return _filled(i.shape, value) if i.shape_text.startswith("(") else value

    # Control

    def call(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        if not i.applied:
            return self._shaped(i, self.agreements.unknown)
        return self.enter(i.applied[0], given, reached)

    def begin(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        """`async-start`: its operands, and what it will give."""
        return tuple(given), self.call(i, given, reached)

    def branch(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        branches = i.entered
        which = given[0] if given else self.agreements.unknown
        if len(given) != len(branches) + 1 or not isinstance(which, Value):
            return self._shaped(i, self.agreements.unknown)
        taken = None if which.table is None else np.array(self.agreements.row(which.table, len(branches)))
        self.note(i, which, None if taken is None else taken.tolist(), reached)
        results = []
        for number, computation in enumerate(branches):
            here = reached if taken is None else reached & (taken == number)
            results.append(self.enter(computation, [given[number + 1]], here))
        return self.combine(lambda values: self.agreements.chosen(which, values), results)

    def loop(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        if len(i.entered) != 2 or len(given) != 1:
            return self._shaped(i, self.agreements.unknown)
        condition, body = i.entered
        state = entering = self.fit(i.shape, given[0])
        while True:  # labels only part, and tables are only lost: this ends
            goes_on = self.enter(condition, [state], reached)
            which = goes_on if isinstance(goes_on, Value) else self.agreements.unknown
            self.note(i, which, None, reached)
            turned = self.fit(i.shape, self.enter(body, [state], reached))
            after = self.combine(self._either, [state, turned])
            if _same(state, after):
                break
            state = after
        return self.combine(lambda values: self._left(which, *values), [entering, state])

    def _either(self, values: Sequence[Value]) -> Value:
        before, after = values
        joined = self.agreements.either(before, after)
        unchanged = joined.labels == before.labels and joined.own == before.own
        return before if unchanged and (joined.table is None) == (before.table is None) else joined

    def _left(self, which: Value, before: Value, value: Value) -> Value:
        """What a loop leaves behind: what it does not change, or what hangs on when it ended."""
        if value is before and value.table is not None:
            return value
        return Value(self.agreements.meet(which.labels, value.labels))

    def note(self, i: Instruction, which: Value, taken: list[int] | None, reached: Mask) -> None:
        """Keep how the devices choose here."""
        own = [which.labels] if which.own and not which.is_uniform else []
        known = self.choices.get(i)
        if known is None:
            self.choices[i] = Choice(i, which.labels, [taken], own, reached)
            return
        known.labels = self.agreements.meet(known.labels, which.labels)
        known.tables += [taken] if taken not in known.tables else []
        known.own += [one for one in own if one not in known.own]
        known.reached = known.reached | reached

    def combine(self, function: Callable[[Sequence[Value]], Value], trees: Sequence[Tree]) -> Tree:
        """A function of values, leaf by leaf."""
        if any(isinstance(tree, Value) for tree in trees):
            if all(isinstance(tree, Value) for tree in trees):
                return function([tree for tree in trees if isinstance(tree, Value)])
            return self.agreements.unknown
        parts = [tree for tree in trees if not isinstance(tree, Value)]
        return tuple(self.combine(function, list(group)) for group in zip(*parts, strict=False))

    # Collectives

    def meet(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        """A collective: what each device has after it."""
        del reached
        operand = self.agreements.function([leaf for one in given for leaf in leaves(one)])
        found = self._after(i, operand)
        if i.opcode in ("all-gather-start", "collective-permute-start"):
            first = given[0] if given else self.agreements.unknown
            return first, self._result(i, found)
        return self._shaped(i, found)

    def _result(self, i: Instruction, found: Value) -> Tree:
        """The part of a start's shape that is its result."""
        shape = i.shape
        return _filled(shape.parts[1], found) if isinstance(shape, Tuple) and len(shape.parts) > 1 else found

    def _after(self, i: Instruction, operand: Value) -> Value:
        groups = self.meetings.groups(i)
        if groups is None:
            return self.agreements.unknown
        if i.opcode.startswith("collective-permute"):
            return self._moved(operand, groups)
        what = i.opcode.removesuffix("-start")
        key = what, id(groups), operand.labels, operand.own
        if key not in self._met:
            self._met[key] = self._joined(what, operand, groups)
        return self._met[key]

    def _joined(self, what: str, operand: Value, groups: Groups) -> Value:
        """What a collective over groups gives: the same where it has the same from each, and by place."""
        keys: list[Hashable] = [("left out", device) for device in range(self.agreements.devices)]
        own: dict[Hashable, Hashable] = {}
        numbers: dict[Hashable, int] = {}
        for group in groups:
            held = tuple(operand.labels[device] for device in group)
            from_all = numbers.setdefault(held[:1] if what == "collective-broadcast" else held, len(numbers))
            own[from_all, 0] = frozenset(held)
            for place, device in enumerate(group):
                keys[device] = (from_all, place if what in _PLACED else 0)
        is_own = operand.own and what in ("all-reduce", "all-gather") and len(set(own.values())) == len(own)
        return Value(numbered(keys), own=is_own and all(key in own for key in keys))

    def _moved(self, operand: Value, pairs: Sequence[Sequence[int]]) -> Value:
        """A permute: the value of the source, or zeros."""
        keys: list[Hashable] = ["zeros"] * self.agreements.devices
        for source, target in pairs:
            keys[target] = operand.labels[source]
        if operand.table is None:
            return Value(numbered(keys))
        rows = np.zeros((self.agreements.devices, *operand.table.shape[1:]), operand.table.dtype)
        for source, target in pairs:
            rows[target] = operand.table[source % operand.table.shape[0]]
        return self.agreements.of_table(rows)

    # The device's own number

    def number(self, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
        del given, reached
        _, partitions = self.meetings.size
        devices = np.arange(self.agreements.devices, dtype=np.uint32)
        return self.agreements.of_table(devices % partitions if i.opcode == "partition-id" else devices // partitions)


_PLACED = frozenset(("all-to-all", "ragged-all-to-all", "reduce-scatter"))
"""Collectives that give each device of a group a part of its own."""


def _tuple(flow: Flow, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
    del flow, i, reached
    return tuple(given)


def _element(flow: Flow, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
    return _part(_first(flow, i, given, reached), (int(i.attributes.get("index", "0")),))


def _whole(flow: Flow, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
    del flow, i, reached
    return given[0] if len(given) == 1 else tuple(given)


def _first(flow: Flow, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
    del i, reached
    return given[0] if given else flow.agreements.unknown


def _done(flow: Flow, i: Instruction, given: Sequence[Tree], reached: Mask) -> Tree:
    """The result that a start keeps in its second part; `copy-start` in its first."""
    kept = _first(flow, i, given, reached)
    if isinstance(kept, Value) or not kept:
        return kept
    return kept[0] if i.opcode == "copy-done" or len(kept) < 2 else kept[1]


_Special = Callable[[Flow, Instruction, Sequence[Tree], Mask], Tree]

_SPECIAL: dict[str, _Special] = {
    "tuple": _tuple,
    "get-tuple-element": _element,
    "optimization-barrier": _whole,
    "opt-barrier": _whole,
    "domain": _first,
    "add-dependency": _first,
    "async-update": _first,
    "copy-done": _done,
    "async-done": _done,
    "all-gather-done": _done,
    "all-reduce-done": _first,
    "collective-permute-done": _done,
    "async-start": lambda flow, i, given, reached: flow.begin(i, given, reached),
    "call": lambda flow, i, given, reached: flow.call(i, given, reached),
    "fusion": lambda flow, i, given, reached: flow.call(i, given, reached),
    "conditional": lambda flow, i, given, reached: flow.branch(i, given, reached),
    "while": lambda flow, i, given, reached: flow.loop(i, given, reached),
    "partition-id": lambda flow, i, given, reached: flow.number(i, given, reached),
    "replica-id": lambda flow, i, given, reached: flow.number(i, given, reached),
    **dict.fromkeys(
        "all-reduce all-reduce-start all-gather all-gather-start reduce-scatter all-to-all ragged-all-to-all"
        " collective-broadcast collective-permute collective-permute-start".split(),
        lambda flow, i, given, reached: flow.meet(i, given, reached),
    ),
}
"""Operations that are more than functions of their operands, or whose results are tuples of them."""


def _is_new(call: Instruction) -> bool:
    target = call.attributes.get("custom_call_target", "").strip('"')
    return target in MEMORY or call.attributes.get("custom_call_has_side_effect") == "true"


def _part(tree: Tree, path: Path) -> Tree:
    for number in path:
        if isinstance(tree, Value):
            return tree
        if number >= len(tree):
            found = leaves(tree)
            return found[0] if found else ()
        tree = tree[number]
    return tree


def _filled(shape: Shape, value: Value) -> Tree:
    return tuple(_filled(part, value) for part in shape.parts) if isinstance(shape, Tuple) else value


def _same(a: Tree, b: Tree) -> bool:
    return all(x is y for x, y in zip(leaves(a), leaves(b), strict=True))
