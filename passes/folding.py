"""Constants that a compiler computed, taken for what they were computed from.

XLA's passes fold `2 * 0.1` into the constant that is nearest to it, and `x / 3` into `x * 0.333333343`. Over the reals
these differ from the program before by a rounding. Where a constant is new in a module, and is what the module before
computes from constants alone, rounded at each step as its element type is, it is replaced by that computation; a named
assumption says so. Nothing else is: a constant that is off by more than such roundings stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from hlo_verify.ir import Function, Module, Op, TensorType, Value
from hlo_verify.passes.elements import DTYPES

Key = tuple[str, bytes]
"""An element type and the bits of an element."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A number as its element type holds it, as it is without rounding, and the operation that computes it."""

    dtype: str
    rounded: Any
    exact: Fraction
    name: str = "constant"
    operands: tuple[Computed, ...] = ()

    @property
    def key(self) -> Key:
        return self.dtype, self.rounded.tobytes()

    @property
    def is_rounded(self) -> bool:
        return Fraction(float(self.rounded)) != self.exact

    @property
    def roundings(self) -> int:
        """How many operations, each with a rounding, made it."""
        return int(bool(self.operands)) + sum(x.roundings for x in self.operands)

    def __str__(self) -> str:
        if not self.operands:
            return f"{float(self.rounded):.9g}"
        if len(self.operands) == 1:
            return f"{self.name}({self.operands[0]})"
        left, right = (f"({x})" if len(x.operands) > 1 else f"{x}" for x in self.operands)
        return f"{left} {_SIGNS[self.name]} {right}"


_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
}
_SIGNS = {"multiply": "*", "divide": "/", "add": "+", "subtract": "-"}
_SAME = frozenset({"broadcast_in_dim", "reshape", "transpose", "copy", "optimization_barrier"})
"""Operations that leave the one number of a splat as it is."""

MANY = 64
"""Of more constants than this, no pairs are tried."""


class Folded:
    """What the constants of a chain's modules were computed from, as far as it is known."""

    def __init__(self) -> None:
        self._known: dict[Key, Computed] = {}

    def readings(self, before: Module, after: Module) -> Iterator[Module]:
        """`after` with constants that it does not share with `before` as `before` computes them.

        A constant may be there before and have been folded as well, and the two have become one since: it is read as
        folded by what has come to use it; then by nothing, and then by all that uses it.
        """
        there, here = _uses(before.main), _uses(after.main)
        wanted = {key for key in here if key not in self._known and _new(key, there, here, _as_it_is)}
        for found in _computed(before.main) if wanted else ():
            if (
                found.key in wanted
                and found.operands
                and _is_near(found)
                and found.key not in map(_key, found.operands)
            ):
                wanted.remove(found.key)
                if found.is_rounded:  # else it is what it says
                    self._known[found.key] = found
        known = [key for key in here if key in self._known]
        apart = {use: self._known[key] for key in known if key not in there for use in here[key]}
        every = {use: self._known[key] for key in known for use in here[key]}
        new = (
            {use: self._known[key] for key in known for use in _new(key, there, here, seen)}
            for seen in (_as_it_is, _without_lines)
        )
        tried: list[Mapping[Use, Computed]] = []
        for meant in (*new, apart, every):
            if meant not in tried:
                tried.append(meant)
                yield _unfolded(after, meant)


@dataclass(frozen=True, slots=True)
class Use:
    """An operand of the operation that gives a value, of which it is the first result; and the operand's type."""

    user: Value
    number: int
    kind: TensorType


Seen = tuple[Any, ...]
"""What a use looks like: operation, operand, type, source line."""
Uses = Mapping[Key, Mapping[Use, Seen]]
"""Of every number that constants hold, what uses it."""


def _key(found: Computed) -> Key:
    return found.key


def _as_it_is(seen: Seen) -> Seen:
    return seen


def _without_lines(seen: Seen) -> Seen:
    return seen[:-1]


def _new(key: Key, there: Uses, here: Uses, looks: Callable[[Seen], Seen]) -> list[Use]:
    """The uses of a number that there were none of before."""
    before = set(map(looks, there.get(key, {}).values()))
    return [use for use, seen in here[key].items() if looks(seen) not in before]


def _uses(function: Function) -> Uses:
    numbers: dict[Value, tuple[Key, TensorType]] = {}
    uses: dict[Key, dict[Use, Seen]] = {}
    for op in _every(function):
        found = _literal(op)
        if found is not None:
            numbers[op.results[0]] = found.key, op.types[0]
        elif op.name in _SAME and len(op.results) == 1 and op.operands[0] in numbers:
            numbers[op.results[0]] = numbers[op.operands[0]][0], op.types[0]
        else:
            for n, operand in enumerate(op.operands):
                if operand in numbers and op.results:
                    key, kind = numbers[operand]
                    uses.setdefault(key, {})[Use(op.results[0], n, kind)] = (op.name, n, op.types[:1], str(op.location))
    return uses


def _unfolded(module: Module, meant: Mapping[Use, Computed]) -> Module:
    if not meant:
        return module
    said = dict.fromkeys(f"the constant {float(found.rounded):.9g} is {found}, rounded" for found in meant.values())
    by_user: dict[Value, list[tuple[Use, Computed]]] = {}
    for use, found in meant.items():
        by_user.setdefault(use.user, []).append((use, found))
    main = _rewritten(module.main, by_user, _Fresh(module.main))
    return replace(module, main=main, notes=(*module.notes, *said))


