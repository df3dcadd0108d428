"""Constants that a compiler computed, taken for what they were computed from.

XLA's passes fold `2 * 0.1` into the constant that is nearest to it, and `x / 3` into `x * 0.333333343`. Over the reals
these differ from the program before by a rounding. Where a constant is new in a module, and is what the module before
computes from constants alone, or would by joining two operations on constants or by turning a division into a product,
rounded at each step as its element type is, it is replaced by that computation; a named assumption says so. So is what
an irrational function of numbers is within their own roundings (`constant_values.as_written`). Nothing else is: a
constant that is off by more than such roundings stays what it is. Whether these roundings stay
roundings in what the module goes on to compute, `amplified` says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice, product
from typing import Any

import numpy as np

from hlo_verify.limits import allows
from hlo_verify.passes.chain.constant_elements import numbers_of_elements
from hlo_verify.passes.chain.constant_uses import Seen, Use, Uses, uses_of
from hlo_verify.passes.chain.constant_values import (
    Computed,
    Key,
    as_computed_at_once,
    as_people_write,
    as_written,
    computed,
    inverses,
    is_within,
    joined,
    literal,
    logarithms,
    multiples,
    rest_of_one,
)
from hlo_verify.passes.chain.decimal_numbers import decimals
from hlo_verify.passes.chain.irrational_numbers import irrationals
from hlo_verify.program.element_types import DTYPES
from hlo_verify.program.ir import Fresh, Function, Module, Name, Op, TensorType, fresh_in, operations, used
from hlo_verify.program.op_families import KEEPS_SPLATS


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A module with constants written out as what they were computed from, and the values that stand for these."""

    module: Module
    meant: Mapping[Name, Computed] = field(default_factory=dict)

    @property
    def said(self) -> tuple[str, ...]:
        """What it takes for granted."""
        return tuple(dict.fromkeys(f"the constant {found.meaning}, rounded" for found in self.meant.values()))

    @property
    def is_as_computed(self) -> bool:
        """Whether floating point surely gives each of the constants: then it is what was read, bit by bit."""
        return all(found.is_as_computed for found in self.meant.values())


