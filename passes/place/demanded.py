"""Where a partitioned module's arguments and results have to lie: where the module says that a user gave, and what it
leaves open, where the compiler put it.

The compiler's own account of the program (`annotated`: shardings completed, right before the partitioner) is never
taken for what the user states. Where the two differ, the user's is demanded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hlo_verify.passes.place.placements import lies
from hlo_verify.passes.prove.lineage import shard_shape
from hlo_verify.program.ir import Module, TensorType
from hlo_verify.program.pair import check_agreement, device_count, other_count
from hlo_verify.program.sharding import Sharding, same

_OPEN = re.compile(r"[{,]\s*\?\s*\}")
"""How Shardy writes that a dimension may be split further."""


@dataclass(frozen=True, slots=True, eq=False)
class Demanded:
    """Both whole modules with one placement for every argument and result that has any.

    `left` says in words what was left open and where the compiler put it; `missed` says of results why they cannot lie
    where the user states: then a proof is about where the compiler put them, and is no answer.
    """

    given: Module
    annotated: Module
    left: tuple[str, ...] = ()
    missed: Mapping[int, str] = field(default_factory=dict)

    def placed_like(self, module: Module) -> Module:
        """The annotated module with that one's placements."""
        return placed_like(self.annotated, module)


def placed_like(module: Module, other: Module) -> Module:
    """A module with the placements of another one of the same arguments and results."""
    return replace(
        module,
        argument_shardings=other.argument_shardings,
        result_shardings=other.result_shardings,
        partitions=other.partitions,
        replicas=other.replicas,
    )


@dataclass(slots=True)
class _Choice:
    """The placements of all arguments, or of all results."""

    shardings: list[Sharding | None] = field(default_factory=list)
    left: dict[str, list[str]] = field(default_factory=dict)
    """The names of what was left open, by where the compiler put it."""
    missed: dict[int, str] = field(default_factory=dict)


def asked_of(reference: Module, placed: Module) -> Module:
    """Another module that is to be computed, with the placements that are demanded of one that was partitioned.

    Raises `InputError` where they are no pair, or the reference states other placements.
    """
    for what in ("argument", "result"):
        counts = [len(getattr(module, f"{what}_names")) for module in (reference, placed)]
        if counts[0] != counts[1]:
            raise other_count(what, *counts)
    device_count(reference, placed)
    check_agreement(reference, placed)
    return replace(placed_like(reference, placed), unplaced=placed.unplaced)


def demanded(given: Module, annotated: Module, partitioned: Module) -> Demanded:
    """The placements that are demanded of a partitioned module. Raises `InputError` where the modules are no pair."""
    arguments = _choose(
        "argument",
        (given.argument_names, given.main.argument_types, partitioned.main.argument_types),
        (given.argument_shardings, annotated.argument_shardings, partitioned.argument_shardings),
        open_positions(given, "arg_attrs"),
        unplaced(given, "argument"),
    )
    results = _choose(
        "result",
        (given.result_names, given.result_types, partitioned.result_types),
        (given.result_shardings, annotated.result_shardings, partitioned.result_shardings),
        open_positions(given, "res_attrs"),
        unplaced(given, "result"),
    )
    missed = dict(results.missed)
    for reason in arguments.missed.values():  # what it is given, every result may depend on
        missed = {n: missed.get(n, reason) for n in range(len(given.result_names))}
    whole, between = (
        replace(
            _on_as_many_devices(module, partitioned),
            argument_shardings=tuple(arguments.shardings),
            result_shardings=tuple(results.shardings),
        )
        for module in (given, annotated)
    )
    left = (*_left("argument", "takes", arguments), *_left("result", "returns", results))
    return Demanded(whole, between, left, missed)


def _on_as_many_devices(module: Module, partitioned: Module) -> Module:
    """The module on the partitioned one's devices, where it does not say how many it is for."""
    if module.partitions not in (None, 1) or partitioned.partitions is None:
        return module
    return replace(module, partitions=partitioned.partitions, replicas=partitioned.replicas)


def unplaced(module: Module, what: str) -> frozenset[int]:
    """The arguments or results of which a module says something that does not place them, and does not leave it open
    either: no guess, and no compiler, says it instead."""
    return frozenset(n for (which, n), text in module.unplaced.items() if which == what and "unknown" not in text)


def open_positions(module: Module, key: str) -> frozenset[int]:
    """The arguments (`arg_attrs`) or results (`res_attrs`) that Shardy may split further than the module says."""
    functions = [op for op in module.mlir.body.operations if op.operation.name == "func.func"]
    mains = [f for f in functions if f.attributes["sym_name"].value == "main"] or [
        f for f in functions if "sym_visibility" not in f.attributes
    ]
    if not mains or key not in mains[0].attributes:
        return frozenset()
    given = enumerate(mains[0].attributes[key])
    return frozenset(n for n, each in given if "sdy.sharding" in each and _OPEN.search(str(each["sdy.sharding"])))


def _choose(
    what: str,
    signature: tuple[Sequence[str], Sequence[TensorType], Sequence[TensorType]],
    shardings: tuple[Sequence[Sharding | None], ...],
    open_: Collection[int],
    unplaced: Collection[int],
) -> _Choice:
    names, wholes, parts = signature
    if len(names) != len(parts):
        raise other_count(what, len(names), len(parts))
    for each in shardings:
        if len(each) != len(names):
            raise other_count(what, len(names), len(each))
    choice = _Choice()
    for n, (name, whole, part) in enumerate(zip(names, wholes, parts, strict=True)):
        stated, made, own = (each[n] for each in shardings)
        if n in unplaced:
            choice.shardings.append(None)
            continue
        if stated is not None and n in open_ and made is not None and refines(made, stated):
            stated = stated if made.tiles == stated.tiles else None
        elif stated is not None and _lies_otherwise(stated, whole, part, own):
            does = "takes" if what == "argument" else "returns"
            where = f"{part}" if own is None else lies(own, whole.shape)
            choice.missed[n] = (
                f"the module states that {what} {name} lies {lies(stated, whole.shape)}; XLA {does} it as {where}"
            )
            stated = None
        if stated is None and made is not None and n not in choice.missed:
            choice.left.setdefault(lies(made, whole.shape), []).append(name)
        choice.shardings.append(stated or made)
    return choice


def _lies_otherwise(sharding: Sharding, whole: TensorType, part: TensorType, own: Sharding | None) -> bool:
    """Whether a device's part of a tensor is not of the shape that a placement makes, or said to be another one."""
    other_shape = len(sharding.tiles) != part.rank or shard_shape(whole.shape, sharding) != part.shape
    return other_shape or (own is not None and not same(sharding, own))


def refines(finer: Sharding, coarser: Sharding) -> bool:
    """Whether a placement splits further what another one splits: every device's shard is within the coarser one."""
    if not (finer.is_plain and coarser.is_plain) or finer.devices != coarser.devices:
        return False
    for k, (many, few) in enumerate(zip(finer.tiles, coarser.tiles, strict=True)):
        if many % few or not np.array_equal(finer.coordinates[:, k] // (many // few), coarser.coordinates[:, k]):
            return False
    return True


def _left(what: str, does: str, choice: _Choice) -> list[str]:
    return [
        f"{what}{'s' if len(names) > 1 else ''} {', '.join(names)}, which XLA {does}: {where}"
        for where, names in choice.left.items()
    ]
