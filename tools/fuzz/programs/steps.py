"""Operations that random programs are made of, a function for each kind of them; it returns what later ones may use."""

from __future__ import annotations

from collections.abc import Callable

from tools.fuzz.programs.maker import DIRECTIONS, Maker
from tools.fuzz.programs.program import INTEGERS, Kind

BINARY = "add subtract multiply maximum minimum and or xor mulhi".split()
UNARY = "negate abs not sign popcnt count_leading_zeros".split()
REAL_BINARY = "add subtract multiply maximum minimum".split()
REAL_UNARY = """negate abs tanh exponential logistic sine floor sign cosine ceil round_nearest_afz round_nearest_even
    exponential_minus_one cbrt""".split()
TRUTH_BINARY = "and or xor".split()
REDUCERS = {
    "integer": "add add maximum minimum and or xor multiply".split(),
    "float": "add add maximum minimum".split(),
}
REDUCERS["truth"] = "and or xor".split()


Step = Callable[[Maker], list[int]]


def unary(maker: Maker) -> list[int]:
    a = maker.some(lambda k: k.dtype != "i1")
    if a is None:
        a = maker.of_type("i1", maker.base)
        return [maker.builder.same("not", a)]
    kind = maker.kind(a)
    name = maker.random.choice(REAL_UNARY if kind.is_float else UNARY)
    if name in ("abs", "sign", "negate") and kind.dtype[0] == "u":
        name = "negate" if name == "negate" else "not"
    return [maker.builder.same(name, a)]


def binary(maker: Maker) -> list[int]:
    a = maker.some()
    kind = maker.kind(a) if a is not None else Kind(maker.base, maker.dtype())
    a = maker.of_type(kind.dtype, kind.shape) if a is None else a
    b = maker.of_type(kind.dtype, kind.shape)
    names = TRUTH_BINARY if kind.dtype == "i1" else REAL_BINARY if kind.is_float else BINARY
    pair = (a, b) if maker.random.random() < 0.5 else (b, a)
    return [maker.builder.same(maker.random.choice(names), *pair)]


def divide(maker: Maker) -> list[int]:
    a = maker.some(lambda k: k.is_integer)
    if a is None:
        return binary(maker)
    name = maker.random.choice(
        ["divide", "remainder", "divide", "shift_left", "shift_right_logical", "shift_right_arithmetic"]
    )
    kind = maker.kind(a)
    if name in ("divide", "remainder"):
        b = maker.builder.like(
            maker.random.choice([2, 3, 4, 5, 7, 8, -2, -3] if kind.dtype[0] == "i" else [2, 3, 4, 5, 8]), a
        )
        if maker.random.random() < 0.2:
            b = maker.builder.same("or", maker.of_type(kind.dtype, kind.shape), maker.builder.like(1, a))
    else:
        b = maker.builder.like(maker.random.choice([1, 2, 3, kind.bits - 1]), a)
    return [maker.builder.same(name, a, b)]


def compare(maker: Maker) -> list[int]:
    a = maker.some(lambda k: k.dtype != "i1") or maker.of_type(maker.dtype(), maker.base)
    kind = maker.kind(a)
    b = maker.of_type(kind.dtype, kind.shape)
    return [maker.builder.compare(maker.random.choice(DIRECTIONS), a, b)]


def select(maker: Maker) -> list[int]:
    p = maker.some(lambda k: k.dtype == "i1") or compare(maker)[0]
    kind = Kind(maker.kind(p).shape, maker.dtype())
    return [
        maker.builder.same("select", p, maker.of_type(kind.dtype, kind.shape), maker.of_type(kind.dtype, kind.shape))
    ]


def clamp(maker: Maker) -> list[int]:
    a = maker.some(lambda k: k.dtype != "i1") or maker.of_type("i32", maker.base)
    kind = maker.kind(a)
    low, high = (maker.builder.constant(maker.number(kind.dtype), kind.shaped()) for _ in "ab")
    return [maker.builder.op("clamp", (low, a, high), kind)]


def convert(maker: Maker) -> list[int]:
    a = maker.some() or maker.of_type(maker.dtype(), maker.base)
    dtype = maker.dtype()
    if maker.kind(a).is_float and dtype in INTEGERS:
        a = maker.builder.op(
            "clamp",
            [maker.builder.constant(x, maker.kind(a).shaped()) for x in (0,)]
            + [a]
            + [maker.builder.constant(5, maker.kind(a).shaped())],
            maker.kind(a),
        )
    if (
        maker.kind(a).is_integer
        and dtype in INTEGERS
        and Kind((), dtype).bits == maker.kind(a).bits
        and maker.random.random() < 0.3
    ):
        return [maker.builder.op("bitcast_convert", (a,), maker.kind(a).of(dtype))]
    return [maker.converted(a, dtype)]