class Folded:
    """What the constants of a chain's modules were computed from, as far as it is known; or those of modules that
    people wrote (`by_people`), of which each constant is rounded once, from decimals."""

    def __init__(self, *, by_people: bool = False) -> None:
        self._by_people = by_people
        self._known: dict[Key, Computed] = {}
        self._else: dict[Key, Computed] = {}
        """What some of these may be as well: 0.9999 is `1 - 0.01 * 0.01`, or `1 - 0.001 * 0.1`."""
        self._made: dict[Key, Computed] = {}
        """What numbers were taken for, those that are just that too."""

    def readings(self, before: Module, after: Module) -> Iterator[Reading]:
        """`after` with constants that it does not share with `before` as `before` computes them.

        A constant may be there before and have been folded as well, and the two may have become one since. So first it
        is read as folded where it was not there at all, then by what has come to use it, then by all that uses it.
        """
        there, here = uses_of(before.main), uses_of(after.main)
        self._learn(before, {key for key in here if _new(key, there, here, _as_it_is)}, there)
        known = [key for key in here if key in self._known]
        chosen: list[Mapping[Use, Computed]] = [
            {use: self._known[key] for key in known if key not in there for use in here[key]},
            *(
                {use: self._known[key] for key in known for use in _new(key, there, here, seen)}
                for seen in (_as_it_is, _without_lines)
            ),
            {use: self._known[key] for key in known for use in here[key]},
        ]
        chosen += [
            {use: found for key, found in self._instead(known, instead).items() for use in here[key]}
            for instead in here
            if instead in self._else
        ]
        for n, meant in enumerate(chosen):
            if meant not in chosen[:n]:
                yield _unfolded(after, meant)

    def _instead(self, known: list[Key], number: Key) -> dict[Key, Computed]:
        """What numbers are, if this one is what it may be as well."""
        return {key: self._known[key] for key in known} | {number: self._else[number]}

    @property
    def known(self) -> Mapping[Key, Computed]:
        """What numbers were computed from."""
        return self._known

    def learn_shared(self, module: Module, numbers: set[Key], there: Uses) -> None:
        """Find out which numbers a module computes of others, or divides by others, which it holds as well."""
        found = computed(module.main) if numbers else []
        divisors = _divisors(there)
        for x in chain(found, *(inverses(x) for x in found if x.key in divisors)):
            self._take(x, numbers)

    def _learn(self, before: Module, numbers: set[Key], there: Uses) -> None:
        """Find out what numbers are that have come into use: one that was there before, only what it had computed, or
        by what it had divided."""
        wanted = numbers - self._known.keys()
        new = wanted - there.keys()
        numbers_before = computed(before.main) if wanted else []
        for found in numbers_before:
            self._take(found, wanted)
        divisors = _divisors(there)
        for x in numbers_before:
            for found in inverses(x) if x.key in divisors else ():
                self._take(found, wanted)
        wanted -= there.keys()
        lacking = frozenset(wanted)
        if self._by_people and wanted:
            self._take_inverses([x for x in numbers_before if x.key in divisors], wanted)
            self._take_of_elements(numbers_of_elements(before.main), wanted)
        for found in numbers_before:
            for number in sorted(wanted):
                near = as_written(found, number)
                if near is not None:
                    self._take(near, wanted, is_so=True)
        for found in joined(numbers_before) if wanted else ():
            self._take(found, wanted)
        if self._by_people and wanted:
            self._take_written([*numbers_before, *logarithms(before.main)], wanted)
        for number in sorted(lacking - wanted) if self._by_people else ():
            self._take_as_well(numbers_before, number)
        for number in sorted(new - self._else.keys()) if self._by_people else ():
            self._take_multiple(numbers_before, number)

    def _take_inverses(self, divisors: list[Computed], wanted: set[Key]) -> None:
        """What others divide by, of which people round the inverse on its own: 96**-0.5 is not the float next to 1 over
        the one next to the root of 96, but the one beside it."""
        found = [inverse for x in divisors for inverse in inverses(x)]
        for number in sorted(wanted):
            near = next(filter(None, (as_computed_at_once(x, number) for x in found)), None)
            if near is not None:
                self._take(near, wanted, is_so=True)

    def _take_of_elements(self, numbers: list[Computed], wanted: set[Key]) -> None:
        """What is computed of the elements of tables; rounded step by step, or within the roundings of all of them."""
        for found in numbers:
            self._take(found, wanted)
        for found in joined([x for x in numbers if not x.operands]) if wanted else ():
            self._take(found, wanted)
        for number in sorted(wanted):
            near = next(filter(None, (as_computed_at_once(found, number) for found in numbers)), None)
            if near is not None:
                self._take(near, wanted, is_so=True)

    def _take_written(self, numbers: list[Computed], wanted: set[Key]) -> None:
        for number in sorted(wanted):
            near = (as_written(found, number) for found in numbers)
            one = next(filter(None, near), None)
            found = as_people_write(numbers, number) if one is None else [one]
            if found:
                self._take(found[0], wanted, is_so=True)
            if len(found) > 1 and _is_made(found[1]) and found[1].is_rounded:
                self._else[number] = found[1]

    def _take_multiple(self, numbers: list[Computed], number: Key) -> None:
        """What small multiples leave, of a number that others make which may be there by chance: 0.4 is `1 - 6 * 0.1`
        too where there are a 2 and a 5, or a 4."""
        known = self._made.get(number)
        if known is not None and known.has_whole_numbers:
            others = (x for x in multiples(numbers, number) if x.is_rounded and x.exact != known.exact)
            self._else.update((number, other) for other in islice(others, 1))

    def _take(self, found: Computed, wanted: set[Key], *, is_so: bool = False) -> None:
        if found.key in wanted and _is_made(found) and (is_so or is_within(found, found.roundings)):
            wanted.remove(found.key)
            self._made[found.key] = found
            if found.is_rounded:  # else it is what it says
                self._known[found.key] = found

    def _take_as_well(self, numbers: list[Computed], number: Key) -> None:
        """What a number may be that was taken for another: `0.1 * 0.9`, where 0.09 was seen to be `0.1 - 0.01`."""
        known = self._known.get(number)
        if known is not None and number not in self._else:
            found = (x for x in as_people_write(numbers, number) if x.is_rounded and _is_made(x))
            self._else.update((number, x) for x in islice((x for x in found if x.exact != known.exact), 1))


