"""Scales: of what is quantized, and of the loss.

Of each array it is known of which tensors its elements are (`origins`), and of a scale, from which tensors' largest
values it was found (`sources`). And for each scalar that may be a loss scale it is known with which power of it an
array grows (`powers`): gradients of a loss times `s` grow with the first power, and divided by `s` with none.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from hlo_verify.diagnostics import Precision
from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.shapes import Array
from hlo_verify.linter.finding import Finding, at
from hlo_verify.linter.placement.opcodes import is_elementwise, operation
from hlo_verify.linter.precision.digits import DIGITS, QUANTIZED
from hlo_verify.linter.precision.powers import Powers, joined, power_of
from hlo_verify.linter.precision.sums import BACKWARD, DIFFERENTIATED
from hlo_verify.linter.reducers import reducer_of
from hlo_verify.program.op_families import COLLECTIVES

DECLARED = ("amax", "scale", "history", "quant")
"""In names of arguments: what is meant to be a scale of an earlier step."""
MOST_ORIGINS = 8

MOVES = frozenset(
    "convert copy bitcast reshape transpose broadcast slice dynamic-slice concatenate pad reverse gather".split()
)
_ROUNDS = frozenset("clamp maximum minimum round-nearest-even round-nearest-afz floor ceil select".split())
"""Between the division by a scale and the cast."""

Origins = frozenset[int] | None
"""Numbers of tensors; None if there are too many."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a scale was found from: the largest value of a tensor (`number`), or an argument of the module."""

    number: int
    is_argument: bool = False


@dataclass(frozen=True, slots=True)
class Quotient:
    """An array of tensor `origins` over a scale that was found from `sources`, in instruction `name`."""

    origins: frozenset[int]
    sources: frozenset[Source]
    name: str


@dataclass(frozen=True, slots=True)
class Scaled:
    """What is known of an array. `number` is its own: equal ones are computed alike. `is_small`: many of its elements
    are one. `constant` is what all elements are."""

    number: int
    origins: Origins = None
    sources: frozenset[Source] | None = None
    is_small: bool = False
    constant: float | None = None
    quotient: Quotient | None = None
    is_gradient: bool = False
    powers: Powers = field(default_factory=dict)


