"""Numbers that a program computes of the elements of tables, in loops too: what a person has computed beforehand.

A sampler in a loop takes `s = sigmas[i]`, and computes `(sigmas[i + 1] - s) / s`; written out, the same numbers are
constants. Of a value that holds an element of a table, or is computed of such, all numbers are listed that it may be;
which element goes with which is left open. A constant is one of them only within the roundings of how it is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from hlo_verify.limits import allows, limit_of
from hlo_verify.passes.chain.constant_values import BINARY, UNARY, Computed, applied, function_of, number_of
from hlo_verify.program.element_types import DTYPES
from hlo_verify.program.ir import Function, Name, Op
from hlo_verify.program.op_families import KEEPS_SPLATS, LOOKUPS, MOVES, RESHAPES, SLICES

MOVED = KEEPS_SPLATS | LOOKUPS | MOVES | RESHAPES | SLICES

FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
_OTHER_WAY = {"rsqrt": ("sqrt",), "sqrt": ("rsqrt",)}
"""What the other program divides by where this one multiplies."""

Numbers = tuple[Computed, ...]


Whole = tuple[int, ...]


def numbers_of_elements(function: Function) -> list[Computed]:
    """The numbers that values of a function and its regions may be that depend on no argument, each once."""
    known: dict[Name, Numbers] = {}
    _follow(function, known, {})
    return list({(x.key, x.exact): x for numbers in known.values() for x in numbers}.values())


def _follow(function: Function, known: dict[Name, Numbers], whole: dict[Name, Whole]) -> None:
    for op in function.ops:
        found = _of(op, known)
        if op.name == "convert" and op.operands[0] in whole and op.types[0].dtype in FLOATS:
            each = np.array(whole[op.operands[0]], DTYPES[op.types[0].dtype])
            found = _once(x for x in (number_of(op.types[0].dtype, n) for n in each) if x is not None)
        if found and allows("joined_constants", len(found)):
            known[op.results[0]] = found
        integers = _integers(op, whole)
        if integers and allows("joined_constants", len(integers)):
            whole[op.results[0]] = integers
        if op.name == "while":
            whole.update(_counters(op, whole))
        for region in op.regions:
            given = dict(zip(region.arguments, op.operands, strict=False))
            stays = {a for a, b in zip(region.arguments, region.results, strict=False) if a == b}
            for argument, value in given.items():
                if value in known and (op.name != "while" or argument in stays or len(region.ops) == 0):
                    known[argument] = known[value]
            _follow(region, known, whole)


def _integers(op: Op, whole: Mapping[Name, Whole]) -> Whole:
    """The integers that a value may be, if they are few."""
    if op.name == "iota" and op.types[0].shape[op.attributes["iota_dimension"]] <= limit_of("joined_constants"):
        return tuple(range(op.types[0].shape[op.attributes["iota_dimension"]]))
    if op.name == "constant" and op.types[0].dtype in ("i32", "i64"):
        array = np.asarray(op.attributes["value"])
        return tuple(map(int, np.unique(array))) if array.size <= limit_of("joined_constants") else ()
    given = [whole.get(v, ()) for v in op.operands]
    if not given or not all(given) or len(op.results) != 1:
        return ()
    if op.name in MOVED:
        return given[0]
    if op.name in BINARY and op.name != "divide" and len(given[0]) * len(given[1]) <= limit_of("joined_constants"):
        return tuple({int(BINARY[op.name](x, y)) for x in given[0] for y in given[1]})
    return ()


def _counters(op: Op, whole: Mapping[Name, Whole]) -> dict[Name, Whole]:
    """What is carried by a loop that goes on while one of these is below a number, and grows by 1 each turn."""
    condition, body = op.regions
    test = next((inner for inner in condition.ops if inner.results == condition.results), None)
    if test is None or test.name != "compare" or test.attributes["comparison_direction"] != "LT":
        return {}
    known = {
        **whole,
        **{each.results[0]: _integers(each, {}) for each in (*condition.ops, *body.ops) if not each.operands},
    }
    made = {inner.results[0]: inner for inner in body.ops if inner.name == "add"}
    starts: dict[Name, int] = {}
    for given, argument, result in zip(op.operands, body.arguments, body.results, strict=True):
        step = made.get(result)
        others = [v for v in step.operands if v != argument] if step is not None else []
        if len(others) == 1 and known.get(others[0]) == (1,) and len(whole.get(given, ())) == 1:
            starts[argument] = whole[given][0]
    if test.operands[0] not in condition.arguments:
        return {}
    tested, end = body.arguments[condition.arguments.index(test.operands[0])], known.get(test.operands[1], ())
    turns = end[0] - starts[tested] if tested in starts and len(end) == 1 else 0
    if not 0 < turns <= limit_of("joined_constants"):
        return {}
    return {argument: tuple(range(start, start + turns)) for argument, start in starts.items()}


def _of(op: Op, known: Mapping[Name, Numbers]) -> Numbers:
    if op.name == "constant":
        return _elements(op)
    if len(op.results) != 1 or not op.operands or op.operands[0] not in known:
        return ()
    first = known[op.operands[0]]
    if op.name == "concatenate":
        given = [known.get(v, ()) for v in op.operands]
        return _once(x for numbers in given for x in numbers) if all(given) else ()
    if op.name in MOVED or (op.name == "convert" and op.types[0].dtype == first[0].dtype):
        return first
    if op.name in UNARY:
        made = (function_of(name, x) for name in (op.name, *_OTHER_WAY.get(op.name, ())) for x in first)
        return _once(x for x in made if x is not None)
    if op.name == "chlo.square":
        return _once(each for x in first for each in applied("multiply", (x, x)))
    if op.name in BINARY and op.operands[1] in known:
        second = known[op.operands[1]]
        if len(first) * len(second) > limit_of("joined_constants"):
            return ()
        if op.operands[0] == op.operands[1]:
            return _once(each for x in first for each in applied(op.name, (x, x)))
        return _once(each for x in first for y in second for each in applied(op.name, (x, y)))
    return ()


def _once(numbers: Iterable[Computed]) -> Numbers:
    return tuple({(x.key, x.exact): x for x in numbers}.values())


def _elements(op: Op) -> Numbers:
    """The numbers that a constant holds, if they are few."""
    type_, array = op.types[0], np.asarray(op.attributes["value"])
    if type_.dtype not in FLOATS or array.dtype != DTYPES[type_.dtype] or not array.size:
        return ()
    flat = array.reshape(-1)[:1] if not any(array.strides) else array.reshape(-1)
    if flat.size > limit_of("joined_constants"):
        return ()
    found = [number_of(type_.dtype, x) for x in flat]
    return _once(x for x in found if x is not None) if None not in found else ()
