"""With which power of a scalar arrays grow: what is linear in `s` with the first, `1/s` with the minus first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from hlo_verify.hlo.module import Instruction

Powers = Mapping[str, Fraction | None]
"""By the scalar's symbol; None where an array is no power of it. What is not there is the power 0; `""` with None is
said of what is not known at all."""

_SAME = frozenset(
    "abs all-gather all-gather-start all-reduce all-reduce-start all-to-all bitcast broadcast collective-permute "
    "collective-permute-start convert copy gather negate real reduce reduce-precision reduce-scatter reshape reverse "
    "slice transpose dynamic-slice reduce-window imag".split()
)
"""Operations whose result grows as their first operand does."""
_ALIKE = frozenset("add subtract maximum minimum concatenate pad dynamic-update-slice clamp scatter atan2".split())
"""Operations whose operands have to grow alike."""
_TIMES = frozenset(("multiply", "dot", "convolution"))
_ROOTS = {"sqrt": Fraction(1, 2), "rsqrt": Fraction(-1, 2), "cbrt": Fraction(1, 3)}
_NONE = frozenset(("is-finite", "sign", "constant", "iota", "rng", "rng-bit-generator"))


def joined(all_of: Sequence[Powers | None]) -> Powers:
    """The powers that arrays share; None of an array fits any power."""
    known = [one for one in all_of if one is not None]
    if not known or all(one == known[0] for one in known):
        return known[0] if known else {}
    symbols = {symbol for one in known for symbol in one}
    found = {symbol: {_of(one, symbol) for one in known} for symbol in symbols}
    return {symbol: powers.pop() if len(powers) == 1 else None for symbol, powers in found.items()}


def power_of(i: Instruction, given: Sequence[Powers | None]) -> tuple[Powers, list[str]]:
    """The powers of a result, and the symbols of which operands have different ones that should be alike. None of an
    operand fits any power."""
    opcode = i.opcode
    if opcode in _NONE or not given or not any(given):
        return {}, []
    known = [one if one is not None else {} for one in given]
    if opcode in _SAME:
        return known[0], []
    if opcode in _ALIKE or opcode == "select":
        branches = list(given[1:] if opcode == "select" else given)
        powers = joined(branches)
        if opcode not in ("add", "subtract", "maximum", "minimum"):
            return powers, []
        return powers, [s for s in powers if powers[s] is None and all(_of(b, s) is not None for b in branches if b)]
    if opcode in _TIMES or opcode == "divide":
        sign = -1 if opcode == "divide" else 1
        return _combined(known[0], known[1], sign) if len(known) == 2 else _lost(known), []
    if opcode in _ROOTS:
        return {s: None if power is None else power * _ROOTS[opcode] for s, power in known[0].items()}, []
    return _lost(known), []


def _of(one: Powers, symbol: str) -> Fraction | None:
    return None if "" in one else one.get(symbol, Fraction(0))


def _combined(one: Powers, other: Powers, sign: int) -> Powers:
    found: dict[str, Fraction | None] = {}
    for symbol in {*one, *other}:
        a, b = _of(one, symbol), _of(other, symbol)
        power = None if a is None or b is None else a + sign * b
        if power != 0:
            found[symbol] = power
    return found


def _lost(known: Sequence[Powers]) -> Powers:
    """Of a function that is no power, of what does not grow at all, nothing grows."""
    return {symbol: None for one in known for symbol, power in one.items() if power != 0}