@dataclass
class Scales:
    """The facts about scales, and what is found on the way: `entered` are scalars that gradients are multiplied with,
    by their symbols with where; `short` those of gradients in f16 or less, `removed` those that are divided out of some
    gradients, and `mixed` is where gradients that grow with one meet what does not."""

    settled: bool = True
    found: list[Finding] = field(default_factory=list)
    parameters: list[Instruction] = field(default_factory=list)
    entered: dict[str, Instruction] = field(default_factory=dict)
    short: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    mixed: dict[tuple[str, str], Instruction] = field(default_factory=dict)
    symbols: dict[str, Instruction] = field(default_factory=dict)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _arguments: dict[int, Instruction] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    def unknown(self) -> Scaled:
        return Scaled(-1, powers={"": None})

    def argument(self, number: int, parameter: Instruction, shape: Array) -> Scaled:
        self.parameters.append(parameter)
        mine = self._number(("argument", number), parameter.op_name or str(parameter))
        self._arguments[mine] = parameter
        is_scalar = shape.count == 1 and shape.dtype in DIGITS
        powers: Powers = {}
        if is_scalar:
            symbol = parameter.op_name or f"argument {number}"
            self.symbols[symbol] = parameter
            powers = {symbol: Fraction(1)}
        source = frozenset((Source(number, is_argument=True),))
        return Scaled(mine, frozenset((mine,)), source, is_scalar, powers=powers)

    def carried(self, loop: Instruction, part: int, start: Scaled) -> Scaled:
        return start

    def either(self, where: Instruction, part: int, one: Scaled, other: Scaled) -> Scaled:
        if one == other:
            return one
        number = one.number
        if one.number != other.number:
            number = self._number((where.name, part, where.opcode), str(where))
        return Scaled(
            number,
            _union(one.origins, other.origins) if one.number == other.number else frozenset((number,)),
            _merged(one.sources, other.sources),
            one.is_small and other.is_small,
            one.constant if one.constant == other.constant else None,
            None,
            one.is_gradient or other.is_gradient,
            joined([_neutral(one), _neutral(other)]),
        )

    def left(self, loop: Instruction, part: int, start: Scaled, after: Scaled) -> Scaled:
        return after

    def computed(self, i: Instruction, given: Sequence[Scaled], shape: Array, part: int) -> Scaled:
        number = self._own_number(i, given, part)
        constant = _constant(i, given)
        is_gradient = any(one.is_gradient for one in given) or BACKWARD in i.op_name
        found = Scaled(
            number,
            self._origins(i, given, number),
            self._sources(i, given),
            _is_small(i, given, shape),
            constant,
            self._quotient(i, given),
            is_gradient,
        )
        powers, mixed = power_of(i, [_neutral(one) for one in given])
        if BACKWARD in i.op_name:
            self._enter(i, given, powers)
        if self.settled:
            self._note(i, given, powers, mixed)
            if i.opcode == "convert" and shape.dtype in QUANTIZED and given[0].quotient is not None:
                self._quantized(i, given[0].quotient, shape)
        return replace(found, powers=powers)

    # Of what is quantized

    def _number(self, key: Hashable, name: str) -> int:
        number = self._numbers.setdefault(key, len(self._numbers))
        self._names.setdefault(number, name)
        return number

    def _own_number(self, i: Instruction, given: Sequence[Scaled], part: int) -> int:
        """Equal for what is computed alike of the same; else its own."""
        if i.opcode in ("convert", "copy", "bitcast", "reshape") and given:
            return given[0].number
        known = all(one.number >= 0 for one in given)
        if known and is_elementwise(i.opcode) and given:
            key: Hashable = (i.opcode, tuple(one.number for one in given), i.opcode == "compare" and i.rest[:40])
        elif i.opcode == "constant" and len(i.given) < 40:
            key = ("constant", i.given)
        else:
            key = (i.computation.name, i.name, part, tuple(one.number for one in given))
        return self._number(key, str(i))

    def _origins(self, i: Instruction, given: Sequence[Scaled], number: int) -> Origins:
        if i.opcode in MOVES or operation(i.opcode.removesuffix("-start")) in COLLECTIVES or i.opcode in _ROUNDS:
            found: Origins = frozenset()
            for one in given[:1] if i.opcode in ("dynamic-slice", "gather", "slice") else given:
                found = _union(found, one.origins if one.constant is None else frozenset())
            return found
        if i.opcode in ("abs", "negate", "sign", "is-finite") and given:
            return given[0].origins
        return frozenset((number,))

    def _sources(self, i: Instruction, given: Sequence[Scaled]) -> frozenset[Source] | None:
        if i.opcode in ("constant", "iota"):
            return frozenset()
        if i.opcode == "reduce" and reducer_of(i) in ("maximum", "minimum") and given:
            if given[0].is_small and given[0].sources is not None:
                return given[0].sources
            mine = None if given[0].origins is None else frozenset(map(Source, given[0].origins))
            before = frozenset(one for one in given[0].sources or () if not one.is_argument)
            return None if mine is None else _merged(mine, before)
        if is_elementwise(i.opcode) or i.opcode in MOVES or operation(i.opcode.removesuffix("-start")) in COLLECTIVES:
            found: frozenset[Source] | None = frozenset()
            for one in given:
                found = _merged(found, one.sources)
            return found
        return None

    def _quotient(self, i: Instruction, given: Sequence[Scaled]) -> Quotient | None:
        if i.opcode in ("multiply", "divide") and len(given) == 2:
            pairs = [(given[0], given[1]), *([(given[1], given[0])] if i.opcode == "multiply" else [])]
            for value, scale in pairs:
                if scale.is_small and scale.constant is None and not value.is_small and value.origins and scale.sources:
                    return Quotient(value.origins, scale.sources, i.name)
            return None
        if i.opcode in MOVES or i.opcode in _ROUNDS:
            found = {one.quotient for one in given if one.quotient is not None}
            return found.pop() if len(found) == 1 else None
        return None

    def _quantized(self, i: Instruction, one: Quotient, shape: Array) -> None:
        extremes = {source.number for source in one.sources if not source.is_argument}
        if extremes & one.origins:
            return
        of = ", ".join(sorted(self._names.get(number, "?") for number in one.origins))
        named = [
            self.parameters[source.number]
            for source in sorted(one.sources, key=lambda s: s.number)
            if source.is_argument
        ]
        named += [self._arguments[number] for number in sorted(extremes & self._arguments.keys())]
        if any(word in argument.op_name.lower() for argument in named for word in DECLARED):
            return
        if extremes:
            others = ", ".join(sorted(self._names.get(number, "?") for number in extremes))
            message = f"{of} is quantized to {shape.dtype} with a scale that was found from the values of {others}"
        else:
            names = ", ".join(argument.op_name or str(argument) for argument in named)
            message = (
                f"{of} is quantized to {shape.dtype} with a scale that comes of {names}: it is of an earlier step, and "
                "nothing declares that"
            )
        self.found.append(at(i, Precision.SCALE_OF_ANOTHER, f"{message}; the way: %{one.name}, {i}", one.name))

    # Of the loss

    def _enter(self, i: Instruction, given: Sequence[Scaled], powers: Powers) -> None:
        """Note a scalar argument that the backward pass begins with, and what it is computed in."""
        for one in given:
            alone = [symbol for symbol, power in one.powers.items() if power]
            if one.is_small and len(alone) == 1 and alone[0] in self.symbols and not one.is_gradient:
                self.entered.setdefault(alone[0], i)
        if _dtype(i) == "f16" or _dtype(i) in QUANTIZED:
            self.short |= {symbol for symbol, power in powers.items() if power}

    def _note(self, i: Instruction, given: Sequence[Scaled], powers: Powers, mixed: Sequence[str]) -> None:
        if not mixed and i.opcode not in ("multiply", "divide"):
            return
        if any(word in i.op_name for word in DIFFERENTIATED):
            return
        for symbol in mixed:
            grown = [one for one in given if one.powers.get(symbol)]
            others = [one for one in given if not one.powers.get(symbol) and one.constant is None]
            if others and any(one.is_gradient for one in grown):
                self.mixed.setdefault((symbol, i.location or i.name), i)
        if i.opcode in ("multiply", "divide"):
            for one in given:
                if one.is_gradient:
                    self.removed |= {s for s, power in one.powers.items() if power and not powers.get(s, Fraction(0))}

    def finish(self) -> None:
        """Say where gradients still have a loss scale. That a scalar of the model is one, and not a weight of a loss,
        needs a sign: it is divided out of other gradients, they are in f16 or fp8, or it is called so."""
        for (symbol, _), i in self.mixed.items():
            if symbol not in self.entered:
                continue
            if symbol in self.removed or symbol in self.short or "scale" in symbol.lower():
                begin = self.entered[symbol]
                message = (
                    f"{i} adds gradients that are multiplied with {symbol} to what is not: {begin} multiplies with it, "
                    "and nothing divides by it on the way"
                )
                self.found.append(at(i, Precision.SCALE_NOT_REMOVED, message, begin))


