"""Which comparisons and roundings of numbers that hang on no argument floats may decide otherwise than real numbers.

    floor(arange(64) / 41 * 41)       maximum(0.1 * arange(16), 0.7) > 0.7

The proof is of real arithmetic, in which the first is `arange(64)`. What floats give is one thing or the other for all
arguments, and XLA, which multiplies by 1/41, has 40 at 41: nothing may be said that holds for real numbers alone. Where
numbers are made of constants and places, the operations that made them are evaluated once more with fewer digits than
the type has, every result as an interval. Where that leaves open how a comparison or a rounding comes out, it is marked
(`IN_FLOATS`), and so is each operation that leads there and may round (`AS_FLOATS`): these are functions of floats,
which give the same of the same, and more is not known of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from hlo_verify.passes.load.as_floats import in_types, with_sizes
from hlo_verify.passes.load.decisive import decisive, is_cut, may_be_beyond
from hlo_verify.passes.load.forward import with_marks
from hlo_verify.passes.load.made_by import Made, code
from hlo_verify.passes.load.partly_made import PartlyMade
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import (
    AS_FLOATS,
    FINITE,
    IN_FLOATS,
    INFINITE,
    Function,
    Module,
    Name,
    Op,
    operations,
    value_types,
)
from hlo_verify.program.op_families import CHOOSES, COLLECTIVES, DECIDED, DEVICE_NUMBERS, ELEMENTWISE, HAS_EDGES

if TYPE_CHECKING:
    from hlo_verify.evaluate.blocks import Blocks

ELEMENTS, WORK = 1 << 21, 3e7
"""What the numbers, two bounds each, may be and take: of more than that it is not known how they are compared."""


def marked(module: Module) -> Module:
    """The module with the operations marked that floats may decide otherwise."""
    types = value_types(module.main)
    made = Made(types, _devices(module))
    made.read(module.main)
    partly = PartlyMade(made=made, known=made.known, types=types)
    partly.read(module.main)
    jumps = _Jumps(module, made)
    open_ = list(jumps.open()) if made.jumps else []
    if not open_ and not partly.marks:
        return module
    rounded = made.leading_to([v for op in open_ for v in decisive(op)] + partly.begins)
    marks = dict(jumps.roundings(rounded))
    main = with_marks(module.main, IN_FLOATS, partly.marks | {op.results: "" for op in open_})
    return replace(module, main=with_marks(main, AS_FLOATS, marks))


def _devices(module: Module) -> int:
    """How many devices run a module, or regions of it; 0 if it does not say so."""
    meshes = (op.attributes.get("mesh") for op in operations(module.main))
    return max(
        (int(mesh.size) for mesh in meshes if mesh is not None), default=(module.partitions or 0) * module.replicas
    )


@dataclass(slots=True)
class _Jumps:
    """Comparisons and roundings of what is known of a module's values that hang on no argument."""

    module: Module
    made: Made

    def open(self) -> Iterator[Op]:
        """Those that come out one way or the other in floats, as far as is known."""
        asked = {op.results: self._asked(op) for op in self.made.jumps}
        known = iter(self._evaluated([v for values in asked.values() for v in values]))
        for op in self.made.jumps:
            found = [next(known) for _ in asked[op.results]]
            if op.name in HAS_EDGES:
                of = dict(zip(asked[op.results], found, strict=True))
                if self._may_be_beyond(op, [of.get(v) for v in decisive(op)]):
                    yield op
            elif not found or not all(map(_is_ordered if op.name in CHOOSES else _is_decided, found)):
                yield op

    def _asked(self, op: Op) -> Sequence[Name]:
        """The values that show how an operation comes out; none where that cannot be evaluated."""
        of = [v for v in decisive(op) if v in self.made.known]
        if not self.made.unseen.isdisjoint(of):
            return ()
        return of if op.name in DECIDED else op.results[:1]

    def _may_be_beyond(self, op: Op, values: Sequence[Blocks | None]) -> bool:
        """Whether some number is known to be at an edge, as far as floats have it. Of what is not known it is asked
        where both sides of the edge have numbers."""
        from hlo_verify.evaluate.blocks import every_element
        from hlo_verify.evaluate.intervals import INTERVALS

        known = [v if v is not None and v.values.dtype == INTERVALS else None for v in values]
        if not any(known):
            return is_cut(op, is_complex=not is_float(op.types[0].dtype))
        if len(known) > 1:  # element by element: each is grouped in its own way
            return may_be_beyond(op.name, [None if v is None else every_element(v) for v in known])
        return may_be_beyond(op.name, [None if v is None else v.values for v in known])

    def roundings(self, values: Sequence[Name]) -> Iterator[tuple[tuple[Name, ...], str]]:
        """The results of operations that give one of those values other than real numbers have it, and what there is
        to say of them."""
        ops = {op.results: op for v in values if (op := self.made.ops.get(v)) is not None and self.made.rounds(op)}
        seen = [v for op in ops.values() for v in op.results if v not in self.made.unseen]
        known = dict(zip(seen, self._evaluated(seen), strict=True))
        for op in ops.values():
            found = [known.get(v) for v in op.results]
            if not all(map(_is_decided, found)):
                yield op.results, f"{_sizes(found)} {self._beside(op)}"

    def _beside(self, op: Op) -> str:
        """What a function of floats hangs on, beside its operands."""
        if op.name in COLLECTIVES:
            return self.made.structure_of(op)
        return "" if op.name in ELEMENTWISE or op.name == "iota" else code(op, {})

    def _evaluated(self, values: Sequence[Name]) -> list[Blocks | None]:
        """What floats may give as those values, as intervals; None where that is not known, as of what is too much."""
        from hlo_verify.evaluate.interpret import evaluate
        from hlo_verify.evaluate.intervals import INTERVALS
        from hlo_verify.evaluate.state import Limits

        if not values:
            return []
        ops = tuple(self.made.made_of(values))
        devices = (self.module.partitions or 0) * self.module.replicas
        if not devices and any(op.name in DEVICE_NUMBERS | COLLECTIVES for op in ops):
            return [None] * len(values)
        main = Function((), (), ops, tuple(values))
        instead = {v: given for op in ops for v, given in in_types(op, self.made).items()}
        main, of_sums = with_sizes(main, self.made)
        found = evaluate(
            replace(self.module, main=main),
            [],
            max(devices, 1),
            real=INTERVALS,
            limits=Limits(elements=ELEMENTS, work=WORK, room=8 * ELEMENTS),
            instead=instead | of_sums,
        )
        return list(found.results)


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
    """Whether all elements are known."""
    from hlo_verify.evaluate.intervals import INTERVALS, is_point

    if value is None or value.values.dtype == object:
        return False
    return value.values.dtype != INTERVALS or bool(is_point(value.values).all())


def _sizes(found: Sequence[Blocks | None]) -> str:
    """Whether all elements are finite, or some may be infinite; nothing where that is not known."""
    from hlo_verify.evaluate.intervals import INTERVALS

    known = [v.values for v in found if v is not None and v.values.dtype == INTERVALS]
    sides = [each[side] for each in known for side in ("low", "high")]
    if len(known) < len(found) or any(np.isnan(side).any() for side in sides):
        return ""
    return FINITE if all(np.isfinite(side).all() for side in sides) else INFINITE
