"""What walking over both modules of a pair starts from: their arguments as terms, and what surrounds their operations.

Every walk starts the same way, the prover's over all operations or over each layer once, and that of the re-check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hlo_verify.diagnostics import Diagnostic, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.equality import attainment, block_by_block, turn_by_turn, without_names
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.ops.indexing import claims_of
from hlo_verify.ops.induction import LoopBook, Reading
from hlo_verify.ops.lines import Piped
from hlo_verify.ops.values import Context, Value
from hlo_verify.passes.prove.complements import complements
from hlo_verify.passes.prove.cut_points import Guesses
from hlo_verify.passes.prove.lineage import Argument, argument, local_argument, placements, same_elements
from hlo_verify.passes.prove.parts_of_values import Parts, parts_of
from hlo_verify.passes.prove.stages import Stages
from hlo_verify.program.ir import Function, Module, operations
from hlo_verify.program.pair import argument_shardings, device_count, is_global, other_count
from hlo_verify.program.preconditions import assumed
from hlo_verify.program.sharding import Sharding
from hlo_verify.session import Session
from hlo_verify.terms import at_constants, in_ranges, neighbours, nesting

_LATER = at_constants, attainment, block_by_block, in_ranges, neighbours, nesting, turn_by_turn, without_names
"""What a proof device by device keeps: known when a session starts, so that it belongs to one."""

Run = Callable[[Function, Sequence[Value], Context], list[Value]]
"""Interprets a function or region."""


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """The start of a walk over both modules of a pair."""

    device: Var
    arguments: tuple[Argument, ...]
    wholes: list[Value]
    """The arguments of the logical module."""
    shards: list[Value]
    """Those of the partitioned one: what a device holds, or the wholes for a module that is global itself."""
    mentioned: list[Sharding]
    """The shardings that arguments and results have."""
    plain: Context
    """What surrounds the logical module's operations."""
    local: Context
    """What surrounds the partitioned module's."""
    parts: Parts
    """The values of either that devices combine next."""

    @property
    def unsupported(self) -> tuple[Diagnostic, ...]:
        """What was not understood so far, in either module."""
        return tuple({**self.plain.unsupported, **self.local.unsupported}.values())

    @property
    def piped(self) -> list[Piped]:
        """What is known of pipelines; of those that are found later as well."""
        return self.plain.loops.piped if isinstance(self.plain.loops, LoopBook) else []

    def watched(
        self, decide: bool, progress: Callable[[int], None] | None = None, guesses: Guesses | None = None
    ) -> Stages:
        """Stages that see every operation of the walk."""
        stages = Stages(
            self.device,
            decide,
            progress,
            session=self.plain.session,
            arguments=self.wholes,
            placements=self.mentioned,
            piped=self.piped,
            parts=self.parts,
            guesses=guesses or {},
        )
        self.plain.observe = stages.record_logical
        self.local.observe = stages.record_partitioned
        return stages


def begin(
    logical: Module,
    partitioned: Module,
    run: Run,
    session: Session | None = None,
    reading: Reading = Reading.NAMED,
) -> Walk:
    """The start of a walk in which `run` interprets regions. Raises `InputError` where the modules are no pair."""
    session = session or Session()
    devices = device_count(logical, partitioned)
    device = expr.var("d", "", devices)
    arguments = _arguments(logical, partitioned, devices)
    shards = _shards(logical, partitioned, arguments, device)
    every = (logical.argument_shardings, partitioned.argument_shardings, logical.result_shardings)
    mentioned = [sharding for each in every for sharding in each if sharding is not None]
    borders = [*_borders(logical), *_borders(partitioned)]
    place, by_hand = placements(device, [*mentioned, *borders]), is_global(partitioned)
    loops = LoopBook(place, session, reading, _hands_on(partitioned), by_hand)
    replicas = partitioned.replicas
    here, mesh = (None, device) if is_global(partitioned) else (device, None)
    return Walk(
        device,
        tuple(arguments),
        [argument.whole for argument in arguments],
        shards,
        mentioned,
        Context(None, 1, 1, run, loops=loops, mesh=device, session=session),
        Context(
            here,
            devices // replicas,
            replicas,
            run,
            side="partitioned",
            loops=loops,
            mesh=mesh,
            session=session,
            claims=claims_of(logical),
        ),
        parts_of(logical, partitioned),
    )


def _hands_on(module: Module) -> bool:
    loops = (op for op in operations(module.main) if op.name == "while")
    return any(op.name == "collective_permute" for loop in loops for op in operations(loop.regions[1]))


def _borders(module: Module) -> list[Sharding]:
    """The shardings at the borders of a module's manual regions."""
    regions = (op for op in operations(module.main) if op.name == "sdy.manual_computation")
    sides = (op.attributes[side] for op in regions for side in ("in_shardings", "out_shardings"))
    return [sharding for side in sides for sharding in side if sharding is not None]


def _arguments(logical: Module, partitioned: Module, devices: int) -> list[Argument]:
    """What both modules' terms are about."""
    names, types = logical.argument_names, logical.main.argument_types
    if len(names) != len(partitioned.argument_names):
        raise other_count("argument", len(names), len(partitioned.argument_names))
    if is_global(partitioned):
        shardings: Sequence[Sharding | None] = [None] * len(names)
    else:
        shardings = argument_shardings(logical, partitioned)
    turned = complements(logical, partitioned)
    each = zip(names, types, shardings, assumed(logical), strict=True)
    return [
        argument(name, type_, sharding, devices, values, k in turned)
        for k, (name, type_, sharding, values) in enumerate(each)
    ]


def _shards(logical: Module, partitioned: Module, arguments: list[Argument], device: Var) -> list[Value]:
    """What a device holds of the arguments; all of them, where the module is global itself."""
    if is_global(partitioned):
        return _same(arguments, partitioned)
    shardings = argument_shardings(logical, partitioned)
    types = partitioned.main.argument_types
    return [local_argument(*each, device) for each in zip(arguments, shardings, types, strict=True)]


def _same(arguments: list[Argument], partitioned: Module) -> list[Value]:
    for given, type_ in zip(arguments, partitioned.main.argument_types, strict=True):
        if given.type.shape != type_.shape or not same_elements(given.type.dtype, type_.dtype):
            raise InputError(
                f"argument {given.name} is {given.type} in the logical module and {type_} "
                "in the other, which is global (its work is done in manual regions): they are not a pair",
                Input.NOT_A_PAIR,
            )
    return [given.whole for given in arguments]
