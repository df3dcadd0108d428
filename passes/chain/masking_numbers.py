"""Scores that one program masks by minus infinity, and the other by a number that is far below all scores.

`softmax(where(keep, s, -inf))` and `softmax(where(keep, s, -1e30))` are one number to people, though not over the
reals: `exp(-1e30 - max)` is no zero. So the logical module is read with the partitioned module's number in the place of
its own, or with minus infinity, if what it masks gets nowhere but into functions that are as good as constant so far
below: an exponential, a comparison, the greater of it and something else. Where the largest of scores is taken, some
score is not masked: that is shown, or a named assumption says it as well; and minus infinity is not read in the place
of a number where it is not shown. Of `top_k(where(keep, s, -inf))`, a sum or a result nothing is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from hlo_verify.evaluate.blocks import scalar
from hlo_verify.evaluate.interpret import evaluate
from hlo_verify.evaluate.maps import Maps
from hlo_verify.evaluate.numbers import storage
from hlo_verify.evaluate.state import Limits
from hlo_verify.limits import limit_of
from hlo_verify.ops.values import Context, Value
from hlo_verify.passes.chain.closed_values import closed_values
from hlo_verify.passes.chain.constant_values import Computed, known_numbers
from hlo_verify.passes.prove.interpret import interpret
from hlo_verify.passes.prove.start import begin
from hlo_verify.program.attributes import elements_once, is_splat
from hlo_verify.program.element_types import finfo
from hlo_verify.program.ir import Fresh, Function, Module, Name, Op, fresh_in, operations, used
from hlo_verify.program.op_families import FILLS, KEEPS_SPLATS, LOOKUPS, MOVES, PARTS, RESHAPES, SLICES
from hlo_verify.session import Session
from hlo_verify.terms.finite import if_unknown_may_be

FAR = -1e9
"""What is less masks."""

FLOATS = np.dtype(np.float64)

SCALES = (1e-3, 1e3)
"""By such numbers what is masked may be multiplied, and stays far below all scores."""

MOVED = KEEPS_SPLATS | MOVES | RESHAPES | SLICES | PARTS | FILLS | LOOKUPS
SATURATED = frozenset({"exponential", "logistic", "tanh", "compare"})
"""Functions that are the same of all numbers that are far below."""

STARTS = frozenset({"reduce", "reduce_window", "maximum"})
"""Operations that start from a number, which is no mask."""

Masked = frozenset[tuple[Name, bool]]
"""The conditions under which alone an element is masked, each with what it is there; none where nothing is known."""


def masked_alike(given: Module, partitioned: Module, session: Session) -> Iterator[Module]:
    """The given module with its masking numbers read as others: those of the partitioned one, and minus infinity, if
    something is left of all that the largest is taken of."""
    own, walk = _masks(given), _Walk(known_numbers(given.main))
    if not own or not walk.is_harmless(given.main):
        return
    infinite = _read_as(given, -inf)
    is_left = _are_numbers(infinite, partitioned, walk.largest, session) or (
        walk.conditions <= closed_values(given.main).keys() and _are_finite_at_zero(infinite, walk.largest)
    )
    others = {*_masks(partitioned), -inf}
    if not is_left:
        is_same = not _is_asked_of(given.main, walk) if own == {-inf} else _is_only_subtracted(given.main, walk)
        others = others - {-inf} if is_same else set()
    for other in sorted(others):
        if own != {other}:
            masks = " and ".join(f"{number:.9g}" for number in sorted(own - {other}))
            where = "" if is_left else "; where the largest of scores is taken, not all of them are masked"
            said = f"{masks}, which masks scores, is read as {other:.9g}: exponentials of either are 0{where}"
            yield replace(_read_as(given, other), notes=(*given.notes, said))


def _is_asked_of(function: Function, walk: _Walk) -> bool:
    """Whether something is asked of the largest of scores, or of what is made of it, which is no number where minus
    infinity masks them all: a program may ask that, and go on with another number."""
    doubtful, asked = set(walk.largest), False
    for op in operations(function):
        if doubtful.isdisjoint(used(op)):
            continue
        types = [type_.dtype for type_ in op.types]
        keeps = not any(dtype == "i1" or "i" in dtype for dtype in types)
        asked = asked or not keeps or op.name in ("while", "case", "if", "sort") or op.name.startswith("chlo.top")
        doubtful.update(op.results)
    return asked


def _is_only_subtracted(function: Function, walk: _Walk) -> bool:
    """Whether the largest of scores is subtracted from scores, and nothing else is done with it: of scores that are all
    masked, by whatever number, the same is left."""
    largest = set(walk.largest)
    for op in operations(function):
        if largest.isdisjoint(used(op)):
            continue
        is_greater = op.name == "maximum" and all(v in largest or v in walk.masked for v in op.operands)
        if is_greater or (op.name in MOVED and op.operands[0] in largest):
            largest.update(op.results)
        elif op.name != "subtract" or op.operands[1] not in largest or op.operands[0] not in walk.masked:
            return False
    return largest.isdisjoint(function.results)


def _read_as(module: Module, number: float) -> Module:
    return replace(module, main=_with_masks(module.main, number, {}, fresh_in(module.main)))


def _are_numbers(module: Module, partitioned: Module, names: Collection[Name], session: Session) -> bool:
    """Whether those values of a module are surely finite; the partitioned one only says how arguments lie."""
    found: list[bool] = []

    def run(function: Function, arguments: Sequence[Value], context: Context) -> list[Value]:
        environment = context.environment
        environment.update(zip(function.arguments, arguments, strict=True))
        for op in function.ops:
            session.check()
            values = interpret(op, [environment[v] for v in op.operands], context)
            environment.update(zip(op.results, values, strict=True))
            found.extend(if_unknown_may_be().surely(environment[v].term) for v in op.results if v in names)
        return [environment[v] for v in function.results]

    with Session(session.limits, session.deadline).on():
        both = begin(module, partitioned, run)
        run(module.main, both.wholes, both.plain)
    return all(found)


def _are_finite_at_zero(module: Module, names: Collection[Name]) -> bool:
    """Whether those values are finite where all arguments are 0. What is masked depends on no argument: then they are
    finite for all."""
    maps = Maps()
    zeros = [scalar(0, type_.shape, storage(type_.dtype, FLOATS), 1, maps) for type_ in module.main.argument_types]
    limits = Limits(limit_of("enclosed_elements"), limit_of("glance_work"))
    found = evaluate(module, zeros, 1, watch=names, only=(), limits=limits, maps=maps).watched.values()
    return all(each is not None and bool((each.values > FAR).all()) for each in found)


def _masks(module: Module) -> set[float]:
    """The numbers that mask in a module."""
    roots: dict[Name, Op] = {}
    found: dict[Name, Op] = {}
    for op in operations(module.main):
        if _is_mask(op):
            roots[op.results[0]] = op
        elif op.name in KEEPS_SPLATS and op.operands[0] in roots:
            roots[op.results[0]] = roots[op.operands[0]]
        elif op.name not in STARTS and op.name != "compare":
            found.update((v, roots[v]) for v in op.operands if v in roots)
    return {float(x) for op in found.values() for x in np.unique(_values(op)) if x <= FAR}


def _is_mask(op: Op) -> bool:
    if op.name != "constant" or not op.types[0].dtype.startswith(("f", "bf")):
        return False
    return bool((_values(op) <= FAR).any())


def _values(op: Op) -> Any:
    return elements_once(op.attributes["value"]).astype(float).reshape(-1)


def _with_masks(function: Function, number: float, names: Mapping[Name, Name], fresh: Fresh) -> Function:
    """The function with that number in the place of those that mask, but where something starts from them."""
    names = dict(names)
    ops: list[Op] = []
    for op in function.ops:
        operands = tuple(names.get(v, v) for v in op.operands)
        if _is_mask(op):
            names[op.results[0]] = fresh.one()
            array = op.attributes["value"]
            least = number if number == -inf else max(number, float(finfo(op.types[0].dtype).min))
            once = elements_once(array)
            value = np.where(once.astype(float) <= FAR, least, once.astype(float)).astype(array.dtype)
            if is_splat(array):
                value = np.broadcast_to(value.reshape(-1)[0], array.shape)
            ops.append(op)
            ops.append(replace(op, results=(names[op.results[0]],), attributes={**op.attributes, "value": value}))
        elif op.name in KEEPS_SPLATS and len(op.results) == 1 and operands != op.operands:
            names[op.results[0]] = fresh.one()
            ops += (op, replace(op, operands=operands, results=(names[op.results[0]],)))
        else:
            regions = tuple(_with_masks(region, number, names, fresh) for region in op.regions)
            ops.append(replace(op, operands=op.operands if op.name in STARTS else operands, regions=regions))
    return replace(function, ops=tuple(ops), results=tuple(names.get(v, v) for v in function.results))


class _ReachesMoreError(Exception):
    """What is masked gets to where its value matters."""


@dataclass(slots=True)
class _Walk:
    """Follows what is masked through a function."""

    numbers: Mapping[Name, Computed]
    masked: dict[Name, Masked] = field(default_factory=dict)
    largest: set[Name] = field(default_factory=set)
    """What is the largest of elements some of which are masked."""
    conditions: set[Name] = field(default_factory=set)
    """What says which are."""

    def is_harmless(self, function: Function) -> bool:
        try:
            self._through(function)
        except _ReachesMoreError:
            return False
        return self.masked.keys().isdisjoint(function.results)

    def _through(self, function: Function) -> None:
        for op in function.ops:
            if op.name == "while":
                self._loop(op)
                continue
            found = frozenset() if _is_mask(op) else self._of(op)
            if found is not None:
                self.masked.update(dict.fromkeys(op.results, found))

    def _of(self, op: Op) -> Masked | None:
        """Under which conditions the results of an operation are masked; None where they are not."""
        inside = [v for region in op.regions for inner in operations(region) for v in inner.operands]
        given = [self.masked.get(v) for v in op.operands]
        if not self.masked.keys().isdisjoint(inside):
            raise _ReachesMoreError
        if op.name in ("reduce", "reduce_window"):
            given = given[: len(given) // 2]  # what they start from is no mask
        some = [each for each in given if each is not None]
        if not some or op.name in SATURATED:
            return None
        if op.name == "reduce" and _is_the_largest(op):
            self.largest.add(op.results[0])
            return None
        if op.name in MOVED or op.name in ("convert", "minimum"):
            return frozenset()
        if op.name == "select":
            return self._selected(op)
        if op.name == "maximum":
            return None if len(some) < len(given) else frozenset()
        if op.name == "add":
            return some[0] if len(some) == 1 else frozenset()
        if op.name == "subtract" and given[1] is None:
            return given[0]
        if op.name in ("multiply", "divide") and self._scales(op, given):
            return some[0]
        raise _ReachesMoreError

    def _selected(self, op: Op) -> Masked | None:
        condition, *chosen = op.operands
        if condition in self.masked:
            raise _ReachesMoreError
        self.conditions.add(condition)
        left: list[Masked] = []
        for value, chosen_if in zip(chosen, (True, False), strict=True):
            under = self.masked.get(value)
            if under is not None and (condition, not chosen_if) not in under:
                left.append(under | {(condition, chosen_if)})
        if not left:
            return None
        return left[0] if len(left) == 1 else frozenset()

    def _scales(self, op: Op, given: list[Masked | None]) -> bool:
        """Whether what is masked is multiplied or divided by a number that leaves it far below."""
        for value, masked in zip(op.operands, given, strict=True):
            if masked is None:
                number = self.numbers.get(value)
                is_factor = op.name == "multiply" or value == op.operands[1]
                return is_factor and number is not None and SCALES[0] <= number.exact <= SCALES[1]
        return False

    def _loop(self, op: Op) -> None:
        """What a loop carries is masked if it is at the start or after a turn."""
        condition, body = op.regions
        carried = [self.masked.get(v) for v in op.operands]
        while True:
            for region in (condition, body):
                for argument, masked in zip(region.arguments, carried, strict=True):
                    if masked is not None:
                        self.masked[argument] = frozenset()
            self._through(condition)
            if not self.masked.keys().isdisjoint(condition.results):
                raise _ReachesMoreError
            self._through(body)
            after: list[Masked | None] = [
                frozenset() if v in self.masked or was is not None else None
                for v, was in zip(body.results, carried, strict=True)
            ]
            if [x is None for x in after] == [x is None for x in carried]:
                break
            carried = list(after)
        self.masked.update({v: frozenset() for v, x in zip(op.results, carried, strict=True) if x is not None})


def _is_the_largest(op: Op) -> bool:
    """Whether a reduction takes the greatest element, or finds where it is."""
    (region,) = op.regions
    if len(op.results) == 1:
        return [inner.name for inner in region.ops] == ["maximum"]
    values = region.arguments[0], region.arguments[len(op.results)]
    orders = [
        inner.attributes["comparison_direction"]
        for inner in region.ops
        if inner.name == "compare" and {*inner.operands} == {*values}
    ]
    greater = any(
        inner.attributes["comparison_direction"] == "GT" and inner.operands == values
        for inner in region.ops
        if inner.name == "compare"
    )
    return greater and "LT" not in orders
