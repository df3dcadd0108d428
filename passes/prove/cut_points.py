"""Cut points of a program that a person distributed: values that are shards of logical tensors, guessed and proved.

What a compiler partitioned follows the logical module, and says where its values lie. A person computes a value in
another way and says nothing: where it is only compared at the results, all that it is made of is written out in both.
So values are guessed to be shards (`passes.guess`). Each guess that is found to hold stands for the value from then on;
the others are forgotten. All devices are looked at at once, or each by itself.

    m = min(a[0] + b[0], a[1] + b[1], …)       s[i, j] = min k<8. d[i, k] + d[k, j]       m on device 1 = s[2 + i, j]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hlo_verify.equality import cases
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.networks import same_network
from hlo_verify.equality.summands import Steps
from hlo_verify.index import expr, tables
from hlo_verify.index.expr import Index, Var
from hlo_verify.index.interned import made as made_so_far
from hlo_verify.ops.values import Value, position
from hlo_verify.passes.prove.frontier import Frontier
from hlo_verify.passes.prove.stand_ins import StandIns
from hlo_verify.program.ir import Module, Name, operations
from hlo_verify.session import Session
from hlo_verify.terms.addition import scale
from hlo_verify.terms.doubts import is_defined_there
from hlo_verify.terms.term import ONE, Poly, reads

Made = tuple[Name, int]
"""A value by its name, and which one it is of those that are made by that name: a loop makes one in each turn."""

Order = tuple[int | None, ...]
"""For each dimension of a logical tensor, that of a block of it which runs along it; None for a single place."""

ONE_OF = 3
"""The part of the terms that may be made for guesses in vain after which one of them is given up."""

HASTE = 4
"""The part of what may be made in vain that may be made beyond what was of use."""


@dataclass(frozen=True, slots=True)
class Guess:
    """A value that seems to be a block of a logical tensor on every device, or the opposite of one."""

    whole: Made
    order: Order
    starts: tuple[tuple[int, ...], ...]
    """Where in the tensor the block of each device begins."""
    is_opposite: bool = False
    """Whether the value is the block's opposite."""

    def fits(self, shape: Sequence[int], whole: Sequence[int]) -> bool:
        """Whether a value of that shape can be a block of a tensor of that one."""
        along = [k for k in self.order if k is not None]
        if len(set(along)) < len(along) or {k for k, size in enumerate(shape) if size > 1} - set(along):
            return False
        if len(self.order) != len(whole) or not all(0 <= k < len(shape) for k in along):
            return False
        sizes = [1 if k is None else shape[k] for k in self.order]
        return all(
            len(start) == len(whole)
            and all(0 <= at <= full - size for at, size, full in zip(start, sizes, whole, strict=True))
            for start in self.starts
        )

    def indices(self, starts: Sequence[Index], shape: Sequence[int]) -> tuple[Index, ...]:
        """Where in the tensor the elements of a block are that begins there."""
        return tuple(
            start if k is None else expr.add(position(k, shape[k]), start)
            for k, start in zip(self.order, starts, strict=True)
        )


Guesses = Mapping[Made, Sequence[Guess]]
"""For values of the partitioned module, what they seem to be."""

Values = tuple[Value, ...]
"""What each device holds, or the one value of all devices."""

Place = Callable[[Guess, Values, Values], list[Poly] | None]
"""What values are if a guess holds that they are shards of those of a tensor; None where it cannot be said."""

AreEqual = Callable[[Value, Poly], bool]
"""Whether what a device holds is seen to be that term, with little effort."""