def _is_made(found: Computed) -> bool:
    """Whether a number is computed of others: 1 + 1e9 is 1e9, in which nothing of the 1 is left. An opposite is."""
    is_there = any(abs(x.rounded) == abs(found.rounded) for x in found.operands)
    return bool(found.operands) and (not is_there or any(x.rounded == 0 for x in found.operands))


def with_rests(
    first: Module, second: Module, but: Collection[str] = (), as_weights: Collection[str] = ()
) -> tuple[Reading, Reading] | None:
    """Two modules that people wrote, with numbers in either that are 1 less another one of theirs read as that: 0.9
    beside 0.1 is `1 - 0.1`; but for those that would be read so, and `as_weights` only where something is multiplied by
    them: 0.9 may be the base of a power as well. So is what as many parts leave as a dimension of the first module is
    large, where labels of 16 classes are smoothed by 0.00625. None where there are no such numbers."""
    uses = [uses_of(module.main) for module in (first, second)]
    keys = sorted(uses[0].keys() | uses[1].keys())
    if not allows("joined_by_people", len(keys)):
        return None
    rests: dict[Key, Computed] = {}
    sizes = _sizes(first.main)
    for whole, part in product(keys, keys):
        found = rest_of_one(whole, part, sizes)
        if found is None or found.meaning in but:
            continue
        if whole not in rests or found.literals < rests[whole].literals:
            rests[whole] = found
    if not rests:
        return None
    meant = [
        {
            use: rest
            for key, rest in rests.items()
            for use, (name, *_) in of.get(key, {}).items()
            if name == "multiply" or rest.meaning not in as_weights
        }
        for of in uses
    ]
    if not any(meant):
        return None
    return _unfolded(first, meant[0]), _unfolded(second, meant[1])


def _sizes(function: Function) -> frozenset[int]:
    """How large dimensions are of what is computed."""
    return frozenset(size for op in operations(function) for type_ in op.types for size in type_.shape if size > 1)


def with_quotients(first: Module, second: Module) -> tuple[Reading, Reading] | None:
    """Two modules that people wrote, with numbers that both hold read in both as what either computes of others, or
    would: `x / 10` beside `0.1 * y` is of one number in two spellings, where the other module has `0.1 * x`. None
    where there are no such numbers."""
    uses = [uses_of(module.main) for module in (first, second)]
    folded = Folded(by_people=True)
    for module, there in zip((first, second), uses, strict=True):
        folded.learn_shared(module, set(uses[0]) & set(uses[1]), there)
    if not folded.known:
        return None
    meant = [{use: found for key, found in folded.known.items() for use in of[key]} for of in uses]
    return _unfolded(first, meant[0]), _unfolded(second, meant[1])


def with_irrationals(first: Module, second: Module) -> tuple[Reading, Reading] | None:
    """Two modules that people wrote, with numbers in either that are multiples of roots of 2 and of pi, or of
    logarithms, read as these. None where there are no such numbers, or each is in both: then one is the other's as it
    stands."""
    return _both_with(irrationals, first, second)


def with_decimals(first: Module, second: Module) -> tuple[Reading, Reading] | None:
    """The same with decimals of a few digits, and small fractions."""
    return _both_with(decimals, first, second)


