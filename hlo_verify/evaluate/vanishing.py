"""What is 0 for some arguments, whatever else they hold, and so need not be computed, nor what it alone is made of.

If the weights of the values are 0, attention gives 0, and nothing hangs on its scores, which are the most of all that
there is to compute. That a product is 0 where one factor is holds of numbers alone: so the other factor, which is not
computed, must be seen to be one for these arguments, by what is known of every operation on the way. In real
arithmetic nothing is too large; what a loop gives is known where it surely ends (`ending`). Results rest on this; what
`zeros` says of each argument is a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntFlag

import numpy as np
from flint import arb

from hlo_verify.evaluate.blocks import Blocks
from hlo_verify.evaluate.ending import surely_ends
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.maps import Array
from hlo_verify.evaluate.numbers import is_complex, is_float, is_integer
from hlo_verify.evaluate.reductions import monoid
from hlo_verify.evaluate.state import Literals
from hlo_verify.program.ir import VANISHED, Function, Name, Op, TensorType
from hlo_verify.program.op_families import communicates_itself, is_identity


class Known(IntFlag):
    """What is sure of all elements of a tensor, on all devices."""

    NOTHING = 0
    BELOW = 1
    """Each is a number, or minus infinity."""
    NUMBER = 3
    NOT_NEGATIVE = 7
    POSITIVE = 15
    ZERO = 16 | 7


N, Z, P = Known.NUMBER, Known.ZERO, Known.POSITIVE
"""Short names, for the rules below."""

FEW = 4096
"""Balls of an argument that are looked through, one by one."""

SELF = frozenset(
    "negate sine tanh sign cbrt floor ceil round_nearest_even round_nearest_afz exponential_minus_one".split()
)
"""Functions that are defined everywhere, and 0 at 0."""

MOVED = frozenset("reshape transpose broadcast_in_dim slice reverse sdy.sharding_constraint sdy.reshard".split())
"""Operations that put elements of the first operand somewhere else."""

EXCHANGED = frozenset("optimization_barrier all_gather all_to_all".split())
"""Operations that put elements of each operand somewhere else in its own result."""


def without_vanishing(
    function: Function, arguments: Sequence[Known], literals: Literals
) -> tuple[Function, Mapping[Name, Known]]:
    """The function for arguments of which that is known, with a mark on each operation that gives nothing but zeros
    then; and what is known of values. One that communicates has no mark: whether all devices come to it still counts,
    and with zeros it costs nothing."""
    walk = _Walk(literals)
    walk.known.update(zip(function.arguments, arguments, strict=True))
    walk.through(function)
    return _marked(function, walk.known), walk.known


def known_of(blocks: Blocks | None) -> Known:
    """What is known of an argument. A zero with a sign stands for no other one: its bits may be asked for."""
    if blocks is None or blocks.values.dtype.kind == "c":
        return Known.NOTHING
    values = blocks.values
    if values.dtype == object:
        if values.size > FEW or not all(isinstance(each, arb) and each.is_exact() for each in values.flat):
            return Known.NOTHING
        values = np.array([float(each) for each in values.flat])
    low, high = (values["low"], values["high"]) if values.dtype == INTERVALS else (values, values)
    found = _between(low, high)
    return found & P if low.dtype.kind == "f" and np.signbit(low).any() else found


def _between(low: Array, high: Array) -> Known:
    """What is known of numbers between those."""
    if low.dtype.kind == "b":
        return Known.NOT_NEGATIVE
    if low.dtype.kind in "iu":
        return Z if not low.any() else P if (low > 0).all() else N
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        below = np.isfinite(high) | (high == -np.inf)
        return Known.BELOW if below.all() and not np.isnan(low).any() else Known.NOTHING
    if not low.any() and not high.any():
        return Z
    return P if (low > 0).all() else Known.NOT_NEGATIVE if (low >= 0).all() else N


def _marked(function: Function, known: Mapping[Name, Known]) -> Function:
    ops = []
    for op in function.ops:
        if op.name == "while":
            ops.append(replace(op, regions=tuple(_marked(region, known) for region in op.regions)))
        elif _vanishes(op, known):
            ops.append(replace(op, operands=(), attributes={VANISHED: True}, regions=()))
        else:
            ops.append(op)
    return replace(function, ops=tuple(ops))


def _vanishes(op: Op, known: Mapping[Name, Known]) -> bool:
    is_zero = bool(op.results and op.operands) and all(known.get(v, N) & Z == Z for v in op.results)
    return is_zero and not communicates_itself(op)


@dataclass(slots=True)
class _Walk:
    """What is known of each value of a function."""

    literals: Literals
    known: dict[Name, Known] = field(default_factory=dict)
    types: dict[Name, TensorType] = field(default_factory=dict)
    constants: dict[int, Known] = field(default_factory=dict)
    numbers: dict[Name, int] = field(default_factory=dict)
    """The integers that are constants."""

    def through(self, function: Function) -> None:
        self.types.update(zip(function.arguments, function.argument_types, strict=True))
        for op in function.ops:
            self.types.update(zip(op.results, op.types, strict=True))
            found = self._of(op)
            for value, known in zip(op.results, found, strict=True):
                self.known[value] = known

    def _of(self, op: Op) -> Sequence[Known]:
        given = [self.known.get(value, Known.NOTHING) for value in op.operands]
        if any(is_complex(type_.dtype) for type_ in op.types):
            return [Known.NOTHING] * len(op.results)
        if op.name == "while":
            return self._loop(op, given)
        if op.name == "constant":
            return [self._constant(op)]
        if op.name in EXCHANGED or is_identity(op):
            return given if len(given) == len(op.results) else [Known.NOTHING] * len(op.results)
        rule = SURE.get(op.name)
        if rule is None or len(op.results) != 1:
            return [Known.NOTHING] * len(op.results)
        found = rule(op, given, self.types)
        return [found if is_float(op.types[0].dtype) or op.name in MOVED else _of_integers(found)]

    def _constant(self, op: Op) -> Known:
        kept = self.constants.get(id(op))
        if kept is None:
            array, (type_,) = np.asarray(op.attributes["value"]), op.types
            if array.size == 1 and is_integer(type_.dtype):
                self.numbers[op.results[0]] = int(array.reshape(-1)[0])
            if not any(array.strides):
                array = array.reshape(-1)[:1]
            kept = (
                _between(array.astype(float), array.astype(float)) if is_float(type_.dtype) else _between(array, array)
            )
            if is_float(type_.dtype) and (array == 0).any():
                # 0 may stand for what a type is too narrow for; what is none has its sign in any case
                is_zero = kept == Z and not np.any(self.literals(array, type_.dtype))
                kept = kept if is_zero else kept & N
            self.constants[id(op)] = kept
        return kept

    def _loop(self, op: Op, given: Sequence[Known]) -> Sequence[Known]:
        body = op.regions[1]
        carried = list(given)
        while True:
            for region in op.regions:
                self.known.update(zip(region.arguments, carried, strict=True))
                self.through(region)
            after = [self.known.get(v, Known.NOTHING) & known for v, known in zip(body.results, carried, strict=True)]
            if after == carried:
                return carried if surely_ends(op, self.numbers) else [Known.NOTHING] * len(carried)
            carried = after


def _of_integers(known: Known) -> Known:
    """Of integers, which wrap, no more than that they are numbers, or 0, or truth values."""
    return known if known & Z == Z else known & N


Types = Mapping[Name, TensorType]
Rule = Callable[[Op, list[Known], Types], Known]


def _is(known: Known, *least: Known) -> bool:
    return all(known & each == each for each in least)


def _all(given: Sequence[Known]) -> Known:
    """What is known of each of several tensors."""
    found = Z | P
    for known in given:
        found &= known
    return found


def _first(op: Op, given: list[Known], types: Types) -> Known:
    return given[0]


def _self(op: Op, given: list[Known], types: Types) -> Known:
    return Z if _is(given[0], Z) else given[0] & N if _is(given[0], N) else Known.NOTHING


def _number(op: Op, given: list[Known], types: Types) -> Known:
    return N if _is(_all(given), N) else Known.NOTHING


def _indexed(op: Op, given: list[Known], types: Types) -> Known:
    return given[0] if all(_is(each, N) for each in given[1:]) else Known.NOTHING


def _updated(op: Op, given: list[Known], types: Types) -> Known:
    return _all(given[:2]) if all(_is(each, N) for each in given[2:]) else Known.NOTHING


def _add(op: Op, given: list[Known], types: Types) -> Known:
    a, b = given
    if _is(a, Z) or _is(b, Z):
        return b if _is(a, Z) else a
    both = a & b
    return P if _is(both, Known.NOT_NEGATIVE) and (_is(a, P) or _is(b, P)) else both & Known.NOT_NEGATIVE


def _subtract(op: Op, given: list[Known], types: Types) -> Known:
    a, b = given
    if _is(b, Z):
        return a
    if not _is(b, N):
        return Known.NOTHING
    return a & N


def _multiply(op: Op, given: list[Known], types: Types) -> Known:
    a, b = given
    if not (_is(a, N) and _is(b, N)):
        return Known.NOTHING
    if _is(a, Z) or _is(b, Z):
        return Z
    if op.operands[0] == op.operands[1]:
        return a & P if _is(a, P) else Known.NOT_NEGATIVE
    return a & b & P


def _divide(op: Op, given: list[Known], types: Types) -> Known:
    """Integers stay numbers: what they are divided by is above 0, so nothing wraps."""
    a, b = given
    return Known.NOTHING if not (_is(a, N) and _is(b, P)) else Z if _is(a, Z) else a & P


def _remainder(op: Op, given: list[Known], types: Types) -> Known:
    found = _divide(op, given, types)
    return found if _is(found, Z) else found & Known.NOT_NEGATIVE


def _contract(op: Op, given: list[Known], types: Types) -> Known:
    if not (_is(given[0], N) and _is(given[1], N)):
        return Known.NOTHING
    return Z if _is(given[0], Z) or _is(given[1], Z) else N


def _exponential(op: Op, given: list[Known], types: Types) -> Known:
    return P if _is(given[0], N) else Known.NOT_NEGATIVE if _is(given[0], Known.BELOW) else Known.NOTHING


def _power(op: Op, given: list[Known], types: Types) -> Known:
    is_real = is_float(op.types[0].dtype)
    return P if is_real and _is(given[0], P) and _is(given[1], N) else Known.NOTHING


def _scatter(op: Op, given: list[Known], types: Types) -> Known:
    is_sum = monoid(op.regions[0]) == "add"
    return _all([given[0], given[2]]) & Z if is_sum and len(given) == 3 and _is(_all(given), N) else Known.NOTHING


def _log(op: Op, given: list[Known], types: Types) -> Known:
    return N if _is(given[0], P) else Known.NOTHING


def _sqrt(op: Op, given: list[Known], types: Types) -> Known:
    return given[0] if _is(given[0], Known.NOT_NEGATIVE) else Known.NOTHING


def _rsqrt(op: Op, given: list[Known], types: Types) -> Known:
    return P if _is(given[0], P) else Known.NOTHING


def _abs(op: Op, given: list[Known], types: Types) -> Known:
    a = given[0]
    return a if _is(a, Known.NOT_NEGATIVE) else Known.NOT_NEGATIVE if _is(a, N) else Known.NOTHING


def _maximum(op: Op, given: list[Known], types: Types) -> Known:
    a, b = given
    if not (_is(a, Known.BELOW) and _is(b, Known.BELOW)):
        return Known.NOTHING
    return _all(given) if _is(_all(given), Z) else (a | b) & P


def _minimum(op: Op, given: list[Known], types: Types) -> Known:
    return _all(given) if _is(_all(given), N) else Known.NOTHING


def _select(op: Op, given: list[Known], types: Types) -> Known:
    return _all(given[1:]) if _is(given[0], N) else Known.NOTHING


def _compare(op: Op, given: list[Known], types: Types) -> Known:
    return Known.NOT_NEGATIVE if _is(_all(given), Known.BELOW) else Known.NOTHING


def _convert(op: Op, given: list[Known], types: Types) -> Known:
    is_from_float = is_float(types[op.operands[0]].dtype)
    return Known.NOTHING if is_from_float and not is_float(op.types[0].dtype) else given[0]


def _iota(op: Op, given: list[Known], types: Types) -> Known:
    return Known.NOT_NEGATIVE


def _sum(op: Op, given: list[Known], types: Types) -> Known:
    """Of a reduction or an exchange that adds or takes the largest; `given` has the initial value last, if there is
    one."""
    reducer = monoid(op.regions[0]) if op.regions else None
    if len(given) == 2 and op.name == "reduce":
        if 0 in types[op.operands[0]].shape or reducer is None:
            return Known.NOTHING
        return _maximum(op, given, types) if reducer == "maximum" else _joined(reducer, given)
    return Known.NOTHING if len(given) != 1 or reducer is None else _joined(reducer, given)


def _joined(reducer: str, given: list[Known]) -> Known:
    both = _all(given)
    if not _is(both, N):
        return Known.NOTHING
    if reducer == "add" and not _is(both, Z):
        return P if _is(given[0], P) and _is(both, Known.NOT_NEGATIVE) else both & Known.NOT_NEGATIVE
    return both if reducer in ("add", "maximum", "minimum") else N


def _permuted(op: Op, given: list[Known], types: Types) -> Known:
    """Devices that nobody sends to have zeros."""
    return given[0] & Z


def _concatenated(op: Op, given: list[Known], types: Types) -> Known:
    return _all(given)


SURE: Mapping[str, Rule] = {
    **dict.fromkeys(SELF, _self),
    **dict.fromkeys(MOVED, _first),
    "iota": _iota,
    "partition_id": _iota,
    "replica_id": _iota,
    "cosine": _number,
    "is_finite": _compare,
    "not": _number,
    "and": _number,
    "or": _number,
    "xor": _number,
    "dynamic_slice": _indexed,
    "gather": _indexed,
    "dynamic_update_slice": _updated,
    "concatenate": _concatenated,
    "pad": _concatenated,
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "remainder": _remainder,
    "dot_general": _contract,
    "convolution": _contract,
    "exponential": _exponential,
    "logistic": _exponential,
    "log": _log,
    "power": _power,
    "scatter": _scatter,
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
    "abs": _abs,
    "maximum": _maximum,
    "minimum": _minimum,
    "clamp": _number,
    "select": _select,
    "compare": _compare,
    "convert": _convert,
    "reduce": _sum,
    "all_reduce": _sum,
    "reduce_scatter": _sum,
    "collective_broadcast": _permuted,
    "collective_permute": _permuted,
}
