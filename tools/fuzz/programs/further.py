"""More operations that random programs are made of: windows and gaps, shifts, batches, complex numbers, random bits."""

from __future__ import annotations

from tools.fuzz.programs.maker import Maker
from tools.fuzz.programs.program import COMPLEX, Kind
from tools.fuzz.programs.steps import binary, reducers


def _tensor(maker: Maker, is_bool: bool = True) -> tuple[int, int] | None:
    """A value, and one of its dimensions."""
    a = maker.some(lambda k: 0 < len(k.shape) < 4 and (is_bool or k.dtype != "i1"))
    return None if a is None else (a, maker.random.randrange(len(maker.kind(a).shape)))


def gaps(maker: Maker) -> list[int]:
    """Padding between elements, and at the ends, where it may take some away."""
    found = _tensor(maker)
    if found is None:
        return []
    (a, dim), rng = found, maker.random
    rank, n = len(maker.kind(a).shape), maker.kind(a).shape[found[1]]
    value = maker.builder.constant(maker.number(maker.kind(a).dtype), maker.kind(a).shaped())
    between = rng.choice([1, 1, 2])
    most = n + max(0, n - 1) * between
    ends = [rng.choice([0, 0, 1, -1]), rng.choice([0, 0, 1, -1, -2])]
    ends = ends if most + min(ends[0], 0) + min(ends[1], 0) >= 0 else [0, 0]
    low, high, inner = ([x if k == dim else 0 for k in range(rank)] for x in (*ends, between))
    wide = maker.builder.pad(a, value, low, high, inner)
    if rng.random() < 0.5:
        return [wide]
    shape = maker.kind(wide).shape
    strides = [between + 1 if k == dim else 1 for k in range(rank)]
    return [wide, maker.builder.slice(wide, [0] * rank, shape, strides)]


def window(maker: Maker) -> list[int]:
    found = _tensor(maker)
    if found is None:
        return []
    (a, dim), rng = found, maker.random
    kind = maker.kind(a)
    size = rng.choice([1, 2, 2, 3, max(1, kind.shape[dim])])
    running = rng.random() < 0.3  # as a cumulative sum is written
    edges = (size - 1, 0) if running else (rng.choice([0, 0, 1, -1]), rng.choice([0, 1, 2]))
    if kind.shape[dim] + min(edges[0], 0) + min(edges[1], 0) < 0:
        edges = (0, 0)
    name = rng.choice(reducers(kind))
    return [maker.builder.windows(a, dim, size, name, edges, *(1 if running else rng.choice([1, 1, 2]) for _ in "sd"))]


def shift(maker: Maker) -> list[int]:
    """Elements move along a dimension; what comes in at the end is a constant, mostly zero."""
    found = _tensor(maker)
    if found is None:
        return []
    (a, dim), rng = found, maker.random
    kind = maker.kind(a)
    by = rng.choice([1, 1, -1, 2, -2])
    if abs(by) > kind.shape[dim]:
        return []
    value = maker.builder.constant(0 if rng.random() < 0.7 else maker.number(kind.dtype), kind.shaped())
    low, high = ([x if k == dim else 0 for k in range(len(kind.shape))] for x in (by, -by))
    moved = maker.builder.pad(a, value, low, high)
    if kind.dtype == "i1" or rng.random() < 0.4:
        return [moved]
    return [maker.builder.same(rng.choice(["add", "subtract", "maximum"]), a, moved)]


def batch_dot(maker: Maker) -> list[int]:
    """Products of matrices, for each number of a batch."""
    a = maker.some(lambda k: len(k.shape) == 2 and k.dtype != "i1")
    if a is None:
        return []
    (rows, columns), rng, kind = maker.kind(a).shape, maker.random, maker.kind(a)
    count = rng.choice([1, 2, 4])
    b = maker.of_type(kind.dtype, (rows, columns))
    scale = maker.builder.op("iota", (), kind.shaped(count, rows, columns), dim=rng.randrange(3))
    one, other = (maker.builder.broadcast(v, (count, rows, columns), (1, 2)) for v in (a, b))
    one = maker.builder.same("multiply" if rng.random() < 0.5 else "add", one, scale)
    shape = kind.shaped(count, rows, rows)
    return [maker.builder.op("dot_general", (one, other), shape, batch=((0,), (0,)), contract=((2,), (2,)))]


