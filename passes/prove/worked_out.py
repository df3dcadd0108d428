"""Operations that are functions of their operands alone, worked out once in a walk of both modules.

Layers that stand one after another in a loop's body compute the same of the same: the grid of a grouped matrix product
is made anew for each of its products. What a device computes inside of a manual region is often what the logical module
has there, term by term.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hlo_verify.ops import FUNCTIONS
from hlo_verify.ops.values import Context, Rule, Value
from hlo_verify.passes.prove.layers import Key, Keys
from hlo_verify.program.ir import Op


@dataclass(slots=True)
class WorkedOut:
    """Results by what an operation does, its operands with their types, and all that it sees of what is around it."""

    _keys: Keys = field(default_factory=Keys)
    _numbers: dict[int, tuple[int | None, Op]] = field(default_factory=dict)
    """What operations do, by their ids; with the operations, so that these stay taken."""
    _found: dict[Key, list[Value]] = field(default_factory=dict)

    def results(self, op: Op, operands: list[Value], context: Context, rule: Rule) -> list[Value]:
        """What the rule gives. Raises what the rule does, each time anew."""
        number = self._number(op)
        if number is None:
            return rule(op, operands, context)
        how = context.compilers_device if op.name == "select" else None  # how its result is written, not what it is
        key = number, how, *((value.type, value.term.uid) for value in operands)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = rule(op, operands, context)
        return found

    def _number(self, op: Op) -> int | None:
        """A number for what an operation does, wherever its results are placed; None if it is no such function."""
        found = self._numbers.get(id(op))
        if found is None:
            bare = replace(op, attributes={name: said for name, said in op.attributes.items() if name != "sharding"})
            number = self._keys.of(bare) if _is_function(op) else None
            found = self._numbers[id(op)] = number, op
        return found[0]


def _is_function(op: Op) -> bool:
    """Whether an operation is a function of its operands, all of it: regions of more than one operation may hold what
    is new each time."""
    inner = [each for region in op.regions for each in region.ops]
    return op.name in FUNCTIONS and len(inner) == len(op.regions) and all(each.name in FUNCTIONS for each in inner)
