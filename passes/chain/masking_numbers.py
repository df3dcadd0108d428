"""Scores that one program masks by minus infinity, and the other by a number that is far below all scores.

`softmax(where(keep, s, -inf))` and `softmax(where(keep, s, -1e30))` are one number to people, though not over the
reals: `exp(-1e30 - max)` is no zero. So the logical module is read with the partitioned module's number in the place of
its own, or with minus infinity, where what it masks gets into functions that are as good as constant so far
below (`masked_scores`): an exponential, a comparison with scores, the greater of it and something else. Where the
largest of scores is taken, some score is not masked: that is shown, or a named assumption says it as well; and minus
infinity is not read in the place of a number where it is not shown. What else is made of it, `top_k(where(keep, s,
-inf))`, a sum or a result, is made of what the module itself masks by, and a number that scores are compared with or
shifted by is no mask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from hlo_verify.ops.values import Context, Value
from hlo_verify.passes.chain.closed_values import closed_values
from hlo_verify.passes.chain.constant_values import known_numbers
from hlo_verify.passes.chain.masked import ABOVE, FAR
from hlo_verify.passes.chain.masked_scores import MOVED, MaskWalk, devices_of, is_mask, numbers_in
from hlo_verify.passes.chain.reached import at_zero
from hlo_verify.passes.prove.interpret import interpret
from hlo_verify.passes.prove.start import begin
from hlo_verify.program.attributes import elements_once, is_splat
from hlo_verify.program.element_types import finfo, is_float
from hlo_verify.program.ir import Fresh, Function, Module, Name, Op, fresh_in, operations, used
from hlo_verify.program.op_families import KEEPS_SPLATS, RUNS_REGIONS
from hlo_verify.session import Session
from hlo_verify.terms.finite import if_unknown_may_be

SHIFTS = frozenset({"subtract", "add"})

BELOW = "scores are far above, and exponentials of either are 0"

STARTS = frozenset({"reduce", "reduce_window", "maximum"})
"""Operations that start from a number, which is no mask."""


def masked_alike(given: Module, partitioned: Module, session: Session) -> Iterator[Module]:
    """The given module with its masking numbers read as others: those of the partitioned one, and minus infinity, if
    something is left of all that the largest is taken of."""
    own = masks_of(given)
    walk = _mask_walk(given, may_keep=True) if own else None
    if walk is None:
        return
    infinite = read_as(given, -inf, walk)
    is_left = _are_numbers(infinite, partitioned, walk.largest, session) or (
        not walk.is_taken_inside
        and walk.conditions_of_largest(given.main) <= closed_values(given.main).keys()
        and are_finite_at_zero(infinite, walk.largest)
    )
    others = {*masks_of(partitioned), -inf}
    if not is_left and walk.may_keep:
        return  # what is made of a row that is masked as a whole is not followed
    if not is_left:
        is_same = (
            not _is_asked_of(given.main, walk)
            if own == {-inf}
            else (len(own) == 1 and is_only_subtracted(given.main, walk))
        )
        others = others - {-inf} if is_same else set()
    for other in sorted(others):
        if own != {other}:
            masks = " and ".join(f"{number:.9g}" for number in sorted(own - {other}))
            where = "" if is_left else "; where the largest of scores is taken, not all of them are masked"
            said = f"{masks}, which masks scores, is read as {other:.9g}: {BELOW}{where}"
            yield replace(read_as(given, other, walk), notes=(*given.notes, said))


def both_infinite(given: Module, partitioned: Module) -> tuple[Module, Module] | None:
    """Both modules with minus infinity in the place of the numbers that mask in them, if devices mask by a number: of
    keys that these mask beside those that the given one does, as in a halo before the first row, a sum would have
    exponentials that it has not. None where some largest may be of nothing but what is masked."""
    if masks_of(partitioned) <= {-inf}:
        return None
    first, second = map(_as_infinite, (given, partitioned))
    return None if first is None or second is None else (first, second)


def _as_infinite(module: Module) -> Module | None:
    """A module with minus infinity in the place of its numbers, if what masks hangs on no argument and the largest of
    scores is shown to be one on each device."""
    if masks_of(module) <= {-inf}:
        return module
    walk = _mask_walk(module)
    if walk is None or not walk.conditions <= closed_values(module.main).keys():
        return None
    infinite = read_as(module, -inf, walk)
    if walk.is_taken_inside or not are_finite_at_zero(infinite, walk.largest, devices_of(module)):
        return None
    return replace(infinite, notes=(*module.notes, f"what masks scores is read as minus infinity: {BELOW}"))


def _mask_walk(module: Module, *, may_keep: bool = False) -> MaskWalk | None:
    """The walk through a module in which the numbers that mask may be read as others: wherever they get or, if it
    `may_keep` them elsewhere, in functions alone that are as good as constant so far below."""
    numbers = known_numbers(module.main)
    for keeps in (False, True) if may_keep else (False,):
        walk = MaskWalk(numbers, may_keep=keeps)
        if walk.is_followed(module.main):
            return walk if walk.is_far_from_others(module) else None
    return None


def _is_asked_of(function: Function, walk: MaskWalk) -> bool:
    """Whether something may be a number though minus infinity masks all scores that the largest is taken of: that is
    minus infinity then, and no number what is left where it is subtracted. A program may ask that, and go on."""
    if walk.is_taken_inside:  # what these give is not followed
        return True
    infinite, none = set(walk.largest), set[Name]()
    for op in operations(function):
        here = used(op)
        if infinite.isdisjoint(here) and none.isdisjoint(here):
            continue
        if op.name in RUNS_REGIONS or op.name == "sort" or not all(is_float(type_.dtype) for type_ in op.types):
            return True
        if not none.isdisjoint(here) or op.name in SHIFTS:
            none.update(op.results)
        elif op.name in MOVED or (op.name == "maximum" and all(v in infinite or v in walk.infinite for v in here)):
            infinite.update(op.results)
        else:
            return True
    return not infinite.isdisjoint(function.results)


def is_only_subtracted(function: Function, walk: MaskWalk) -> bool:
    """Whether the largest of scores is subtracted from scores, and nothing else is done with it: of scores that are all
    masked, by whatever number, the same is left."""
    largest = set(walk.largest)
    for op in operations(function):
        if largest.isdisjoint(used(op)):
            continue
        is_greater = op.name == "maximum" and all(v in largest or walk.is_score(v) for v in op.operands)
        if is_greater or (op.name in MOVED and op.operands[0] in largest):
            largest.update(op.results)
        elif op.name != "subtract" or op.operands[1] not in largest or op.operands[0] not in walk.masked:
            return False
    return largest.isdisjoint(function.results)


def read_as(module: Module, number: float, walk: MaskWalk) -> Module:
    """The module with that number in the place of those that mask, but where the walk keeps these."""
    return replace(module, main=_with_masks(module.main, number, {}, fresh_in(module.main), walk))


def _are_numbers(module: Module, partitioned: Module, names: Collection[Name], session: Session) -> bool:
    """Whether those values of a module are surely finite; the partitioned one only says how arguments lie."""
    found: list[bool] = []
    seen: set[Name] = set()

    def run(function: Function, arguments: Sequence[Value], context: Context) -> list[Value]:
        environment = context.environment
        environment.update(zip(function.arguments, arguments, strict=True))
        for op in function.ops:
            session.check()
            values = interpret(op, [environment[v] for v in op.operands], context)
            environment.update(zip(op.results, values, strict=True))
            seen.update(op.results)
            found.extend(if_unknown_may_be().surely(environment[v].term) for v in op.results if v in names)
        return [environment[v] for v in function.results]

    with Session(session.limits, session.deadline).on():
        both = begin(module, partitioned, run)
        run(module.main, both.wholes, both.plain)
    return all(found) and seen >= set(names)


def are_finite_at_zero(module: Module, names: Collection[Name], devices: int = 1) -> bool:
    """Whether those values are finite where all arguments are 0, on each of so many devices that run the module. What
    is masked depends on no argument: then they are finite for all."""
    found = at_zero(module, devices, watch=names, only=()).watched.values()
    return all(each is not None and bool((each.values > ABOVE).all()) for each in found)


def mask_otherwise(given: Module, partitioned: Module) -> bool:
    """Whether the given module masks by numbers that the partitioned one does not have."""
    return not masks_of(given) <= masks_of(partitioned)


def masks_of(module: Module) -> set[float]:
    """The numbers that mask in a module."""
    roots: dict[Name, Op] = {}
    found: dict[Name, Op] = {}
    for op in operations(module.main):
        if is_mask(op):
            roots[op.results[0]] = op
        elif op.name in KEEPS_SPLATS and op.operands[0] in roots:
            roots[op.results[0]] = roots[op.operands[0]]
        elif op.name not in STARTS and op.name != "compare":
            found.update((v, roots[v]) for v in op.operands if v in roots)
    return {float(x) for op in found.values() for x in np.unique(numbers_in(op)) if x <= FAR}


def _with_masks(
    function: Function, number: float, names: Mapping[Name, Name], fresh: Fresh, walk: MaskWalk
) -> Function:
    """The function with that number in the place of those that mask, but where something starts from them. Where some
    operation takes what is masked as it stands, all that is masked is there in both readings."""
    names, scores = dict(names), set[Name]()
    both = walk.masked if walk.may_keep else ()
    ops: list[Op] = []
    for op in function.ops:
        operands = tuple(names.get(v, v) if op.name not in STARTS or v in scores else v for v in op.operands)
        is_other = operands != op.operands
        if is_mask(op):
            names[op.results[0]] = fresh.one()
            ops += (op, _masking_by(op, number, names[op.results[0]]))
        elif is_other and not walk.kept.isdisjoint(op.results):
            ops.append(op)
        elif is_other and (op.results[0] in both or (op.name in KEEPS_SPLATS and len(op.results) == 1)):
            names.update((v, fresh.one()) for v in op.results)
            if op.name not in KEEPS_SPLATS or op.operands[0] in scores:
                scores.update(op.results)
            ops += (op, replace(op, operands=operands, results=tuple(names[v] for v in op.results)))
        else:
            regions = tuple(_with_masks(region, number, names, fresh, walk) for region in op.regions)
            ops.append(replace(op, operands=operands, regions=regions))
    results = function.results if walk.may_keep else tuple(names.get(v, v) for v in function.results)
    return replace(function, ops=tuple(ops), results=results)


def _masking_by(op: Op, number: float, name: Name) -> Op:
    """A constant with that number, or the least of its type, in the place of those that mask in another."""
    array = op.attributes["value"]
    least = number if number == -inf else max(number, float(finfo(op.types[0].dtype).min))
    once = elements_once(array)
    value = np.where(once.astype(float) <= FAR, least, once.astype(float)).astype(array.dtype)
    if is_splat(array):
        value = np.broadcast_to(value.reshape(-1)[0], array.shape)
    return replace(op, results=(name,), attributes={**op.attributes, "value": value})
