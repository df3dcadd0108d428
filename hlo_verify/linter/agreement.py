"""On which devices a value is surely the same: the finest that can be said without running the module.

`labels` name a class of devices each: devices with one label hold the same value, whatever the inputs. A `table` is the
value itself, where it is an integer that hangs on the device alone: there devices of different labels surely differ. A
value is `own` where each device computes the same function of its own data: then devices of different labels hold
independent data, and there are inputs for which they differ. Nothing else says that devices do differ.

    x                              sharded over 4 devices     labels 0 1 2 3, own
    all-reduce of x in {01}{23}                               labels 0 0 1 1, own
    partition-id() < 2                                        labels 0 0 1 1, table 1 1 0 0
    x + collective-permute of x                               labels 0 1 2 3: it may be one sum on all
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hlo_verify.linter.tables import Table

Labels = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What is known of one array on all devices."""

    labels: Labels
    table: Table | None = None
    own: bool = False

    @property
    def is_uniform(self) -> bool:
        return self.labels[-1] == 0 and not any(self.labels)


Tree = Value | tuple["Tree", ...]
"""What is known of a value of any shape."""


def numbered(keys: Iterable[Hashable]) -> Labels:
    """A label for each device by its key, in order of first appearance."""
    seen: dict[Hashable, int] = {}
    return tuple(seen.setdefault(key, len(seen)) for key in keys)


@dataclass(eq=False)
class Agreements:
    """Values over the devices of a module."""

    devices: int
    _met: dict[tuple[Labels, Labels], Labels] = field(default_factory=dict)

    @cached_property
    def uniform(self) -> Value:
        """The same on all devices."""
        return Value((0,) * self.devices, own=True)

    @cached_property
    def unknown(self) -> Value:
        """Perhaps another value on each device."""
        return Value(tuple(range(self.devices)))

    def of_table(self, table: Table) -> Value:
        if table.shape[0] == 1:
            return Value((0,) * self.devices, table, own=True)
        return Value(numbered(row.tobytes() for row in table), table)

    def meet(self, a: Labels, b: Labels) -> Labels:
        """The classes within which both are the same."""
        if a == b or not any(b):
            return a
        if not any(a):
            return b
        key = (a, b)
        if key not in self._met:
            self._met[key] = numbered(zip(a, b, strict=True))
        return self._met[key]

    def function(self, operands: Sequence[Value]) -> Value:
        """What a function of values gives, the same function on all devices."""
        labels: Labels = (0,) * self.devices
        own = True
        for one in operands:
            labels = self.meet(labels, one.labels)
            own = own and (one.own or one.is_uniform)
        return Value(labels, own=own)

    def either(self, a: Value, b: Value) -> Value:
        """A value that is `a` in one turn of a loop and `b` in another."""
        if a is b:
            return a
        same = a.table is not None and b.table is not None and bool(np.all(a.table == b.table))
        return Value(self.meet(a.labels, b.labels), a.table if same else None, a.own and b.own and a.labels == b.labels)

    def chosen(self, which: Value, values: Sequence[Value]) -> Value:
        """The value of the branch that each device takes; `which` has its number, in a table or not."""
        if which.table is None:
            return self.function([which, *values])
        taken = self.row(which.table, len(values))
        if len(set(taken)) == 1:
            return values[taken[0]]
        keys = [(branch, values[branch].labels[device]) for device, branch in enumerate(taken)]
        tables = [one.table for one in values]
        if any(table is None for table in tables):
            return Value(numbered(keys))
        rows = [table[device % table.shape[0]] for device, b in enumerate(taken) if (table := tables[b]) is not None]
        return self.of_table(np.stack(rows))

    def row(self, table: Table, branches: int) -> list[int]:
        """The branch of each device: a predicate takes the first if it holds; a number beyond the last one the last."""
        numbers = [int(table[device % table.shape[0]].item()) for device in range(self.devices)]
        if table.dtype == bool:
            return [0 if number else 1 for number in numbers]
        return [number if 0 <= number < branches else branches - 1 for number in numbers]


def leaves(tree: Tree) -> list[Value]:
    """The arrays of a value, in order."""
    return [tree] if isinstance(tree, Value) else [leaf for part in tree for leaf in leaves(part)]
