"""Programs that are written out turn by turn, as loops: a loop of Python comes as many equal operations.

    h1 = f(h0, 0); h2 = f(h1, 1); ...; hn = f(h[n-1], n-1)      ->      a loop over t of h = f(h, t)

A list of operations is looked for in which the same ones come again and again, but for integers (constants, and where a
slice starts), which become what a table of all turns says. Each operand is what the turn itself makes, or the turn
before, or what no turn makes; only what the last turn makes is used behind. The two modules compute the same: what was
found is written out again, and compared with what it was made of (`written_out`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from hlo_verify.passes.prove.repeats import LEAST, periods, runs
from hlo_verify.passes.prove.written_out import is_written_out, plain
from hlo_verify.program.ir import Fresh, Function, Module, Name, Op, TensorType, captured, fresh_in, value_types
from hlo_verify.program.op_families import RUNS_REGIONS

I32 = TensorType((), "i32")


def rolled(module: Module) -> Module | None:
    """The module with loops for what is written out turn by turn; None where nothing is."""
    main = _rolled(module.main, fresh_in(module.main), value_types(module.main))
    return None if main is None or not is_written_out(main, module.main) else replace(module, main=main, mlir=None)


Types = Mapping[Name, TensorType]


def _rolled(function: Function, fresh: Fresh, types: Types) -> Function | None:
    """A function with loops in itself and in its manual regions."""
    ops, found = [], False
    for op in function.ops:
        regions = (
            [_rolled(region, fresh, types) for region in op.regions] if op.name == "sdy.manual_computation" else []
        )
        if any(region is not None for region in regions):
            found = True
            op = replace(op, regions=tuple(new or old for new, old in zip(regions, op.regions, strict=True)))
        ops.append(op)
    whole = replace(function, ops=tuple(ops))
    other = _Turns.of(_without_idle(whole, types), fresh, types)
    return other or (whole if found else None)


def _without_idle(function: Function, types: Types) -> Function:
    """A function without conversions to the type that a value has."""
    same: dict[Name, Name] = {}
    ops = []
    inner = {name for op in function.ops for name in captured(op)}
    for op in function.ops:
        op = replace(op, operands=tuple(same.get(v, v) for v in op.operands))
        if (
            op.name == "convert"
            and not op.attributes
            and op.results[0] not in inner
            and types[op.operands[0]] == op.types[0]
        ):
            same[op.results[0]] = op.operands[0]
        else:
            ops.append(op)
    return replace(function, ops=tuple(ops), results=tuple(same.get(v, v) for v in function.results))


def _key(op: Op) -> Hashable:
    """What operations of all turns have in common; None where one is in no turn."""
    if op.name in RUNS_REGIONS or op.name == "custom_call" or captured(op):
        return None
    left = dict(op.attributes)
    if _is_integer(op):
        left.pop("value")
    if op.name == "slice" and set(left.get("strides", ())) <= {1}:
        left.pop("start_indices"), left.pop("limit_indices")
    return op.name, op.types, len(op.operands), plain(left), tuple(map(_shape, op.regions))


def _is_integer(op: Op) -> bool:
    return op.name == "constant" and op.types[0] in (I32, TensorType((), "ui32"))


def _shape(region: Function, around: Mapping[Name, int] = MappingProxyType({})) -> Hashable:
    """A region, with its values by number, those of the regions around it too."""
    number = dict(around)
    for v in (*region.arguments, *(v for op in region.ops for v in op.results)):
        number[v] = len(number)
    ops = tuple(
        (
            op.name,
            op.types,
            plain(op.attributes),
            tuple(number.get(v, -1) for v in op.operands),
            tuple(_shape(each, number) for each in op.regions),
        )
        for op in region.ops
    )
    return region.argument_types, ops, tuple(number.get(v, -1) for v in region.results)


@dataclass(slots=True, eq=False)
class _Turns:
    """Turns of so many operations each, the first of them at `start`."""

    function: Function
    fresh: Fresh
    types: Types
    start: int
    period: int
    count: int
    places: dict[Name, tuple[int, int, int]] = field(default_factory=dict)
    """Of what a turn makes: the turn, the operation in it, and the number of its result."""
    sources: dict[tuple[int, int], tuple[int, int, Name] | tuple[int, int] | Name] = field(default_factory=dict)
    """Where each operand of each operation is from (`_source`)."""

    @classmethod
    def of(cls, function: Function, fresh: Fresh, types: Types) -> Function | None:
        keys = [_key(op) for op in function.ops]
        for period in periods(keys):
            for start, length in runs(keys, period):
                for late in range(min(period, length)):
                    count = (length - late) // period + 1
                    if count < LEAST:
                        break
                    turns = cls(function, fresh, types, start + late, period, count)
                    found = turns.as_loop()
                    if found is not None:
                        return turns.with_one_more() or found
        return None

    def with_one_more(self) -> Function | None:
        """The function as a loop of one turn more, where a part of that is done behind: of a last turn, nobody writes
        what is not needed. The rest is done then, too."""
        end = self.start + self.count * self.period
        ops, behind = list(self.function.ops[:end]), list(self.function.ops[end : end + 2 * self.period])
        numbers = {op.results[0]: plain(op.attributes) for op in behind if op.name == "constant"}
        more, types, is_part = dict[Name, Hashable](), dict(self.types), False
        for n in range(self.period):
            op = self.op(self.count - 1, n)
            operands = []
            for q in range(len(op.operands)):
                source = self.sources[n, q]
                if isinstance(source, int):
                    operands.append(source)
                else:
                    turn = self.count if len(source) == 2 else self.count - 1
                    operands.append(ops[self.start + turn * self.period + source[0]].results[source[1]])
            op = replace(self._next(n), operands=tuple(operands), results=self.fresh.some(len(op.results)))
            if op.name == "constant":
                more[op.results[0]] = plain(op.attributes)
            same = [more.get(v, v) for v in operands]
            for k, other in enumerate(behind):
                if operands and _key(other) == _key(op) and same == [numbers.get(v, v) for v in other.operands]:
                    op, is_part = replace(other, operands=op.operands), True
                    del behind[k]
                    break
            types.update(zip(op.results, op.types, strict=True))
            ops.append(op)
        whole = replace(self.function, ops=(*ops, *behind, *self.function.ops[end + 2 * self.period :]))
        if not is_part:
            return None
        return replace(self, function=whole, types=types, count=self.count + 1, places={}, sources={}).as_loop()

    def _next(self, n: int) -> Op:
        """An operation as it would be in one turn more: numbers go on as they did."""
        op, before = self.op(self.count - 1, n), self.op(self.count - 2, n)
        if not _is_integer(op):
            return op
        value, earlier = (each.attributes["value"] for each in (op, before))
        return replace(op, attributes={**op.attributes, "value": np.asarray(value + (value - earlier), value.dtype)})

    def op(self, turn: int, n: int) -> Op:
        return self.function.ops[self.start + turn * self.period + n]

    def as_loop(self) -> Function | None:
        end = self.start + self.count * self.period
        for turn in range(self.count):
            for n in range(self.period):
                for k, v in enumerate(self.op(turn, n).results):
                    self.places[v] = turn, n, k
        needed: set[Name] = set(self.function.results)
        for op in self.function.ops[end:]:
            needed |= {*op.operands, *captured(op)}
        left = [v for v in needed if v in self.places]
        if any(self.places[v][0] != self.count - 1 for v in left):
            return None
        carried: dict[tuple[int, int, Name], None] = {}
        sources = self.sources
        for n in range(self.period):
            for q in range(len(self.op(0, n).operands)):
                source = self._source([self.op(turn, n).operands[q] for turn in range(self.count)])
                if source is None:
                    return None
                sources[n, q] = source
                if isinstance(source, tuple) and len(source) == 3:
                    if self.types[source[2]] != self.op(0, source[0]).types[source[1]]:
                        return None
                    carried[source] = None
        return self._written(list(carried), sources, left, end)

    def _source(self, names: Sequence[Name]) -> tuple[int, int, Name] | tuple[int, int] | Name | None:
        """Where an operand is from: a value of the same turn, one of the turn before with what is in its place in the
        first, or a value that no turn makes."""
        found = [self.places.get(v) for v in names]
        if all(place is None for place in found):
            return names[0] if len(set(names)) == 1 else None
        for back in (0, 1):
            own = {None if place is None else (place[0] + back - turn, *place[1:]) for turn, place in enumerate(found)}
            if back and found[0] is None:
                own = {
                    None if place is None else (place[0] + 1 - turn, *place[1:])
                    for turn, place in enumerate(found)
                    if turn
                }
            if len(own) == 1 and (only := own.pop()) is not None and only[0] == 0:
                return (only[1], only[2], names[0]) if back else only[1:]
        return None

    def _written(
        self,
        carried: list[tuple[int, int, Name]],
        sources: Mapping[tuple[int, int], tuple[int, int, Name] | tuple[int, int] | Name],
        left: Sequence[Name],
        end: int,
    ) -> Function | None:
        fresh, ops = self.fresh, list(self.function.ops[: self.start])
        outer: list[Op] = []
        counter, body = fresh.one(), list[Op]()
        arguments = [counter, *(fresh.one() for _ in carried)]
        own = self._in_turn(dict(zip(carried, arguments[1:], strict=True)), sources, counter, body, outer)
        # what is used behind, and is not carried for the turns themselves
        behind = [self.places[v] for v in left]
        kept = {(n, k): i for i, (n, k, _) in enumerate(carried)}
        more = [(n, k) for _, n, k in behind if (n, k) not in kept]
        types = [self.op(0, n).types[k] for n, k, _ in carried] + [self.op(0, n).types[k] for n, k in more]
        initial = [v for _, _, v in carried]
        for n, k in more:
            kept[n, k] = len(initial)
            type_ = self.op(0, n).types[k]
            value = np.zeros(type_.shape, _numpy(type_.dtype)) if _numpy(type_.dtype) is not None else None
            if value is None:
                return None
            zero = fresh.one()
            outer.append(Op("constant", (), (zero,), (type_,), {"value": value}))
            initial.append(zero)
            arguments.append(fresh.one())
        one, after = fresh.one(), fresh.one()
        body += [_number(one, 1), Op("add", (counter, one), (after,), (I32,))]
        made = [own[n, k] for n, k, _ in carried] + [own[n, k] for n, k in more]
        inner = Function(tuple(arguments), (I32, *types), tuple(body), (after, *made))
        condition = self._condition((I32, *types))
        start, ends = fresh.one(), fresh.some(len(arguments))
        outer.append(_number(start, 0))
        location = self.op(0, 0).location
        loop = Op(
            "while",
            (start, *initial),
            ends,
            (I32, *types),
            {},
            (condition, inner),
            location,
        )
        given = {v: ends[1 + kept[self.places[v][1:]]] for v in left}
        rest = [replace(op, operands=tuple(given.get(v, v) for v in op.operands)) for op in self.function.ops[end:]]
        if any(v in given for op in rest for v in captured(op)):
            return None
        whole = (*ops, *outer, loop, *rest)
        return replace(self.function, ops=whole, results=tuple(given.get(v, v) for v in self.function.results))

    def _in_turn(
        self,
        held: Mapping[tuple[int, int, Name], Name],
        sources: Mapping[tuple[int, int], tuple[int, int, Name] | tuple[int, int] | Name],
        counter: Name,
        body: list[Op],
        outer: list[Op],
    ) -> dict[tuple[int, int], Name]:
        """The names of what a turn makes, of which the operations are added to `body`."""
        own: dict[tuple[int, int], Name] = {}
        for n in range(self.period):
            op = self.op(0, n)
            operands = []
            for q in range(len(op.operands)):
                source = sources[n, q]
                operands.append(
                    source if isinstance(source, int) else held[source] if len(source) == 3 else own[source]
                )
            results = self.fresh.some(len(op.results))
            own.update({(n, k): v for k, v in enumerate(results)})
            turns = [self.op(turn, n) for turn in range(self.count)]
            body += self._turned(turns, tuple(operands), results, counter, outer)
        return own

    def _condition(self, types: tuple[TensorType, ...]) -> Function:
        """Whether there is a turn left."""
        arguments, last, test = self.fresh.some(len(types)), self.fresh.one(), self.fresh.one()
        how = {"compare_type": "SIGNED", "comparison_direction": "LT"}
        compared = Op("compare", (arguments[0], last), (test,), (TensorType((), "i1"),), how)
        return Function(arguments, types, (_number(last, self.count), compared), (test,))

    def _turned(
        self, turns: Sequence[Op], operands: tuple[Name, ...], results: tuple[Name, ...], counter: Name, outer: list[Op]
    ) -> Iterator[Op]:
        """An operation of a turn, with what differs between turns looked up in tables."""
        first = turns[0]
        if _is_integer(first):
            values = [int(op.attributes["value"]) for op in turns]
            if len(set(values)) > 1:
                yield from self._looked_up(values, first.types[0].dtype, results[0], counter, outer)
                return
        if first.name == "slice":
            starts = [op.attributes["start_indices"] for op in turns]
            if len(set(starts)) > 1:
                places = []
                for along in zip(*starts, strict=True):
                    place = self.fresh.one()
                    yield from self._looked_up(list(along), "i32", place, counter, outer)
                    places.append(place)
                sizes = {"slice_sizes": first.types[0].shape}
                yield Op("dynamic_slice", (*operands, *places), results, first.types, sizes, (), first.location)
                return
        regions = tuple(_renamed(region, self.fresh) for region in first.regions)
        yield replace(first, operands=operands, results=results, regions=regions)

    def _looked_up(
        self, values: Sequence[int], dtype: str, result: Name, counter: Name, outer: list[Op]
    ) -> Iterator[Op]:
        type_, fresh = TensorType((), dtype), self.fresh
        step = values[1] - values[0]
        if all(b - a == step for a, b in pairwise(values)) and dtype == "i32":
            if not step:
                yield _number(result, values[0])
                return
            factor, scaled, first = fresh.some(3)
            yield _number(factor, step)
            yield Op("multiply", (counter, factor), (scaled,), (I32,))
            yield _number(first, values[0])
            yield Op("add", (scaled, first), (result,), (I32,))
            return
        table, one = fresh.some(2)
        array = np.array(values, _numpy(dtype))
        outer.append(Op("constant", (), (table,), (TensorType((len(values),), dtype),), {"value": array}))
        row = TensorType((1,), dtype)
        yield Op("dynamic_slice", (table, counter), (one,), (row,), {"slice_sizes": (1,)})
        yield Op("reshape", (one,), (result,), (type_,))


def _number(name: Name, value: int) -> Op:
    return Op("constant", (), (name,), (I32,), {"value": np.array(value, np.int32)})


def _numpy(dtype: str) -> Any:
    return {"f32": np.float32, "f64": np.float64, "i32": np.int32, "ui32": np.uint32, "i1": np.bool_}.get(dtype)


def _renamed(region: Function, fresh: Fresh) -> Function:
    """A region with values of its own."""
    names: dict[Name, Name] = {}

    def new(values: Sequence[Name]) -> tuple[Name, ...]:
        names.update(zip(values, fresh.some(len(values)), strict=True))
        return tuple(names[v] for v in values)

    arguments = new(region.arguments)
    ops = []
    for op in region.ops:
        inner = tuple(_renamed(each, fresh) for each in op.regions)
        operands = tuple(names.get(v, v) for v in op.operands)
        ops.append(replace(op, operands=operands, results=new(op.results), regions=inner))
    return Function(arguments, region.argument_types, tuple(ops), tuple(names.get(v, v) for v in region.results))