@dataclass(slots=True)
class CutPoints:
    """The guesses of a pair, and what is proved of them while its modules are walked, the logical one first."""

    guesses: Guesses
    session: Session
    devices: int
    place: Place
    are_equal: AreEqual
    stand_ins: StandIns = field(default_factory=StandIns)
    _worth: int = 0
    """Terms that were made for guesses that were proved."""
    _vain: int = 0
    """Terms that were made for others."""
    _wholes: dict[Made, Values] = field(default_factory=dict)
    _stands: dict[Made, Values] = field(default_factory=dict)
    """What stands for some of them."""
    _wanted: frozenset[Made] = frozenset()
    _refused: set[tuple[int, ...]] = field(default_factory=set)
    _frontier: Frontier = field(default_factory=Frontier)
    _logical: Counter[Name] = field(default_factory=Counter)
    _partitioned: Counter[Name] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._wanted = frozenset(guess.whole for each in self.guesses.values() for guess in each)

    def note(self, name: Name, values: Values) -> Values:
        """Keep a value of the logical module, if one is guessed to be a shard of it. What is to be computed with is
        returned: what stands for it, or the value."""
        made = name, self._logical[name]
        self._logical[name] += 1
        if made not in self._wanted:
            return values
        self._wholes[made] = values
        stand = self.stand_ins.of(values[0])
        if stand is None or any(value.term is not values[0].term for value in values):
            return values
        self._stands[made] = (stand,) * len(values)
        return self._stands[made]

    def replaced(self, name: Name, values: Values) -> Values:
        """What the devices hold of a value of the partitioned module: the shards that it was guessed to be, if that is
        proved."""
        made = name, self._partitioned[name]
        self._partitioned[name] += 1
        for guess in self.guesses.get(made, ()):
            shards, standing = (self._shards(guess, of, values) for of in (self._wholes, self._stands))
            if shards is not None and (self._are(values, standing) or self._holds(values, shards)):
                shards = standing or shards
                self._frontier.pass_by({read.tensor for p in shards for read in reads(p) if read.tensor.bodies})
                return tuple(Value(value.type, shard) for value, shard in zip(values, shards, strict=True))
        return values

    def note_all(self, names: Sequence[Name], values: list[Value]) -> list[Value]:
        """The same of the results of an operation, where all devices are looked at at once."""
        if not self._wanted:
            return values
        return [self.note(name, (value,))[0] for name, value in zip(names, values, strict=True)]

    def replaced_all(self, names: Sequence[Name], values: Sequence[Value]) -> list[Value]:
        """Likewise."""
        if not self.guesses:
            return list(values)
        return [self.replaced(name, (value,))[0] for name, value in zip(names, values, strict=True)]

    @staticmethod
    def _are(values: Values, shards: Sequence[Poly] | None) -> bool:
        return shards is not None and all(value.term is p for value, p in zip(values, shards, strict=True))

    def _shards(self, guess: Guess, wholes: Mapping[Made, Values], values: Values) -> list[Poly] | None:
        whole = wholes.get(guess.whole)
        if whole is None or whole[0].type.dtype != values[0].type.dtype or len(guess.starts) != self.devices:
            return None
        shards = self.place(guess, whole, values) if guess.fits(values[0].shape, whole[0].shape) else None
        return [scale(shard, -1) for shard in shards] if shards is not None and guess.is_opposite else shards

    def _holds(self, values: Values, shards: Sequence[Poly]) -> bool:
        """Whether what devices hold is found to be those shards.

        A result has to be the logical one only where that is a number. What takes the place of a value has to be it
        everywhere: of `isfinite(t) ? t : 0` and `isfinite(t) ? t : 7` either is t where t is a number, and yet they
        are not one another.
        """
        open_ = {
            (value.term.uid, shard.uid): (value, shard)
            for value, shard in zip(values, shards, strict=True)
            if value.term is not shard
        }
        key = tuple(uid for pair in open_ for uid in pair)
        if not open_ or key in self._refused or self._is_no_use:
            return not open_
        if not all(is_defined_there(shard) for _, shard in open_.values()):
            return False
        before = made_so_far()
        if all(self._is_shard(*pair) for pair in open_.values()):
            self._worth += made_so_far() - before
            return True
        self._refused.add(key)
        self._vain += made_so_far() - before
        if self._is_no_use:
            self.session.reached("vain_guesses")
        return False

    @property
    def _is_no_use(self) -> bool:
        """Whether guesses took more in vain than they are worth."""
        most = self.session.limits.vain_guesses
        return self._vain > min(most, self._worth + most // HASTE)

    def _is_shard(self, value: Value, shard: Poly) -> bool:
        """Whether what a device holds is found to be a shard: made as that is of what devices are known to hold, or of
        all that both are made of."""
        until = made_so_far() + self.session.limits.vain_guesses // ONE_OF
        for found, expected in self.stand_ins.views(value.term, shard):
            for p, q in filter(None, (self._frontier.both(found, expected), (found, expected))):
                if made_so_far() > until:
                    return False
                if self.are_equal(Value(value.type, p), q):
                    return True
        return False


def on_each_device(guesses: Guesses, devices: int, session: Session, are_equal: AreEqual) -> CutPoints:
    """Cut points of a walk in which every device is by itself."""

    def place(guess: Guess, whole: Values, values: Values) -> list[Poly]:
        return [
            whole[k].at(guess.indices(list(map(expr.constant, guess.starts[k])), value.shape))
            for k, value in enumerate(values)
        ]

    return CutPoints(guesses, session, devices, place, are_equal)


def on_all_devices(guesses: Guesses, device: Var, effort: Effort) -> CutPoints:
    """Cut points of a walk for all devices at once: where blocks begin at digits of the device's number."""
    session = effort.session

    def place(guess: Guess, whole: Values, values: Values) -> list[Poly] | None:
        starts = [tables.fit(np.asarray(column), device) for column in zip(*guess.starts, strict=True)]
        if any(map(tables.asks_table, starts)):
            return None
        return [whole[0].at(guess.indices(starts, values[0].shape))]

    def are_equal(value: Value, shard: Poly) -> bool:
        limits = session.limits
        brief = replace(effort, left=limits.guess_steps)
        return cases.equal(value.term, shard, ONE, brief, limits.guess_steps, "guess_steps") or same_network(
            value.term, shard, session, ONE, Steps(limits.guess_network_steps)
        )

    return CutPoints(guesses, session, device.size, place, are_equal)


def outside_of_loops(guesses: Guesses, logical: Module, partitioned: Module) -> Guesses:
    """The guesses about values that are made once: of a loop that is looked at as one, all turns are."""
    if not guesses:
        return guesses
    inside = {
        name
        for module in (logical, partitioned)
        for loop in operations(module.main)
        if loop.name == "while"
        for region in loop.regions
        for op in operations(region)
        for name in op.results
    }
    return {
        made: [guess for guess in each if guess.whole[0] not in inside]
        for made, each in guesses.items()
        if made[0] not in inside
    }
