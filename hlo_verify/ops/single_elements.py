"""What single elements of a loop are made of, iteration by iteration: scalar operations on single elements.

A region that computes element by element is walked backwards from an element of what it gives. On the way
`broadcast_in_dim`, `slice` and the like say which elements of their operands are read:

    x' = add(x, broadcast_in_dim(slice(table)[0:1]))        x'[i, j] = x[i, j] + table[0]

The elements that it comes to are followed through the next iteration in the same way, until there are no others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.limits import allows
from hlo_verify.ops import bits, comparison, elementwise
from hlo_verify.program.attributes import fingerprint
from hlo_verify.program.element_types import INTEGER_RANGES
from hlo_verify.program.ir import Function, Name, Op, TensorType, value_types
from hlo_verify.program.op_families import is_identity

Place = tuple[Index, ...]
"""Where an element is."""

Element = tuple[Name, Place]
"""An element of a value of a region, or of a value around it that the region refers to."""

ELEMENTWISE = (elementwise.RULES.keys() - {"map"}) | bits.RULES.keys() | comparison.RULES.keys() | {"convert"}
"""Operations that make an element of the elements at its own place."""

BITS = bits.RULES.keys() - {"not"}
"""Those of them for which integers have no algebra: `not` is -1 minus its operand."""

WITHOUT_MEANING = ("sharding", "frontend_attributes")
"""Attributes that say where something runs."""


class NotByElementError(Exception):
    """The elements of what a loop carries do not go each their own way, or nobody knows which."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One iteration, for some elements of what a loop carries. Values are numbered: first come the `elements`."""

    elements: tuple[Element, ...]
    """Those of the region's arguments, in their order, then those of values around the region."""
    dtypes: tuple[str, ...]
    ops: tuple[Op, ...]
    """Scalar operations."""
    results: tuple[Name, ...]
    """What each of the elements is in the next iteration."""

    @property
    def text(self) -> Hashable:
        """The same for two turns only where they compute the same."""
        said = ((op.name, op.operands, str(op.types[0]), fingerprint(dict(op.attributes))) for op in self.ops)
        return self.dtypes, tuple(said), self.results


def turn_of(op: Op, around: Mapping[Name, TensorType], start: Element) -> Turn:
    """One iteration of a loop for an element of what it carries, and for all that this ever depends on; `around` has
    the types of the values around the loop that it refers to.

    Raises `NotByElementError`.
    """
    walk = _Walk(op, around)
    walk.need(start)
    return walk.turn()


class _Walk:
    """Collects the elements of each value that are needed, from the end to the beginning."""

    def __init__(self, op: Op, around: Mapping[Name, TensorType]) -> None:
        self.body = op.regions[1]
        self.types = {**around, **value_types(self.body)}
        self.numbers = {name: k for k, name in enumerate((*self.body.arguments, *around))}
        """Of all that the region is given, its arguments first."""
        self.needed: dict[Name, dict[Place, None]] = {}
        self.made: dict[tuple[Name, Place], Sequence[Element]] = {}
        self.found: dict[Element, None] = {}

    def need(self, element: Element) -> None:
        """Note that an element is needed; of what the region is given, what it becomes is needed too."""
        todo = [element]
        while todo:
            name, place = todo.pop()
            known = self.needed.setdefault(name, {})
            if place in known:
                continue
            known[place] = None
            if name in self.numbers:
                self.found[name, place] = None
                if not allows("elements_followed", len(self.found)):
                    raise NotByElementError
                todo.append(self._next((name, place)))

    def turn(self) -> Turn:
        """The iteration, once nothing else is needed."""
        before = -1
        while len(self.found) != before:
            before = len(self.found)
            for op in reversed(self.body.ops):
                for place in list(self.needed.get(op.results[0], ())) if op.results else ():
                    self._open(op, place)
        order = sorted(self.found, key=lambda element: self.numbers[element[0]])
        values: dict[Element, Name] = {element: n for n, element in enumerate(order)}
        ops: list[Op] = []
        for op in self.body.ops:
            for place in self.needed.get(op.results[0], ()) if op.results else ():
                self._write(op, place, values, ops)
        dtypes = tuple(self.types[name].dtype for name, _ in order)
        return Turn(tuple(order), dtypes, tuple(ops), tuple(values[self._next(element)] for element in order))

    def _next(self, element: Element) -> Element:
        """What an element is in the next iteration; one of a value around the region stays what it is."""
        name, place = element
        k = self.numbers[name]
        return (self.body.results[k], place) if k < len(self.body.results) else element

    def _open(self, op: Op, place: Place) -> None:
        """Find the elements that an element of an operation's result is made of."""
        key = op.results[0], place
        if key in self.made:
            return
        if len(op.results) != 1 or op.regions or op.types[0].dtype not in INTEGER_RANGES:
            raise NotByElementError
        types = [self.types[operand] for operand in op.operands]
        self.made[key] = tuple(zip(op.operands, _places(op, place, types), strict=True))
        for element in self.made[key]:
            self.need(element)

    def _write(self, op: Op, place: Place, values: dict[Element, Name], ops: list[Op]) -> None:
        """Write down the scalar operation that makes an element; none, where it is an element of an operand."""
        result, given = op.results[0], [values[element] for element in self.made[op.results[0], place]]
        if op.name in MOVEMENTS or is_identity(op):
            values[result, place] = given[0]
            return
        attributes = {k: v for k, v in op.attributes.items() if k not in WITHOUT_MEANING}
        if op.name == "constant":
            attributes["value"] = _number(op, place)
        name = values[result, place] = len(self.found) + len(ops)
        ops.append(Op(op.name, tuple(given), (name,), (TensorType((), op.types[0].dtype),), attributes))


