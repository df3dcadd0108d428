"""What arguments are for: those of one role lie alike, such as the biases of a network's equal layers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby

from hlo_verify.program.ir import Module, Name, Op
from hlo_verify.program.op_families import LINEAR, REDUCTIONS, RESHAPES, SCALES

DEEP = 6
"""How many operations that move elements are looked through, from an argument to where it is used."""


def roles(logical: Module, partitioned: Module, arguments: Collection[int]) -> list[tuple[int, ...]]:
    """Those arguments, of each role together: of one type on either side, and used in the same way by both modules."""
    sides = [(module, _users(module)) for module in (logical, partitioned)]

    def key(n: int) -> str:
        types = [module.main.argument_types[n] for module, _ in sides]
        uses = [_uses(module.main.arguments[n], users, DEEP) for module, users in sides]
        return repr((types, uses))

    together: dict[str, list[int]] = {}
    for n in sorted(arguments):
        together.setdefault(key(n), []).append(n)
    return [tuple(each) for each in together.values()]


Users = dict[Name, list[Op]]


def _users(module: Module) -> Users:
    users: Users = {}
    for op in module.main.ops:
        for operand in dict.fromkeys(op.operands):
            users.setdefault(operand, []).append(op)
    return users


def _uses(value: Name, users: Users, deep: int) -> Sequence[object]:
    """How a value is used, each way once: by which operations, as which operand, and what is done with that."""
    found = []
    for op in users.get(value, ()):
        at = [n for n, operand in enumerate(op.operands) if operand == value]
        through = op.name in RESHAPES and deep > 0
        after = _uses(op.results[0], users, deep - 1) if through else _names(op, users)
        found.append((op.name, at, after))
    return [each for each, _ in groupby(sorted(found, key=repr))]


def _names(op: Op, users: Users) -> Sequence[object]:
    """By which operations the results of one are used."""
    return sorted({user.name for result in op.results for user in users.get(result, ())})


def added_up(partitioned: Module) -> list[int]:
    """The arguments that are only added to others, or scaled, before an all_reduce or reduce_scatter, in order."""
    made = {result: op for op in partitioned.main.ops for result in op.results}
    number = {argument: n for n, argument in enumerate(partitioned.main.arguments)}
    found: dict[int, None] = {}
    seen: set[Name] = set()
    for op in partitioned.main.ops:
        todo = list(op.operands) if op.name in REDUCTIONS else []
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            if at in number:
                found[number[at]] = None
            elif at in made and made[at].name in LINEAR | SCALES:
                todo.extend(made[at].operands)
    return list(found)