def _both_with(
    read: Callable[[Collection[Key]], dict[Key, Computed]], first: Module, second: Module
) -> tuple[Reading, Reading] | None:
    uses = [uses_of(module.main) for module in (first, second)]
    known = read(uses[0].keys() | uses[1].keys())
    if known.keys() <= uses[0].keys() & uses[1].keys():
        return None
    meant = [{use: known[key] for key in known for use in of.get(key, ())} for of in uses]
    return _unfolded(first, meant[0]), _unfolded(second, meant[1])


def _as_it_is(seen: Seen) -> Seen:
    return seen


def _without_lines(seen: Seen) -> Seen:
    return seen[:-1]


def _new(key: Key, there: Uses, here: Uses, looks: Callable[[Seen], Seen]) -> list[Use]:
    """The uses of a number that there were none of before."""
    before = set(map(looks, there.get(key, {}).values()))
    return [use for use, seen in here[key].items() if looks(seen) not in before]


def _divisors(uses: Uses) -> set[Key]:
    """The numbers that something is divided by."""
    return {key for key, seen in uses.items() if any(name == "divide" and n == 1 for name, n, *_ in seen.values())}


def _unfolded(module: Module, meant: Mapping[Use, Computed]) -> Reading:
    if not meant:
        return Reading(module)
    by_user: dict[Name, list[tuple[Use, Computed]]] = {}
    for use, found in meant.items():
        by_user.setdefault(use.user, []).append((use, found))
    stand_for: dict[Name, Computed] = {}
    main = _rewritten(module.main, by_user, fresh_in(module.main), stand_for)
    reading = Reading(replace(module, main=main), stand_for)
    return replace(reading, module=replace(reading.module, notes=(*module.notes, *reading.said)))


# Writing it out


def _rewritten(
    function: Function,
    meant: Mapping[Name, Iterable[tuple[Use, Computed]]],
    fresh: Fresh,
    stand_for: dict[Name, Computed],
) -> Function:
    """The function with the computations of numbers in place of them; `stand_for` is told their results."""
    ops: list[Op] = []
    for op in function.ops:
        operands = list(op.operands)
        for use, found in meant.get(op.results[0], ()) if op.results else ():
            ops += _written_out(found, use.type, op, fresh)
            operands[use.number] = ops[-1].results[0]
            stand_for[ops[-1].results[0]] = found
        regions = tuple(_rewritten(region, meant, fresh, stand_for) for region in op.regions)
        ops.append(replace(op, operands=tuple(operands), regions=regions))
    return _without_idle_numbers(replace(function, ops=tuple(ops)))


def _without_idle_numbers(function: Function) -> Function:
    """The function without numbers that nothing uses any more: what is read next is not computed of them."""
    needed, kept = set(function.results), []
    for op in reversed(function.ops):
        is_number = literal(op) is not None or op.name in KEEPS_SPLATS
        if not is_number or not needed.isdisjoint(op.results):
            needed |= used(op)
            kept.append(op)
    return replace(function, ops=tuple(reversed(kept)))


def _written_out(found: Computed, result_type: TensorType, user: Op, fresh: Fresh) -> Iterable[Op]:
    """The operations that compute a number, and then give it the type of an operand of some operation."""
    ops: list[Op] = []

    def add(name: str, operands: tuple[Name, ...], type_: TensorType, attributes: Mapping[str, Any]) -> Name:
        new = Op(name, operands, (fresh.one(),), (type_,), attributes, location=user.location, source=user.source)
        ops.append(new)
        return new.results[0]

    def write(x: Computed) -> Name:
        operands = tuple(map(write, x.operands))
        attributes = {} if operands else {"value": np.array(x.rounded, DTYPES[x.dtype])}
        return add(x.name, operands, TensorType((), x.dtype), attributes)

    add("broadcast_in_dim", (write(found),), result_type, {"broadcast_dimensions": ()})
    return ops
