"""Two modules as a pair: how many devices, what their arguments and results have to do with one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.ir import Module, operations
from hlo_verify.program.op_families import REGION
from hlo_verify.program.sharding import Sharding, replicated, same


def is_global(module: Module) -> bool:
    """Whether a module is itself global, its devices' work done in manual regions (a lowered shard_map): by themselves,
    in loops or in branches."""
    return any(op.name == REGION for op in operations(module.main))


def has_loops_by_hand(module: Module) -> bool:
    """Whether a person says in a module what each device does, and there may be loops in that: in manual regions, or
    where XLA has flattened these. All other loops of what a compiler partitioned are as it was given them, or rings
    that it made of products."""
    return is_global(module) or any(
        op.name == "while" and "manual" in str(op.attributes.get("sharding", "")) for op in operations(module.main)
    )


def other_count(what: str, logical: int, partitioned: int) -> InputError:
    """That the modules differ in how many arguments or results they have."""
    return InputError(
        f"the logical module has {logical} {what}s and the partitioned one {partitioned}: they are not a pair",
        Input.NOT_A_PAIR,
    )


def device_count(logical: Module, partitioned: Module) -> int:
    """The number of devices that both modules agree on."""
    partitions = partitioned.partitions or logical.partitions
    if partitions is None:
        raise InputError("neither module says for how many partitions it is; give --devices N", Input.DEVICES_UNKNOWN)
    devices = partitions * partitioned.replicas
    elsewhere = (logical.partitions or 1) * logical.replicas
    if elsewhere not in (1, devices):
        raise InputError(
            f"the logical module is for {elsewhere} devices and the partitioned one for {devices}: they are not a pair",
            Input.NOT_A_PAIR,
        )
    return devices


def argument_shardings(logical: Module, partitioned: Module) -> list[Sharding]:
    """How the partitioned module's arguments make up the logical ones."""
    return _shardings("argument", logical, partitioned)


def result_placements(logical: Module, partitioned: Module, devices: int) -> list[Sharding]:
    """How the partitioned module's results make up the logical ones."""
    if len(logical.main.results) != len(partitioned.main.results):
        raise other_count("result", len(logical.main.results), len(partitioned.main.results))
    if is_global(partitioned):
        check_agreement(logical, partitioned)
        every = {type_.rank: replicated(type_.rank, devices) for type_ in partitioned.result_types}
        return [every[type_.rank] for type_ in partitioned.result_types]
    return _shardings("result", logical, partitioned)


def check_placed(logical: Module, partitioned: Module) -> None:
    """Raise `InputError` for an argument or result that is annotated, but not placed by its annotation."""
    for what in ("argument", "result"):
        unplaced = _unplaced(what, logical, partitioned)
        for n, (name, one, other) in enumerate(zip(*_stated(what, logical, partitioned), strict=False)):
            if n in unplaced and one is None and (other is None or _is_logical(unplaced[n], what, n, logical)):
                raise _no_place(what, name, unplaced[n])


def _is_logical(text: str, what: str, n: int, logical: Module) -> bool:
    """Whether it is the logical module that says so of a tensor, and says something."""
    return logical.unplaced.get((what, n)) == text and "unknown" not in text


def _unplaced(what: str, logical: Module, partitioned: Module) -> dict[int, str]:
    """Annotations of arguments or results that do not place them, the logical module's before the other's."""
    both = {**partitioned.unplaced, **logical.unplaced}
    return {n: text for (which, n), text in both.items() if which == what}


def _no_place(what: str, name: str, text: str) -> InputError:
    return InputError(
        f"{what} {name} is annotated with {text}, which does not say which of its elements a device holds; "
        "say it with --shardings",
        Annotation.PLACES_NOTHING,
    )


def check_agreement(logical: Module, partitioned: Module) -> None:
    """Raise `InputError` where both modules say of an argument or result how it lies, and say different things."""
    for what in ("argument", "result"):
        _check_agreement(what, logical, partitioned)


def _check_agreement(what: str, logical: Module, partitioned: Module) -> None:
    agree: dict[tuple[Sharding, Sharding], bool] = {}  # few of them are objects of their own
    for name, one, other in zip(*_stated(what, logical, partitioned), strict=False):
        if one is None or other is None:
            continue
        if (one, other) not in agree:
            agree[one, other] = same(one, other)
        if not agree[one, other]:
            raise InputError(
                f"{what} {name}: the logical module (or --shardings) and the partitioned module place it differently; "
                "check that they are a pair, and leave out the annotation that is wrong",
                Annotation.CONTRADICTION,
            )


Shardings = Sequence[Sharding | None]


def _stated(what: str, logical: Module, partitioned: Module) -> tuple[Sequence[str], Shardings, Shardings]:
    """The names of the arguments or of the results, and the shardings that each module says they have."""
    if what == "argument":
        return logical.argument_names, logical.argument_shardings, partitioned.argument_shardings
    return logical.result_names, logical.result_shardings, partitioned.result_shardings


def _shardings(what: str, logical: Module, partitioned: Module) -> list[Sharding]:
    """Each sharding, from the module that has one. Raises `InputError` where none has, or they differ."""
    stated = names, _, others = _stated(what, logical, partitioned)
    if len(names) != len(others):
        raise other_count(what, len(names), len(others))
    _check_agreement(what, logical, partitioned)
    unplaced = _unplaced(what, logical, partitioned)
    shardings = []
    for n, (name, one, other) in enumerate(zip(*stated, strict=True)):
        sharding = one or other
        if sharding is None and n in unplaced:
            raise _no_place(what, name, unplaced[n])
        if sharding is None:
            raise InputError(
                f"{what} {name} has no sharding in either module; give one with --shardings", Annotation.NO_SHARDING
            )
        shardings.append(sharding)
    return shardings


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Both modules, and how the devices' arguments and results make up the logical ones."""

    logical: Module
    partitioned: Module
    devices: int
    arguments: tuple[Sharding, ...] | None
    """None for a partitioned module that is global: it takes the whole arguments."""
    results: tuple[Sharding, ...]


def pair_of(logical: Module, partitioned: Module) -> Pair:
    """The pair. Raises `InputError` where the modules are none."""
    devices = device_count(logical, partitioned)
    arguments = None if is_global(partitioned) else tuple(argument_shardings(logical, partitioned))
    return Pair(logical, partitioned, devices, arguments, tuple(result_placements(logical, partitioned, devices)))