def _is_near(found: Computed) -> bool:
    """Whether a number is its exact value, but for a rounding for each operation."""
    finfo: Any = ml_dtypes.finfo
    unit = Fraction(float(finfo(DTYPES[found.dtype]).eps))
    error = abs(Fraction(float(found.rounded)) - found.exact)
    return error <= found.roundings * unit / 2 * abs(found.exact)


def _literal(op: Op) -> Computed | None:
    """The number that a constant holds everywhere; None for integers, infinities and arrays."""
    if op.name != "constant" or not op.types[0].dtype.startswith(("f", "bf")):
        return None
    array, kind = op.attributes["value"], op.types[0]
    if not array.size or array.dtype != DTYPES[kind.dtype]:
        return None
    if any(array.strides) and array.size > 1 and not (array == array.flat[0]).all():
        return None
    return _number(kind.dtype, array.flat[0])


def _number(dtype: str, value: Any) -> Computed | None:
    return Computed(dtype, value, Fraction(float(value))) if np.isfinite(float(value)) else None


def _scalar(dtype: str) -> Any:
    return np.dtype(DTYPES[dtype]).type


def _every(function: Function) -> Iterator[Op]:
    for op in function.ops:
        yield op
        for region in op.regions:
            yield from _every(region)


def _computed(function: Function) -> Iterator[Computed]:
    """What a module computes from constants alone; then what it would by joining two operations on constants."""
    known: dict[Value, Computed] = {}
    for op in _every(function):
        found = _of(op, known)
        if found is not None:
            known[op.results[0]] = found
            yield found
    apart = list({(x.key, x.exact): x for x in known.values()}.values())
    for x in apart:
        one = _number(x.dtype, _scalar(x.dtype)(1))
        yield from _apply("divide", (one, x)) if one is not None else ()
    if len(apart) <= MANY:
        for name, (x, y) in product(_BINARY, product(apart, apart)):
            yield from _apply(name, (x, y)) if x.dtype == y.dtype else ()


def _of(op: Op, known: Mapping[Value, Computed]) -> Computed | None:
    if not op.operands:
        return _literal(op)
    operands = [known.get(v) for v in op.operands]
    if len(op.results) != 1 or None in operands:
        return None
    given = tuple(x for x in operands if x is not None)
    if op.name in _SAME and len(given) == 1:
        return given[0]
    if op.name == "convert" and op.types[0].dtype in DTYPES and op.types[0].dtype.startswith(("f", "bf")):
        rounded = given[0].rounded.astype(DTYPES[op.types[0].dtype])
        return Computed(op.types[0].dtype, rounded, given[0].exact, "convert", given)
    return next(_apply(op.name, given), None)


def _apply(name: str, operands: tuple[Computed, ...]) -> Iterator[Computed]:
    """An operation on two numbers, where it has a result."""
    compute = _BINARY.get(name)
    if compute is None or len(operands) != 2 or (name == "divide" and not operands[1].exact):
        return
    x, y = operands
    with np.errstate(all="ignore"):
        rounded = _scalar(x.dtype)(compute(x.rounded, y.rounded))
    if np.isfinite(float(rounded)):
        yield Computed(x.dtype, rounded, compute(x.exact, y.exact), name, operands)


# Writing it out


class _Fresh:
    """Numbers for new values."""

    def __init__(self, main: Function) -> None:
        own = [v for op in _every(main) for v in (*op.results, *(a for r in op.regions for a in r.arguments))]
        self._next = 1 + max((*main.arguments, *own), default=-1)

    def __call__(self) -> Value:
        self._next += 1
        return self._next - 1


def _rewritten(function: Function, meant: Mapping[Value, Iterable[tuple[Use, Computed]]], fresh: _Fresh) -> Function:
    ops: list[Op] = []
    for op in function.ops:
        operands = list(op.operands)
        for use, found in meant.get(op.results[0], ()) if op.results else ():
            ops += _written_out(found, use.kind, op, fresh)
            operands[use.number] = ops[-1].results[0]
        regions = tuple(_rewritten(region, meant, fresh) for region in op.regions)
        ops.append(replace(op, operands=tuple(operands), regions=regions))
    return replace(function, ops=tuple(ops))


def _written_out(found: Computed, kind: TensorType, user: Op, fresh: _Fresh) -> Iterable[Op]:
    """The operations that compute a number, and then give it the type of an operand of some operation."""
    ops: list[Op] = []

    def add(name: str, operands: tuple[Value, ...], type_: TensorType, attributes: Mapping[str, Any]) -> Value:
        new = Op(name, operands, (fresh(),), (type_,), attributes, location=user.location, source=user.source)
        ops.append(new)
        return new.results[0]

    def write(x: Computed) -> Value:
        operands = tuple(map(write, x.operands))
        attributes = {} if operands else {"value": np.array(x.rounded, DTYPES[x.dtype])}
        return add(x.name, operands, TensorType((), x.dtype), attributes)

    add("broadcast_in_dim", (write(found),), kind, {"broadcast_dimensions": ()})
    return ops
