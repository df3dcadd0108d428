"""Which comparisons and roundings of numbers that hang on no argument floats may decide otherwise than real numbers.

    floor(arange(64) / 41 * 41)       maximum(0.1 * arange(16), 0.7) > 0.7

The proof is of real arithmetic, in which the first is `arange(64)`. What floats give is one thing or the other for all
arguments, and XLA, which multiplies by 1/41, has 40 at 41: nothing may be said that holds for real numbers alone. Where
numbers are made of constants and places, the operations that made them are evaluated once more with fewer digits than
the type has, every result as an interval. Where that leaves open how a comparison or a rounding comes out, it is marked
with how its operands were made: it is the same as one of the same numbers that were made alike, and more is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from hlo_verify.passes.load.as_floats import in_type, with_sizes
from hlo_verify.passes.load.decisive import decisive, may_be_beyond
from hlo_verify.passes.load.forward import with_marks
from hlo_verify.passes.load.made_by import Made
from hlo_verify.passes.load.partly_made import PartlyMade
from hlo_verify.program.ir import IN_FLOATS, Function, Module, Name, Op, value_types
from hlo_verify.program.op_families import CHOOSES, COLLECTIVES, DECIDED, DEVICE_NUMBERS, HAS_EDGES

if TYPE_CHECKING:
    from hlo_verify.evaluate.blocks import Blocks

ELEMENTS, WORK = 1 << 21, 3e7
"""What the numbers, two bounds each, may be and take: of more than that it is not known how they are compared."""


def marked(module: Module) -> Module:
    """The module with the operations marked that floats may decide otherwise."""
    made = Made()
    made.read(module.main)
    partly = PartlyMade(made=made, known=made.ways, types=value_types(module.main))
    partly.read(module.main)
    open_ = partly.marks | (dict(_undecided(module, made)) if made.jumps else {})
    return replace(module, main=with_marks(module.main, IN_FLOATS, open_))


def _undecided(module: Module, made: Made) -> Iterator[tuple[tuple[Name, ...], str]]:
    """The results of those jumps that come out one way or the other in floats, as far as is known, and how what they
    are of was made: of what is too much to be evaluated, which is hardly ever open, by which operations alone."""
    from hlo_verify.evaluate.interpret import evaluate
    from hlo_verify.evaluate.intervals import INTERVALS
    from hlo_verify.evaluate.state import Limits

    unseen, fixed = list[Op](), list[Op]()
    for op in made.jumps:
        (fixed if made.unseen.isdisjoint(decisive(op)) else unseen).append(op)
    asked = [decisive(op) if op.name in DECIDED else op.results[:1] for op in fixed]
    ops = tuple(made.made_of({v for values in asked for v in values}))
    devices = (module.partitions or 0) * module.replicas
    yield from ((op.results, made.way_to(op)) for op in unseen if op.name not in HAS_EDGES)
    if not fixed:
        return
    if not devices and any(op.name in DEVICE_NUMBERS | COLLECTIVES for op in ops):
        yield from ((op.results, made.kinds_to(op)) for op in fixed if op.name not in HAS_EDGES)
        return
    main = Function((), (), ops, tuple(v for values in asked for v in values))
    instead = {op.results[0]: way for op in ops if (way := in_type(op, made)) is not None}
    main, of_sums = with_sizes(main, made)
    found = evaluate(
        replace(module, main=main),
        [],
        max(devices, 1),
        real=INTERVALS,
        limits=Limits(elements=ELEMENTS, work=WORK, room=8 * ELEMENTS),
        instead=instead | of_sums,
    )
    results = iter(found.results)
    for op, values in zip(fixed, asked, strict=True):
        known = list(islice(results, len(values)))
        if op.name in HAS_EDGES:
            if any(_may_be_beyond(op, value) for value in known):
                yield op.results, made.way_to(op)
        elif not all(map(_is_ordered if op.name in CHOOSES else _is_decided, known)):
            yield op.results, made.kinds_to(op) if any(value is None for value in known) else made.way_to(op)


def _may_be_beyond(op: Op, value: Blocks | None) -> bool:
    """Whether some number is known to be at an edge, as far as floats have it; of what is not known it is not asked."""
    from hlo_verify.evaluate.intervals import INTERVALS

    return value is not None and value.values.dtype == INTERVALS and may_be_beyond(op.name, value.values)


def _is_ordered(value: Blocks | None) -> bool:
    """Whether of all elements on a device it is known which is less than which, or that they are equal."""
    from hlo_verify.evaluate.intervals import INTERVALS

    if value is None or value.values.dtype == object:
        return False
    if value.values.dtype != INTERVALS:
        return True
    counts = reduce(np.multiply.outer, (np.bincount(classes) for classes in value.classes[1:]), np.ones((), int))
    for each in value.values:
        order = np.argsort(each["low"], axis=None)
        low, high, count = (
            np.broadcast_to(a, each.shape).reshape(-1)[order] for a in (each["low"], each["high"], counts)
        )
        is_number = low == high
        are_equal = is_number[1:] & is_number[:-1] & (low[1:] == low[:-1])
        if not ((high[:-1] < low[1:]) | are_equal).all() or not (is_number | (count == 1)).all():
            return False
    return True


def _is_decided(value: Blocks | None) -> bool:
    """Whether all elements of what a jump gives are known."""
    from hlo_verify.evaluate.intervals import INTERVALS, is_point

    if value is None or value.values.dtype == object:
        return False
    return value.values.dtype != INTERVALS or bool(is_point(value.values).all())