def _places(op: Op, place: Place, types: Sequence[TensorType]) -> Sequence[Place]:
    """Where the elements of the operands are that the element of the result at `place` is made of."""
    if op.name == "constant":
        return ()
    if op.name in MOVEMENTS:
        return [MOVEMENTS[op.name](op, place, types[0].shape)]
    if op.name not in ELEMENTWISE and not is_identity(op):
        raise NotByElementError
    shape = op.types[0].shape
    if any(type_.shape not in (shape, ()) or type_.dtype not in INTEGER_RANGES for type_ in types):
        raise NotByElementError
    return [place if type_.shape else () for type_ in types]


def _broadcast(op: Op, place: Place, shape: Sequence[int]) -> Place:
    dimensions = op.attributes["broadcast_dimensions"]
    return tuple(expr.constant(0) if size == 1 else place[k] for size, k in zip(shape, dimensions, strict=True))


def _reshape(op: Op, place: Place, shape: Sequence[int]) -> Place:
    """Where dimensions of size 1 come and go, and no others."""
    kept = [e for e, size in zip(place, op.types[0].shape, strict=True) if size != 1]
    if [size for size in op.types[0].shape if size != 1] != [size for size in shape if size != 1]:
        raise NotByElementError
    rest = iter(kept)
    return tuple(expr.constant(0) if size == 1 else next(rest) for size in shape)


def _slice(op: Op, place: Place, shape: Sequence[int]) -> Place:
    starts, strides = op.attributes["start_indices"], op.attributes["strides"]
    return tuple(expr.shift(expr.scale(e, by), start) for e, start, by in zip(place, starts, strides, strict=True))


def _transpose(op: Op, place: Place, shape: Sequence[int]) -> Place:
    permutation = list(op.attributes["permutation"])
    return tuple(place[permutation.index(k)] for k in range(len(shape)))


MOVEMENTS: Mapping[str, Callable[[Op, Place, Sequence[int]], Place]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "slice": _slice,
    "transpose": _transpose,
}
"""Operations whose elements are elements of their operand, with the place of each there."""


def _number(op: Op, place: Place) -> Any:
    """The element of a constant at a place."""
    array = op.attributes["value"]
    if array.size and (not any(array.strides) or (array == array.flat[0]).all()):
        return array.flat[0].reshape(())
    if any(e.items for e in place):
        raise NotByElementError
    return array[tuple(e.const for e in place)].reshape(())


def may_go_by_element(region: Function) -> bool:
    """Whether a region looks as if its integers were computed element by element, bits of them among others."""
    names = {op.name for op in region.ops if not is_identity(op)}
    return names <= {*ELEMENTWISE, *MOVEMENTS, "constant"} and not names.isdisjoint(BITS)
