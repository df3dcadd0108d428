"""Strategies for operands: random shapes, types and values, plain or inside of an expression that wraps or folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from hlo_verify.program.element_types import DTYPES
from tests.support.functions import bounds, is_integer
from tests.support.modules import Program, Ref

Array = npt.NDArray[Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("ui8", "ui16", "ui32", "ui64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("f32", "f64")
COMPLEX = ("complex<f32>", "complex<f64>")


@dataclass(frozen=True, slots=True)
class Case:
    """A program, and its results where the reference interpreter cannot tell them."""

    program: Program
    expected: list[Array] | None = None
    may_refuse: bool = False
    """Whether the rule may say that this is unsupported."""
    partitions: int = 0
    """Where not 0, inputs and results have a first dimension for devices, `replicas` times this many."""
    replicas: int = 1


def cases(function: Callable[..., Case]) -> Callable[..., st.SearchStrategy[Case]]:
    """A strategy from a function of `draw` and more."""
    composite: Callable[..., st.SearchStrategy[Case]] = st.composite(function)
    return composite


def shapes(least: int = 0, most: int = 3, low: int = 1, high: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of that many dimensions with sizes from `low` to `high`."""
    return st.lists(st.integers(low, high), min_size=least, max_size=most).map(tuple)


def numbers(draw: Draw) -> np.random.Generator:
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def values(draw: Draw, shape: Sequence[int], dtype: str, domain: tuple[float, float] | None = None) -> Array:
    """Random elements: integers near zero and near the limits of their type, floats that are multiples of 1/4."""
    rng = numbers(draw)
    kind = np.dtype(DTYPES[dtype])
    shape = tuple(shape)
    if dtype == "i1":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if is_integer(dtype):
        lo, hi = bounds(dtype) if domain is None else (int(domain[0]), int(domain[1]))
        if domain is not None:
            return rng.integers(lo, hi, shape, endpoint=True).astype(kind)
        edges = [lo, lo + 1, -3, -1, 0, 1, 2, 5, hi - 1, hi, hi // 2, hi // 2 + 1, lo // 2]
        edges = [x for x in edges if lo <= x <= hi]
        picked = [edges[k] for k in rng.integers(0, len(edges), int(np.prod(shape)))]
        return np.array(picked, dtype=object).reshape(shape).astype(kind)
    lo, hi = domain or (-4, 4)
    if dtype.startswith("complex"):
        parts = rng.integers(int(lo * 4), int(hi * 4), (2, *shape), endpoint=True) / 4
        return (parts[0] + 1j * parts[1]).astype(kind)
    return (rng.integers(int(lo * 4), int(hi * 4), shape, endpoint=True) / 4).astype(kind)


def operand(
    draw: Draw, program: Program, shape: Sequence[int], dtype: str, domain: tuple[float, float] | None = None
) -> Ref:
    """An operand: an argument, a constant, or an expression of some. With a domain, all elements lie in it."""
    shape = tuple(shape)
    if dtype == "i1":
        dressings: tuple[Callable[..., Ref | None], ...] = _BOOLEAN
    elif is_integer(dtype):
        dressings = _INTEGER if domain is None else _BOUNDED
    else:
        dressings = _FLOAT if domain is None else _PLAIN
    found = draw(st.sampled_from(dressings))(draw, program, shape, dtype, domain)
    return found if found is not None else _argument(draw, program, shape, dtype, domain)


def _argument(draw: Draw, program: Program, shape: tuple[int, ...], dtype: str, domain: Any) -> Ref:
    return program.argument(values(draw, shape, dtype, domain))


def _constant(draw: Draw, program: Program, shape: tuple[int, ...], dtype: str, domain: Any) -> Ref:
    return program.constant(values(draw, shape, dtype, domain))


def _splat(draw: Draw, program: Program, shape: tuple[int, ...], dtype: str, domain: Any) -> Ref:
    return program.constant(np.broadcast_to(values(draw, (), dtype, domain), shape))


def _binary(name: str) -> Callable[..., Ref | None]:
    def dress(draw: Draw, program: Program, shape: tuple[int, ...], dtype: str, domain: Any) -> Ref | None:
        a = _argument(draw, program, shape, dtype, None)
        b = draw(st.sampled_from((_argument, _splat, _iota)))(draw, program, shape, dtype, None)
        if b is None:
            return None
        return program.op(name, [a, b], [(shape, dtype)])[0]

    return dress


def _iota(draw: Draw, program: Program, shape: tuple[int, ...], dtype: str, domain: Any) -> Ref | None:
    """`c * iota + k`; within the domain, if there is one."""
    if not shape:
        return None
    k = draw(st.integers(0, len(shape) - 1))
    (iota,) = program.op("iota", [], [(shape, dtype)], f"iota_dimension = {k} : i64")
    if domain is not None:
        lo, hi = int(domain[0]), int(domain[1])
        room = hi - lo - max(shape[k] - 1, 0)
        if room < 0 or not is_integer(dtype):
            return None
        start = np.full(shape, lo + draw(st.integers(0, room)), dtype=DTYPES[dtype])
        return program.op("add", [iota, program.constant(start)], [(shape, dtype)])[0]
    if draw(st.booleans()):
        return iota
    factor, start = (_splat(draw, program, shape, dtype, None) for _ in range(2))
    (scaled,) = program.op("multiply", [iota, factor], [(shape, dtype)])
    return program.op("add", [scaled, start], [(shape, dtype)])[0]


def _converted(draw: Draw, program: Program, shape: tuple[int, ...], dtype: str, domain: Any) -> Ref:
    other = draw(st.sampled_from(("i1", "i8", "ui8", "i16", "ui32", "i64")))
    inner = _INTEGER[:4] if other != "i1" else _BOOLEAN[:2]
    source = draw(st.sampled_from(inner))(draw, program, shape, other, None)
    return program.op("convert", [source], [(shape, dtype)])[0]


def _selected(draw: Draw, program: Program, shape: tuple[int, ...], dtype: str, domain: Any) -> Ref:
    condition = operand(draw, program, shape, "i1")
    a, b = (_argument(draw, program, shape, dtype, domain) for _ in range(2))
    return program.op("select", [condition, a, b], [(shape, dtype)])[0]


def _squared_iota(draw: Draw, program: Program, shape: tuple[int, ...], dtype: str, domain: Any) -> Ref | None:
    base = _iota(draw, program, shape, dtype, None)
    if base is None:
        return None
    (square,) = program.op("multiply", [base, base], [(shape, dtype)])
    return program.op("multiply", [square, base], [(shape, dtype)])[0]


def _remainder(draw: Draw, program: Program, shape: tuple[int, ...], dtype: str, domain: Any) -> Ref | None:
    if not shape:
        return None
    (iota,) = program.op("iota", [], [(shape, dtype)], f"iota_dimension = {len(shape) - 1} : i64")
    divisor = program.constant(np.full(shape, draw(st.integers(1, 3)), dtype=DTYPES[dtype]))
    back = program.constant(np.full(shape, draw(st.integers(0, 2)), dtype=DTYPES[dtype]))
    (top,) = program.op("subtract", [iota, back], [(shape, dtype)])
    return program.op(draw(st.sampled_from(("remainder", "divide"))), [top, divisor], [(shape, dtype)])[0]


def _compared(draw: Draw, program: Program, shape: tuple[int, ...], dtype: str, domain: Any) -> Ref | None:
    a = draw(st.sampled_from((_iota, _remainder)))(draw, program, shape, "i32", None)
    if a is None:
        return None
    b = program.constant(np.full(shape, draw(st.integers(0, 3)), dtype=np.int32))
    direction = draw(st.sampled_from(("EQ", "NE", "GT", "GE", "LT", "LE")))
    attribute = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    return program.op("compare", [a, b], [(shape, "i1")], attribute)[0]


def _logical(name: str) -> Callable[..., Ref]:
    def dress(draw: Draw, program: Program, shape: tuple[int, ...], dtype: str, domain: Any) -> Ref:
        arguments = [_argument(draw, program, shape, "i1", None) for _ in range(1 if name == "not" else 2)]
        return program.op(name, arguments, [(shape, "i1")])[0]

    return dress


def _negated(draw: Draw, program: Program, shape: tuple[int, ...], dtype: str, domain: Any) -> Ref:
    return program.op("negate", [_argument(draw, program, shape, dtype, None)], [(shape, dtype)])[0]


_PLAIN = (_argument, _argument, _constant, _splat)
_BOOLEAN = (*_PLAIN, _compared, _logical("and"), _logical("or"), _logical("xor"), _logical("not"))
_BOUNDED = (*_PLAIN, _iota, _selected)
_INTEGER = (
    *_PLAIN,
    _iota,
    _binary("add"),
    _binary("multiply"),
    _binary("subtract"),
    _negated,
    _converted,
    _selected,
    _squared_iota,
    _remainder,
)
_FLOAT = (*_PLAIN, _binary("add"), _binary("multiply"), _selected)