def complex_numbers(maker: Maker) -> list[int]:
    """Sums and products of complex numbers, of which later operations get the parts."""
    x = maker.some(lambda k: k.dtype == "f32")
    if x is None:
        return binary(maker)
    rng, builder, shape = maker.random, maker.builder, maker.kind(x).shape
    kind, values = Kind(shape, COMPLEX), []
    for _ in range(2):
        parts = [maker.of_type("f32", shape), maker.of_type("f32", shape)]
        parts[0] = x if not values else parts[0]
        values.append(builder.op("complex", parts, kind))
    for _ in range(rng.randrange(1, 4)):
        name = rng.choice("add subtract multiply multiply negate conjugate reduce".split())
        a, b = rng.choice(values), rng.choice(values)
        if name == "negate":
            values.append(builder.same("negate", a))
        elif name == "conjugate":
            real, imaginary = (builder.op(part, (a,), kind.of("f32")) for part in ("real", "imag"))
            values.append(builder.op("complex", (real, builder.same("negate", imaginary)), kind))
        elif name == "reduce" and shape:
            dim = rng.randrange(len(shape))
            total = builder.reduce(a, [dim], "add")
            values.append(builder.broadcast(total, shape, [k for k in range(len(shape)) if k != dim]))
        else:
            values.append(builder.same(name if name != "reduce" else "add", a, b))
    return [builder.op(part, (values[-1],), kind.of("f32")) for part in ("real", "imag")]


def real(maker: Maker) -> list[int]:
    """Quotients, remainders and angles of floats, by what is nowhere zero."""
    a = maker.some(lambda k: k.is_float)
    if a is None:
        return []
    rng, builder, kind = maker.random, maker.builder, maker.kind(a)
    b = builder.like(rng.choice([2.0, -3.0, 0.5, 1.0, 7.0]), a)
    if rng.random() < 0.4:
        other = maker.of_type(kind.dtype, kind.shape)
        b = builder.same("add", builder.same("multiply", other, other), builder.like(1.0, a))
    if rng.random() < 0.2:
        return [builder.same("log_plus_one", builder.same("abs", a))]
    return [builder.same(rng.choice(["divide", "divide", "remainder", "atan2"]), a, b)]


def random_bits(maker: Maker) -> list[int]:
    """Bits that a state says; the state after them may say others."""
    rng, builder = maker.random, maker.builder
    state = builder.constant([rng.randrange(2), rng.randrange(2)], Kind((2,), "ui64"))
    kinds = [Kind((2,), "ui64"), Kind(maker.base, "ui32")]
    state, found = builder.many("rng_bit_generator", [state], kinds)
    if rng.random() < 0.4:
        state, found = builder.many("rng_bit_generator", [state], kinds)
    return [builder.convert(found, maker.dtype())]


def mask(maker: Maker) -> list[int]:
    """A value, and an infinity along a part of one dimension, as of scores that are left out."""
    a = maker.some(lambda k: k.is_float and bool(k.shape) and min(k.shape) > 0)
    if a is None:
        return []
    kind, b = maker.kind(a), maker.builder
    dim = maker.random.randrange(len(kind.shape))
    at = b.op("iota", (), kind.of("i32"), dim=dim)
    here = b.compare(maker.random.choice(["LT", "GE"]), at, b.like(maker.random.randrange(kind.shape[dim] + 1), at))
    infinity = b.like(maker.random.choice([float("-inf"), float("-inf"), float("inf")]), a)
    return [b.op("select", (here, a, infinity), kind)]
