"""Where the author of a program for each device went wrong, given the operation at which a meaning is lost.

Such a program computes things on its way that are no shard of anything, and its collectives make them one: so what
is lost first is often right, and what should have given it a meaning is not. The line is the innermost one that the
logical module has not run too: what both call is right in one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hlo_verify.diagnostics import Mismatch
from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ir import Location, Op
from hlo_verify.ir import Value as Name
from hlo_verify.passes.contents import indices, is_computed
from hlo_verify.passes.fault import MOVES, REDUCTIONS, Fault
from hlo_verify.passes.flow import Flow
from hlo_verify.passes.kinds import SCALES
from hlo_verify.passes.lost import Values
from hlo_verify.terms import algebra
from hlo_verify.terms.algebra import INTEGER_RANGES

COLLECTIVES = REDUCTIONS | {"all_gather", "all_to_all", "collective_permute", "collective_broadcast"}
"""Operations that communicate."""

SUMS = frozenset({"add", "subtract", "convert", "reshape", "broadcast_in_dim"})
"""Operations that a sum over devices may be taken after as well as before."""

LOOKUPS = frozenset({"gather", "dynamic_slice"})
"""Operations that read where computed indices say."""

SLICES = frozenset({"slice", "dynamic_slice"})
"""Operations that take a part."""

DEEP = 12
"""How many operations back two values are compared."""


@dataclass(slots=True)
class ByHand:
    """Aims faults in a program that was written for each device."""

    values: Values
    _shared: set[tuple[str, int]] = field(init=False)

    def __post_init__(self) -> None:
        ops = (step.op for step in self.values.stages.logical)
        self._shared = {frame for op in ops for frame in op.location.frames}
        for step in self.values.stages.partitioned:  # what calls the program is no part of it
            if step.op.name == "sdy.manual_computation":
                self._shared.update(step.op.location.frames)

    def aim(self, fault: Fault, lost: list[Name], logical: Name) -> Fault:
        """The fault to report, for one found among lost values; `logical` is what the last of them should be."""
        rules = (
            self._miscounted,
            self._chosen,
            self._other_scale,
            self._summed_after,
            self._scattered,
            self._left_unreduced,
            self._other_constant,
            self._unexplained,
            self._moved,
        )
        found = self._exchanged(fault, lost, logical)
        for rule in rules:
            found = found or rule(fault, lost)
        found = found or self._constant_instead(lost, logical) or self._other_offset(fault, lost)
        return self._at_own_line(self._inside(found))

    # Rules: each says of a fault where it rather is

    def _other_scale(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """Only a factor is lost in the end, and another than first: the last constant that scales is wrong.

        The mean over a shard is off by the number of shards, and right if what follows makes up for that.
        """
        factor, first = self._factor(lost[-1]), self._factor(fault.name)
        if factor in (None, 1) or factor == first:
            return None
        for name in reversed(lost):
            if self._factor(name) != factor:
                return None
            op = self.values.flow.op(name)
            if op.name in SCALES and any(self._is_constant(operand) for operand in op.operands):
                return Fault(name, self.values.flow.line(name), kind=Mismatch.WRONG_FACTOR)
        return None

    def _chosen(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """A device chooses among values by its number, or elements are chosen by a mask that is computed."""
        flow = self.values.flow
        op = flow.op(fault.name)
        if op.name != "select" or fault.partial is not None or fault.offset is not None:
            return None
        by = flow.origin(op.operands[0])
        if by not in flow or not self._depends(by):
            return None
        if not is_computed(flow.value(fault.name).term):
            users = self._users(fault.name)
            scales = bool(users) and all(flow.op(user).name in SCALES for user in users)
            return replace(fault, kind=Mismatch.WRONG_FACTOR if scales else Mismatch.DIFFERS, why=NUMBERS)
        if is_computed(flow.value(by).term):
            return replace(fault, kind=Mismatch.WRONG_PLACE)
        free = {v for e in indices(flow.value(by).term) for atom, _ in e.items for v in atom.free}
        explained = next(self.values.candidates(fault.name, flow.value(fault.name)), None) is not None
        return replace(fault, kind=Mismatch.WRONG_VALUE) if explained and free == {self.values.stages.device} else None

    def _miscounted(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """Elements are looked up or masked by an offset that the device computes, and at which no shard starts."""
        flow = self.values.flow
        if fault.partial is not None or flow.op(fault.name).name not in LOOKUPS | {"select"}:
            return None

        def is_number(at: Name) -> bool:
            return flow.value(at).type.dtype in INTEGER_RANGES

        def is_odd(at: Name) -> bool:
            return flow.value(at).type.dtype != "i1" and self._depends(at) and not self._is_start(at)

        used = {at for at in flow.back(fault.name, lambda at: at == fault.name or is_number(at)) if is_number(at)}
        numbers = [at for at in used if flow.value(at).shape == ()]
        if any(flow.value(at).term.free - {self.values.stages.device} for at in numbers):
            return None  # it takes a turn of a loop too
        users = {fault.name, *used}.difference(numbers)
        offsets = [at for at in numbers if any(at in flow.sources(user) for user in users)]
        first = min(filter(is_odd, offsets), key=flow.order, default=None)
        if first is None:
            return None
        return replace(fault, location=flow.line(first), offset=self._index(first))

    def _scattered(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """A sum that is completed later, and lies elsewhere then: it was scattered in another order."""
        flow = self.values.flow
        if fault.partial is None or flow.op(fault.name).name != "reduce_scatter":
            return None
        for name in lost:
            value = flow.value(name)
            later = name != fault.name and flow.op(name).name in REDUCTIONS
            if later and any(whole.term.skey == value.term.skey for _, whole in self.values.shards.alike(value)):
                return replace(fault, kind=Mismatch.WRONG_PLACE, why=ORDER)
        return None

    def _summed_after(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """A partial value that something complete is added to before the collective: that is summed once too often."""
        flow = self.values.flow
        if fault.partial is None or flow.op(fault.name).name in REDUCTIONS:
            return None
        at, mixed = fault.name, False
        while True:
            user = next((user for user in lost if at in flow.sources(user)), None)
            if user is None:
                return None
            op = flow.op(user)
            if op.name in REDUCTIONS:
                return Fault(user, flow.line(user), kind=Mismatch.REDUCED_TWICE, why=TWICE) if mixed else None
            if op.name not in SUMS:
                return None
            mixed = mixed or any(map(self._is_complete, op.operands))
            at = user

    def _left_unreduced(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """Of a sum that devices are to agree on, an addend that was reduced and one that was not, which is wrong."""
        flow = self.values.flow
        at = self._bare(flow, lost[-1])
        for _ in range(DEEP):
            if at not in flow or flow.op(at).name not in SUMS | SCALES:
                return None
            own = [x for x in map(flow.origin, flow.op(at).operands) if x in flow and not self._is_constant(x)]
            open_ = [x for x in own if self._depends(x)]
            if len(open_) != 1:
                return None
            at = open_[0]
            if len(own) == 2:
                other = self._bare(flow, next(x for x in own if x != at))
                if flow.op(other).name == "all_reduce":
                    return Fault(at, flow.line(at), kind=Mismatch.NEVER_REDUCED, why=UNREDUCED)
        return None

    def _other_constant(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """A factor is wrong where a value with a meaning is multiplied by a constant: where that was computed."""
        flow = self.values.flow
        op = flow.op(fault.name)
        if op.name not in SCALES or self._factor(fault.name) in (None, 1):
            return None
        constants = [name for name in map(flow.origin, op.operands) if self._is_constant(name)]
        if len(constants) != 1 or len(op.operands) != 2:
            return None
        line = flow.line(constants[0])
        return replace(fault, location=line) if line.frames else None

    def _unexplained(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """What is like no logical value may be on its way to be one: the first collective, if it does not make it one.

        So is a partial value that is gathered or sent.
        """
        flow = self.values.flow
        if fault.offset is not None or fault.missing is not None or flow.op(fault.name).name in COLLECTIVES:
            return None
        if fault.partial is None and flow.op(fault.name).name in ("reduce", "dot_general"):
            return None  # a right one would be a part of a sum
        if fault.partial is None and any(map(self._is_wrong_sum, self.values.lost_before(fault.name))):
            return None
        term = flow.value(fault.name).term
        explained = not is_computed(term) or next(self.values.candidates(fault.name, flow.value(fault.name)), None)
        if fault.partial is None and explained:
            return None
        after, gathered = {fault.name}, False
        for name in lost:
            if after.isdisjoint(flow.sources(name)):
                continue
            after.add(name)
            op = flow.op(name)
            if op.name in COLLECTIVES and op.regions == () and fault.partial is not None:
                return replace(fault, name=name, location=flow.line(name))
            if fault.partial is not None and op.name not in MOVES:
                return None
            gathered |= op.name == "all_gather"  # that alone puts nothing in a wrong place
            if op.name in COLLECTIVES and op.name != "all_gather":
                return Fault(name, flow.line(name), kind=_kind(op))
            if gathered and op.name in SLICES:
                return Fault(name, flow.line(name), kind=Mismatch.WRONG_PLACE)
        return None

    def _is_wrong_sum(self, name: Name) -> bool:
        """Whether a value is summed up to no part of a logical one, as a right sum is."""
        flow = self.values.flow
        op = flow.op(name)
        is_sum = op.name == "dot_general" or (op.name == "reduce" and {o.name for o in op.regions[0].ops} == {"add"})
        return is_sum and self.values.shards.open_sum(flow.value(name)) is None

    def _moved(self, fault: Fault, lost: list[Name]) -> Fault | None:
        """Only the shape is other than that of what a collective moved: it moved it elsewhere."""
        flow = self.values.flow
        if flow.op(fault.name).name not in MOVES or fault.partial is not None:
            return None
        at = fault.name
        while flow.op(at).name in MOVES and flow.sources(at):
            at = flow.sources(at)[0]
        op = flow.op(at)
        if op.name in COLLECTIVES - REDUCTIONS:
            return replace(fault, location=flow.line(at), kind=_kind(op))
        return None

    def _other_offset(self, fault: Fault, lost: list[Name]) -> Fault:
        """Where an index comes in that is some shards off; else the line that uses what was looked up."""
        flow = self.values.flow
        if flow.op(fault.name).name not in LOOKUPS or fault.partial is not None:
            return fault
        inside = [at for at in flow.back(fault.name) if flow.value(at).type.dtype in INTEGER_RANGES]
        odd = [at for at in inside if _is_shards_off(self.values, at)]
        if odd:
            return replace(fault, location=flow.line(min(odd, key=flow.order)), kind=Mismatch.WRONG_PLACE)
        user = next((user for user in lost if fault.name in flow.sources(user)), None)
        if user is None or flow.op(user).name not in COLLECTIVES:
            return fault
        return replace(fault, location=_common(flow.line(fault.name), flow.line(user)), kind=Mismatch.WRONG_PLACE)

    def _constant_instead(self, lost: list[Name], logical: Name) -> Fault | None:
        """A constant where the logical module computes something, both results being computed alike but for it."""
        flow, whole = self.values.flow, self.values.logical
        mine, theirs = self._bare(flow, lost[-1]), self._bare(whole, logical)
        for _ in range(DEEP):
            if mine not in flow or theirs not in whole or flow.op(mine).name != whole.op(theirs).name:
                return None
            pairs = list(zip(flow.op(mine).operands, whole.op(theirs).operands, strict=False))
            bare = [(self._bare(flow, x), self._bare(whole, y)) for x, y in pairs]
            apart = [(x, y) for x, y in bare if not self._agree(x, y)]
            if len(apart) != 1:
                return None
            (mine, theirs), given = apart[0], bare
            constant = mine in flow and flow.value(mine).term.constant
            if constant is not None and constant is not False and theirs in whole:
                if whole.value(theirs).term.constant is not None:
                    return None
                outer = next(x for (x, _), (y, _) in zip(pairs, given, strict=True) if y == mine)
                why = f"a constant where {whole.op(theirs).name} ({whole.op(theirs).location}) is expected"
                return Fault(flow.origin(outer), flow.line(flow.origin(outer)), kind=Mismatch.WRONG_VALUE, why=why)
        return None

    def _exchanged(self, fault: Fault, lost: list[Name], logical: Name) -> Fault | None:
        """An operation of two operands that has the right ones in another order, going back from both results alike."""
        flow, whole = self.values.flow, self.values.logical
        if fault.partial is not None or fault.offset is not None:
            return None
        mine, theirs = self._computed(lost[-1]), self._bare(whole, logical)
        for _ in range(DEEP):
            if mine not in flow or theirs not in whole or flow.op(mine).name != whole.op(theirs).name:
                return None
            own = list(map(flow.origin, flow.op(mine).operands))
            others = list(map(whole.origin, whole.op(theirs).operands))
            apart = [(x, y) for x, y in zip(own, others, strict=False) if not self._agree(x, y)]
            if len(apart) == len(own) == len(others) == 2 and all(map(self._agree, own, reversed(others))):
                return Fault(mine, flow.line(mine), kind=Mismatch.WRONG_VALUE, why=EXCHANGED)
            if len(apart) != 1:
                return None
            mine, theirs = self._computed(apart[0][0]), self._bare(whole, apart[0][1])
        return None

    def _computed(self, name: Name) -> Name:
        """The value, but for shape, order, the region that it comes from, and communication."""
        flow = self.values.flow
        name = self._bare(flow, name)
        while name in flow and flow.op(name).name in COLLECTIVES and flow.sources(name):
            name = self._bare(flow, flow.sources(name)[0])
        return name

    # Lines

    def _inside(self, fault: Fault) -> Fault:
        """A result of the whole program is at fault: where it was computed."""
        flow, at = self.values.flow, fault.name
        while flow.op(at).name == "sdy.manual_computation" and flow.sources(at):
            at = flow.sources(at)[0]
        return fault if at == fault.name else replace(fault, location=flow.line(at))

    def _at_own_line(self, fault: Fault) -> Fault:
        """The innermost frame that the logical module does not run too, where there is one."""
        frames = fault.location.frames
        own = [n for n, frame in enumerate(frames) if frame not in self._shared]
        if not own or own[0] == 0:
            return fault
        return replace(fault, location=Location(fault.location.name, frames[own[0] :]))

    # Values

    def _factor(self, name: Name) -> object:
        match = self.values.shards.match(self.values.flow.value(name)) if name in self.values.flow else None
        return None if match is None else match.factor

    def _is_constant(self, name: Name) -> bool:
        flow = self.values.flow
        name = flow.origin(name)
        return name in flow and flow.value(name).term.constant is not None

    def _users(self, name: Name) -> list[Name]:
        """The values that are computed from one, but for other shapes and orders of it."""
        flow = self.values.flow
        found: list[Name] = []
        bare = {name}
        for at in (result for step in self.values.stages.partitioned for result in step.op.results):
            if at in flow and not bare.isdisjoint(flow.sources(at)):
                (bare.add if flow.op(at).name in MOVES else found.append)(at)
        return found

    def _depends(self, name: Name) -> bool:
        """Whether devices have different values."""
        device = self.values.stages.device
        return any(device in atom.free for e in indices(self.values.flow.value(name).term) for atom, _ in e.items)

    def _index(self, name: Name) -> Index:
        value = self.values.flow.value(name)
        return algebra.as_index(value.term, *INTEGER_RANGES[value.type.dtype])

    def _is_start(self, name: Name) -> bool:
        """Whether a scalar is where each device's shard starts, or as far before."""
        index = self._index(name)
        return any(self.values.shards.is_start(each) for each in (index, expr.scale(index, -1)))

    def _is_complete(self, name: Name) -> bool:
        flow = self.values.flow
        name = flow.origin(name)
        if name not in flow or self._is_constant(name):
            return False
        return not self.values.is_lost(name) or not self._depends(name)

    def _bare(self, flow: Flow, name: Name) -> Name:
        """The value, but for shape and order, and the region that it comes from."""
        name = flow.origin(name)
        while name in flow and flow.op(name).name in MOVES | {"sdy.manual_computation"} and flow.sources(name):
            name = flow.sources(name)[0]
        return name

    def _agree(self, mine: Name, theirs: Name) -> bool:
        """Whether a value is a shard of a logical one."""
        flow, whole = self.values.flow, self.values.logical
        if mine not in flow or theirs not in whole:
            return mine == theirs  # arguments have the first numbers of a module, in order
        term, value = whole.value(theirs).term, flow.value(mine)
        if term.constant is not None or value.term.constant is not None:
            return term is value.term
        match = self.values.shards.match(value)
        return match is not None and match.factor == 1 and match.whole.term is term