def _neutral(one: Scaled) -> Mapping[str, Fraction | None] | None:
    """The powers of an array; None of zero and infinity, which grow with any."""
    return None if one.constant in (0.0, float("inf"), float("-inf")) else one.powers


def _dtype(i: Instruction) -> str:
    return i.shape.dtype if isinstance(i.shape, Array) else ""


def _union(one: Origins, other: Origins) -> Origins:
    found = None if one is None or other is None else one | other
    return None if found is None or len(found) > MOST_ORIGINS else found


def _merged(one: frozenset[Source] | None, other: frozenset[Source] | None) -> frozenset[Source] | None:
    found = None if one is None or other is None else one | other
    return None if found is None or len(found) > MOST_ORIGINS else found


def _constant(i: Instruction, given: Sequence[Scaled]) -> float | None:
    if i.opcode == "constant":
        text = i.given.strip()
        return float(text) if re.fullmatch(r"-?(\d[\d.]*(e[+-]?\d+)?|inf)", text) else None
    if i.opcode in MOVES and i.opcode not in ("gather", "concatenate", "pad") and given:
        return given[0].constant
    return None


def _is_small(i: Instruction, given: Sequence[Scaled], shape: Array) -> bool:
    """Whether many elements are surely one: a scalar, what is broadcast, and what is computed of such alone."""
    if shape.count == 1 or i.opcode == "constant":
        return True
    if i.opcode == "broadcast":
        before = next(iter(i.given_shapes), None)
        return given[0].is_small or (isinstance(before, Array) and before.count < shape.count)
    if i.opcode == "reduce":
        return True
    return bool(given) and all(one.is_small for one in given) and (is_elementwise(i.opcode) or i.opcode in MOVES)
