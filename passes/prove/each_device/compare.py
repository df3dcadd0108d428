"""Prove results of a pair for every device by itself, where the walk for all devices at once leaves them open.

Both modules are walked again by `machine`, on the way past the cut points that are guessed. What a device holds of a
result has to be its shard of the logical result: each `comparison` is about one device.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from hlo_verify.index import expr
from hlo_verify.index.expr import Index, Var
from hlo_verify.index.interned import made
from hlo_verify.index.tables import asks_table
from hlo_verify.ops.values import Context, Value
from hlo_verify.passes.prove.cut_points import ONE_OF, Guesses, on_each_device
from hlo_verify.passes.prove.each_device import communication, control, manual
from hlo_verify.passes.prove.each_device.comparison import Allowed, Comparison
from hlo_verify.passes.prove.each_device.machine import Machine, TooMuchError, Values
from hlo_verify.passes.prove.interpret import run
from hlo_verify.passes.prove.lineage import lineage
from hlo_verify.passes.prove.reports import may_hang
from hlo_verify.passes.prove.stand_ins import StandIns
from hlo_verify.passes.prove.start import begin
from hlo_verify.program.ir import Function, Module, operations
from hlo_verify.program.op_families import BORDERS
from hlo_verify.program.pair import device_count, is_global, result_placements
from hlo_verify.program.sharding import Sharding
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.term import ONE, Poly, atoms, indices

HANDLERS = {**communication.HANDLERS, **control.HANDLERS, **manual.HANDLERS}


Obligation = tuple[Value, Poly, Poly]
"""What a device holds, what that should be, and where there is an element of it."""


@dataclass(frozen=True, slots=True, eq=False)
class EachDevice:
    """Both modules' results on every device."""

    device: Var
    arguments: list[Value]
    """The logical module's."""
    wanted: list[Values]
    found: list[Values]
    placed: list[Sharding]
    comparison: Comparison
    stand_ins: StandIns
    """What stands for values of the logical module in the terms of both."""

    def proves(self, n: int, *, briefly: bool = False) -> bool:
        """Whether every device holds its shard of the n-th result; `briefly`, whether that is seen at once."""
        open_, comparison = self._open(n), self.comparison
        if open_ is None:
            return False
        if not briefly and comparison.are_equal_by_element(open_):
            return True
        return all(self._are_equal(*each, briefly) for each in open_)

    def _are_equal(self, value: Value, expected: Poly, inside: Poly, briefly: bool) -> bool:
        views = self.stand_ins.views(value.term, expected)
        return any(self.comparison.are_equal(Value(value.type, p), q, inside, briefly=briefly) for p, q in views)

    def _open(self, n: int) -> list[Obligation] | None:
        """What is to be shown of the n-th result, and not seen at once; None where it cannot be said."""
        sharding, wanted, found = self.placed[n], self.wanted[n], self.found[n]
        where = lineage(wanted[0].shape, sharding, self.device) if sharding.is_plain else None
        if where is None or where.shape != found[0].shape:
            return None
        open_: dict[tuple[int, int, int], Obligation] = {}
        for k, value in enumerate(found):
            here: dict[Var, Index] = {self.device: expr.constant(k)}
            places = [expr.substitute(e, here) for e in where.indices]
            inside = algebra.substitute(where.inside, here)
            expected = wanted[k].at(places)
            if value.term is not expected:
                open_[value.term.uid, expected.uid, inside.uid] = value, expected, inside
        for value in wanted[1:]:  # the logical module has one result, and not another one on each device
            if value.term is not wanted[0].term:
                open_[value.term.uid, wanted[0].term.uid, ONE.uid] = value, wanted[0].term, ONE
        return list(open_.values())


def reads_table(p: Poly) -> bool:
    """Whether a term reads something at an entry of a table that is asked at a place."""
    return any(asks_table(e) for atom in atoms(p) for e in indices(atom))


def each_device(
    logical: Module,
    partitioned: Module,
    session: Session,
    guesses: Guesses | None = None,
    most: int | None = None,
) -> EachDevice | None:
    """Both modules on every device, with cut points where values are guessed to be shards; None where that is not
    understood, or takes too much: more operations than the limit, or than `most`.

    Raises `InputError` where the modules are no pair, and `TimeUpError` where the session's time is up.
    """
    devices = device_count(logical, partitioned)
    if devices > session.limits.devices_apart:
        session.reached("devices_apart")
        return None
    if any(_is_flattened(module) for module in (logical, partitioned)):
        return None
    placed = result_placements(logical, partitioned, devices)
    both = begin(logical, partitioned, run, session)
    machine = Machine(both.device, HANDLERS, session.limits.operations_apart if most is None else most)
    by_hand = is_by_hand(partitioned)
    is_equal = partial(_is_equal, devices, session, by_hand)
    cuts = on_each_device(guesses or {}, devices, session, is_equal)
    try:
        machine.observe = cuts.note
        wanted = _run(machine, logical.main, both.wholes, both.plain)
        machine.observe = cuts.replaced
        found = _run(machine, partitioned.main, both.shards, both.local)
    except TooMuchError:
        if most is None:
            session.reached("operations_apart")
        return None
    if may_hang(both.unsupported) is not None:
        return None
    comparison = Comparison(devices, Allowed.of(session), by_hand)
    return EachDevice(both.device, both.wholes, wanted, found, placed, comparison, cuts.stand_ins)


def _is_equal(devices: int, session: Session, by_hand: bool, value: Value, expected: Poly) -> bool:
    """Whether what a device holds is seen to be a term, with little effort."""
    until = made() + session.limits.vain_guesses / ONE_OF
    return Comparison(devices, Allowed.briefly(session), by_hand, until).are_equal(value, expected, ONE)


def _run(machine: Machine, function: Function, arguments: Collection[Value], context: Context) -> list[Values]:
    return machine.run(function, [machine.everywhere(value) for value in arguments], context)


def is_by_hand(partitioned: Module) -> bool:
    """Whether a person says in a module what each device does. What a compiler partitioned follows the logical module,
    and the walk for all devices is made for that; where it is wrong, terms of many devices take long."""
    return is_global(partitioned)


def is_small(logical: Module, partitioned: Module, session: Session) -> bool:
    """Whether so little is done by so few devices that it is looked at device by device whoever partitioned it: shards
    of different sizes and windows that cross them are put together by tables of the device."""
    devices = device_count(logical, partitioned)
    size = devices * sum(1 for module in (logical, partitioned) for _ in operations(module.main))
    if size > session.limits.small_operations_apart:
        session.reached("small_operations_apart")
        return False
    return True


def _is_flattened(module: Module) -> bool:
    """Whether a module holds manual regions that XLA has flattened: what is inside is not told apart here."""
    return any(
        op.attributes.get("call_target_name") in BORDERS
        or ("manual" in str(op.attributes.get("sharding", "")) and op.name != "sdy.manual_computation")
        for op in operations(module.main)
    )