TWICE = "what is added to a part before it is summed over devices is summed too"

NUMBERS = "devices have different numbers here"

ORDER = "the sum is completed later, and its elements are on other devices then: it is scattered in another order"

EXCHANGED = "the operands are those of the logical operation, in another order"

UNREDUCED = "it is not summed over devices, and what it is added to is"


def _kind(op: Op) -> Mismatch:
    """What is wrong with a collective that gives a value no meaning."""
    if op.name == "collective_permute":
        return Mismatch.WRONG_DEVICES
    return Mismatch.REDUCED_TWICE if op.name in REDUCTIONS else Mismatch.WRONG_PLACE


def _common(inner: Location, outer: Location) -> Location:
    """Where the function that `outer` is in calls the one that `inner` is in."""
    frames, others = inner.frames, outer.frames
    shared = 0
    while shared < min(len(frames), len(others)) - 1 and frames[-1 - shared] == others[-1 - shared]:
        shared += 1
    return Location(inner.name, frames[len(frames) - 1 - shared :]) if frames else inner


def _is_shards_off(values: Values, name: Name) -> bool:
    """Whether an index starts some whole shards before or after the device's own."""
    device = values.stages.device

    term = values.flow.value(name).term
    by = next((c for mono, c in term.items if not mono), 0)
    sizes = [abs(c) for e in indices(term) for atom, c in e.items if device in atom.free]
    return bool(by) and any(size > 1 and by % size == 0 for size in sizes)