def move(maker: Maker) -> list[int]:
    a = maker.some(lambda k: 0 < len(k.shape) < 4 and 0 not in k.shape)
    if a is None:
        scalar = maker.some(lambda k: not k.shape)
        return [] if scalar is None else [maker.builder.broadcast(scalar, maker.base)]
    builder, rng, shape = maker.builder, maker.random, maker.kind(a).shape
    dim = rng.randrange(len(shape))
    way = rng.choice("transpose reshape broadcast slice pad concatenate reverse rotate halo".split())
    if way == "transpose":
        return [builder.transpose(a, rng.sample(range(len(shape)), len(shape)))]
    if way == "reshape":
        flat = 1
        for n in shape:
            flat *= n
        splits = [(flat,)] + [(k, flat // k) for k in range(1, flat + 1) if flat % k == 0]
        return [builder.reshape(a, *rng.choice(splits))]
    if way == "broadcast" and len(shape) < 3:
        place = rng.randrange(len(shape) + 1)
        wide = (*shape[:place], rng.choice([2, 3]), *shape[place:])
        return [builder.broadcast(a, wide, [k + (k >= place) for k in range(len(shape))])]
    if way == "pad":
        value = builder.constant(maker.number(maker.kind(a).dtype), maker.kind(a).shaped())
        ends = [[rng.choice([0, 0, 1, 2, -1]) if k == dim and n > 2 else 0 for k, n in enumerate(shape)] for _ in "lh"]
        return [builder.pad(a, value, *ends)]
    if way == "reverse":
        return [builder.op("reverse", (a,), maker.kind(a), dims=(dim,))]
    if way == "concatenate":
        b = maker.of_type(maker.kind(a).dtype, shape)
        return [builder.concatenate([a, b], dim)]
    n = shape[dim]
    if n < 2:
        return [builder.reshape(a, *[k for j, k in enumerate(shape) if j != dim])]
    if way in ("rotate", "halo"):
        by = rng.randrange(1, n)
        starts, limits = [0] * len(shape), list(shape)
        starts[dim] = by
        tail = builder.slice(a, starts, limits)
        starts[dim], limits[dim] = 0, by
        if way == "rotate":
            return [builder.concatenate([tail, builder.slice(a, starts, limits)], dim)]
        edge = maker.builder.constant(maker.number(maker.kind(a).dtype), maker.kind(a).shaped(*limits))
        return [builder.same("add", a, builder.concatenate([tail, edge], dim))]
    low = rng.randrange(n - 1)
    high = rng.randrange(low + 1, n + 1)
    by = rng.choice([1, 1, 2])
    cut = [(low, high, by) if k == dim else (0, m, 1) for k, m in enumerate(shape)]
    return [builder.slice(a, *zip(*cut, strict=True))]


def reducers(kind: Kind) -> list[str]:
    return REDUCERS["truth" if kind.dtype == "i1" else "float" if kind.is_float else "integer"]


def reduce(maker: Maker) -> list[int]:
    a = maker.some(lambda k: len(k.shape) > 0)
    if a is None:
        return []
    kind = maker.kind(a)
    dims = maker.random.sample(range(len(kind.shape)), maker.random.randrange(1, len(kind.shape) + 1))
    start = maker.number(kind.dtype) if maker.random.random() < 0.15 else None
    found = maker.builder.reduce(a, dims, maker.random.choice(reducers(kind)), start)
    if maker.random.random() < 0.4:
        kept = [k for k in range(len(kind.shape)) if k not in dims]
        return [found, maker.builder.broadcast(found, kind.shape, kept)]
    return [found]


def dot(maker: Maker) -> list[int]:
    a = maker.some(lambda k: len(k.shape) == 2 and k.dtype != "i1")
    if a is None:
        return reduce(maker)
    kind = maker.kind(a)
    b = maker.some(lambda k: len(k.shape) == 2 and k.dtype == kind.dtype and set(k.shape) & set(kind.shape) != set())
    b = a if b is None else b
    x, y = maker.random.choice(
        [(x, y) for x, n in enumerate(kind.shape) for y, m in enumerate(maker.kind(b).shape) if n == m]
    )
    shape = (kind.shape[1 - x], maker.kind(b).shape[1 - y])
    return [maker.builder.op("dot_general", (a, b), kind.shaped(*shape), batch=((), ()), contract=((x,), (y,)))]


def argmax(maker: Maker) -> list[int]:
    a = maker.some(lambda k: len(k.shape) > 0 and k.dtype != "i1" and 0 not in k.shape)
    if a is None:
        return []
    kind = maker.kind(a)
    dim = maker.random.randrange(len(kind.shape))
    index = maker.builder.op("iota", (), kind.of("i32"), dim=dim)
    shape = [n for k, n in enumerate(kind.shape) if k != dim]
    kinds = [kind.shaped(*shape), kind.shaped(*shape).of("i32")]
    return list(maker.builder.many("argmax", (a, index), kinds, dim=dim, ties="LT"))


def sort(maker: Maker) -> list[int]:
    a = maker.some(lambda k: len(k.shape) > 0 and k.dtype != "i1")
    if a is None:
        return []
    kind, operands = maker.kind(a), [a]
    dim = maker.random.randrange(len(kind.shape))
    if maker.random.random() < 0.6:
        other = maker.some(lambda k: k.shape == kind.shape)
        iota = maker.builder.op("iota", (), kind.of("i32"), dim=dim)
        operands.append(iota if other is None or maker.random.random() < 0.5 else other)
    kinds = [maker.kind(value) for value in operands]
    direction = maker.random.choice(["LT", "GT"])
    return list(maker.builder.many("sort", operands, kinds, dim=dim, direction=direction))


def _rows(maker: Maker) -> tuple[int, int] | None:
    """A table and row numbers, some of which are out of range."""
    table = maker.some(lambda k: 0 < len(k.shape) < 3 and 0 not in k.shape)
    if table is None:
        return None
    index = maker.some(lambda k: k.is_integer and len(k.shape) == 1 and 0 not in k.shape)
    if index is None or maker.random.random() < 0.3:
        count = maker.kind(table).shape[0]
        numbers = [maker.random.randrange(-1, count + 1) for _ in range(maker.random.randrange(1, 5))]
        index = maker.builder.constant(numbers, Kind((len(numbers),), "i32"))
    elif maker.random.random() < 0.5:
        index = maker.builder.same("remainder", index, maker.builder.like(maker.kind(table).shape[0], index))
    return table, maker.builder.reshape(index, *maker.kind(index).shape, 1)


def gather(maker: Maker) -> list[int]:
    found = _rows(maker)
    if found is None:
        return []
    table, index = found
    shape = (maker.kind(index).shape[0], *maker.kind(table).shape[1:])
    return [
        maker.builder.op("gather", (table, maker.builder.reshape(index, shape[0], 1)), maker.kind(table).shaped(*shape))
    ]


def scatter(maker: Maker) -> list[int]:
    found = _rows(maker)
    if found is None:
        return []
    table, index = found
    kind = maker.kind(table)
    update = maker.of_type(kind.dtype, (maker.kind(index).shape[0], *kind.shape[1:]))
    combine = maker.random.choice([*reducers(kind), "second"])
    return [maker.builder.op("scatter", (table, index, update), kind, combine=combine)]


def dynamic(maker: Maker) -> list[int]:
    a = maker.some(lambda k: 0 < len(k.shape) < 3 and 0 not in k.shape)
    if a is None:
        return []
    kind = maker.kind(a)
    sizes = [maker.random.randrange(1, n + 1) for n in kind.shape]
    first = maker.index()
    starts = [
        first,
        *(maker.builder.constant(maker.random.randrange(-1, n + 1), maker.kind(first)) for n in kind.shape[1:]),
    ]
    maker.random.shuffle(starts)
    if maker.random.random() < 0.5:
        return [maker.builder.dynamic_slice(a, starts, sizes)]
    return [maker.builder.update(a, maker.of_type(kind.dtype, sizes), starts)]


def effect(maker: Maker) -> list[int]:
    """A number that is new at every execution."""
    kind = Kind(maker.base, "i32" if maker.random.random() < 0.5 else "f32")
    if kind.dtype == "i32":
        return list(maker.builder.many("custom_call", [], [kind], target="mystery", effect=maker.random.random() < 0.7))
    low, high = (maker.builder.constant(x, kind.shaped()) for x in (0, 1))
    shape = maker.builder.constant(list(kind.shape), Kind((len(kind.shape),), "i64"))
    return [maker.builder.op("rng", (low, high, shape), kind)]


def pole(maker: Maker) -> list[int]:
    """Operations that have poles, and constants that are no numbers."""
    a = maker.some(lambda k: k.is_float)
    if a is None:
        return []
    kind = maker.kind(a)
    if maker.random.random() < 0.5:
        return [maker.builder.same(maker.random.choice(["log", "rsqrt", "sqrt"]), maker.builder.same("abs", a))]
    return [maker.builder.same("divide", a, maker.of_type(kind.dtype, kind.shape))]
