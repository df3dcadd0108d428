"""Random programs for one device: what the verifier gets as the logical module, before it is partitioned."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tools.fuzz.programs.program import INTEGERS, Block, Builder, Function, Kind

BINARY = "add subtract multiply maximum minimum and or xor".split()
UNARY = "negate abs not sign popcnt count_leading_zeros".split()
REAL_BINARY = "add subtract multiply maximum minimum".split()
REAL_UNARY = "negate abs tanh exponential logistic sine floor sign".split()
TRUTH_BINARY = "and or xor".split()
DIRECTIONS = "EQ NE LT LE GT GE".split()
REDUCERS = {
    "integer": "add add maximum minimum and or xor multiply".split(),
    "float": "add add maximum minimum".split(),
}
REDUCERS["truth"] = "and or xor".split()


@dataclass(frozen=True, slots=True)
class Family:
    """What programs are made of: element types, and kinds of operations with how often each is drawn."""

    dtypes: tuple[str, ...]
    steps: dict[str, int]
    length: tuple[int, int] = (2, 6)


@dataclass(slots=True)
class Maker:
    """Appends random operations; `values` can be used by later ones."""

    builder: Builder
    random: random.Random
    family: Family
    base: tuple[int, ...]
    values: list[int] = field(default_factory=list)
    depth: int = 0

    def kind(self, value: int) -> Kind:
        return self.builder.kind(value)

    def some(self, accept: Callable[[Kind], bool] = lambda kind: True) -> int | None:
        """A value, rather a late one."""
        found = [value for value in self.values if accept(self.kind(value))]
        if not found:
            return None
        return found[-1] if self.random.random() < 0.5 else self.random.choice(found)

    def dtype(self) -> str:
        return self.random.choice(self.family.dtypes)

    def number(self, dtype: str) -> float | int | bool:
        """A constant, more often one at which something may happen."""
        if dtype == "i1":
            return self.random.random() < 0.5
        if dtype in INTEGERS:
            bits = int(dtype.lstrip("ui"))
            low, high = (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            picked = self.random.choice(
                [0, 1, 2, 3, 4, 5, 7, 8, 10, 16, -1, -2, -3, low, high, high // 2, high // 2 + 1]
            )
            return min(max(picked, low), high)
        if "special" in self.family.steps and self.random.random() < 0.5:
            return self.random.choice([float("inf"), float("-inf"), float("nan"), 0.0, float("-inf")])
        return self.random.choice([0.0, 1.0, 2.0, -1.0, 0.5, 3.0, -2.0, 0.25])

    def of_type(self, dtype: str, shape: Sequence[int]) -> int:
        """A value of that type: one that there is, a converted or broadcast one, or a constant."""
        kind = Kind(tuple(shape), dtype)
        exact = self.some(lambda k: k == kind)
        if exact is not None and self.random.random() < 0.8:
            return exact
        near = self.some(lambda k: k.shape == kind.shape and not (k.is_float and kind.is_integer))
        if near is not None and self.random.random() < 0.6:
            return self.converted(near, dtype)
        if self.random.random() < 0.3 and kind.shape and dtype != "i1":
            return self.builder.op("iota", (), kind, dim=self.random.randrange(len(kind.shape)))
        return self.builder.constant(self.number(dtype), kind)

    def converted(self, a: int, dtype: str) -> int:
        if self.kind(a).dtype == dtype:
            return a
        if dtype == "i1":
            return self.builder.compare(
                self.random.choice(DIRECTIONS), a, self.builder.like(self.number(self.kind(a).dtype), a)
            )
        return self.builder.convert(a, dtype)

    def index(self) -> int:
        """A scalar integer of the program."""
        found = self.some(lambda k: k.is_integer and len(k.shape) <= 2 and 0 not in k.shape)
        if found is None:
            return self.builder.constant(self.random.randrange(-1, 4), Kind((), "i32"))
        shape = self.kind(found).shape
        if shape:
            at = [self.random.randrange(n) for n in shape]
            found = self.builder.reshape(self.builder.slice(found, at, [k + 1 for k in at]))
        return found if self.random.random() < 0.5 else self.builder.convert(found, "i32")

    def step(self) -> None:
        names, weights = zip(*self.family.steps.items(), strict=True)
        (name,) = self.random.choices(names, weights)
        found = STEPS[name](self)
        self.values.extend(found)


Step = Callable[[Maker], list[int]]


def _unary(maker: Maker) -> list[int]:
    a = maker.some(lambda k: k.dtype != "i1")
    if a is None:
        a = maker.of_type("i1", maker.base)
        return [maker.builder.same("not", a)]
    kind = maker.kind(a)
    name = maker.random.choice(REAL_UNARY if kind.is_float else UNARY)
    if name in ("abs", "sign", "negate") and kind.dtype[0] == "u":
        name = "negate" if name == "negate" else "not"
    return [maker.builder.same(name, a)]


def _binary(maker: Maker) -> list[int]:
    a = maker.some()
    kind = maker.kind(a) if a is not None else Kind(maker.base, maker.dtype())
    a = maker.of_type(kind.dtype, kind.shape) if a is None else a
    b = maker.of_type(kind.dtype, kind.shape)
    names = TRUTH_BINARY if kind.dtype == "i1" else REAL_BINARY if kind.is_float else BINARY
    pair = (a, b) if maker.random.random() < 0.5 else (b, a)
    return [maker.builder.same(maker.random.choice(names), *pair)]


def _divide(maker: Maker) -> list[int]:
    a = maker.some(lambda k: k.is_integer)
    if a is None:
        return _binary(maker)
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


def _compare(maker: Maker) -> list[int]:
    a = maker.some(lambda k: k.dtype != "i1") or maker.of_type(maker.dtype(), maker.base)
    kind = maker.kind(a)
    b = maker.of_type(kind.dtype, kind.shape)
    return [maker.builder.compare(maker.random.choice(DIRECTIONS), a, b)]


def _select(maker: Maker) -> list[int]:
    p = maker.some(lambda k: k.dtype == "i1") or _compare(maker)[0]
    kind = Kind(maker.kind(p).shape, maker.dtype())
    return [
        maker.builder.same("select", p, maker.of_type(kind.dtype, kind.shape), maker.of_type(kind.dtype, kind.shape))
    ]


def _clamp(maker: Maker) -> list[int]:
    a = maker.some(lambda k: k.dtype != "i1") or maker.of_type("i32", maker.base)
    kind = maker.kind(a)
    low, high = (maker.builder.constant(maker.number(kind.dtype), kind.shaped()) for _ in "ab")
    return [maker.builder.op("clamp", (low, a, high), kind)]


def _convert(maker: Maker) -> list[int]:
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


def _move(maker: Maker) -> list[int]:
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


def _reduce(maker: Maker) -> list[int]:
    a = maker.some(lambda k: len(k.shape) > 0)
    if a is None:
        return []
    kind = maker.kind(a)
    dims = maker.random.sample(range(len(kind.shape)), maker.random.randrange(1, len(kind.shape) + 1))
    found = maker.builder.reduce(a, dims, maker.random.choice(reducers(kind)))
    if maker.random.random() < 0.4:
        kept = [k for k in range(len(kind.shape)) if k not in dims]
        return [found, maker.builder.broadcast(found, kind.shape, kept)]
    return [found]


def _dot(maker: Maker) -> list[int]:
    a = maker.some(lambda k: len(k.shape) == 2 and k.dtype != "i1")
    if a is None:
        return _reduce(maker)
    kind = maker.kind(a)
    b = maker.some(lambda k: len(k.shape) == 2 and k.dtype == kind.dtype and set(k.shape) & set(kind.shape) != set())
    b = a if b is None else b
    x, y = maker.random.choice(
        [(x, y) for x, n in enumerate(kind.shape) for y, m in enumerate(maker.kind(b).shape) if n == m]
    )
    shape = (kind.shape[1 - x], maker.kind(b).shape[1 - y])
    return [maker.builder.op("dot_general", (a, b), kind.shaped(*shape), batch=((), ()), contract=((x,), (y,)))]


def _argmax(maker: Maker) -> list[int]:
    a = maker.some(lambda k: len(k.shape) > 0 and k.dtype != "i1" and 0 not in k.shape)
    if a is None:
        return []
    kind = maker.kind(a)
    dim = maker.random.randrange(len(kind.shape))
    index = maker.builder.op("iota", (), kind.of("i32"), dim=dim)
    shape = [n for k, n in enumerate(kind.shape) if k != dim]
    kinds = [kind.shaped(*shape), kind.shaped(*shape).of("i32")]
    return list(maker.builder.many("argmax", (a, index), kinds, dim=dim, ties="LT"))


def _sort(maker: Maker) -> list[int]:
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


def _gather(maker: Maker) -> list[int]:
    found = _rows(maker)
    if found is None:
        return []
    table, index = found
    shape = (maker.kind(index).shape[0], *maker.kind(table).shape[1:])
    return [
        maker.builder.op("gather", (table, maker.builder.reshape(index, shape[0], 1)), maker.kind(table).shaped(*shape))
    ]


def _scatter(maker: Maker) -> list[int]:
    found = _rows(maker)
    if found is None:
        return []
    table, index = found
    kind = maker.kind(table)
    update = maker.of_type(kind.dtype, (maker.kind(index).shape[0], *kind.shape[1:]))
    combine = maker.random.choice([*reducers(kind), "second"])
    return [maker.builder.op("scatter", (table, index, update), kind, combine=combine)]


def _dynamic(maker: Maker) -> list[int]:
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


def _inside(maker: Maker, kinds: Sequence[Kind] = ()) -> Maker:
    region = maker.builder.region(kinds)
    family = Family(
        maker.family.dtypes,
        {k: v for k, v in maker.family.steps.items() if k not in CONTROL or maker.depth < 1} or {"binary": 1},
    )
    return Maker(region, maker.random, family, maker.base, [*maker.values, *region.block.arguments], maker.depth + 1)


def _while(maker: Maker) -> list[int]:
    """A loop that counts up by steps to a limit, and carries a value or two."""
    rng, counter = maker.random, Kind((), "i32")
    first, step = rng.choice([0, 0, 0, 1, 2]), rng.choice([1, 1, 1, 2])
    limit = first + rng.randrange(1, 6)
    carried = [a for a in (maker.some() for _ in range(rng.choice([1, 1, 2]))) if a is not None] or [
        maker.of_type(maker.dtype(), maker.base)
    ]
    kinds = [counter, *map(maker.kind, carried)]
    start = maker.builder.constant(first, counter)
    test = maker.builder.region(kinds)
    bound = test.constant(limit, counter)
    test.block.results = (test.compare("LT", test.block.arguments[0], bound),)
    body = _inside(maker, kinds)
    number = body.builder.same("add", body.builder.block.arguments[0], body.builder.constant(step, counter))
    if rng.random() < 0.6:
        body.values.append(
            body.builder.broadcast(
                body.builder.convert(body.builder.block.arguments[0], body.dtype())
                if body.family.dtypes[0] != "i1"
                else body.builder.block.arguments[0],
                maker.base,
            )
        )
    for _ in range(rng.randrange(1, 3)):
        body.step()
    results = []
    for argument, kind in zip(body.builder.block.arguments[1:], kinds[1:], strict=True):
        late = [v for v in body.values if maker.kind(v) == kind and v not in maker.values and v != argument]
        new = late[-1] if late else body.of_type(kind.dtype, kind.shape)
        if rng.random() < 0.5:
            name = rng.choice(TRUTH_BINARY if kind.dtype == "i1" else ["add", "add", "subtract", "maximum", "multiply"])
            new = body.builder.same(name, argument, new)
        results.append(new)
    body.builder.block.results = (number, *results)
    found = maker.builder.many("while", [start, *carried], kinds, [test.block, body.builder.block])
    return list(found[1:])


def _branch(maker: Maker) -> list[int]:
    kind = Kind(maker.base, maker.dtype())
    count = maker.random.choice([2, 2, 3])
    blocks: list[Block] = []
    for _ in range(count):
        inside = _inside(maker)
        for _ in range(maker.random.randrange(1, 3)):
            inside.step()
        inside.builder.block.results = (inside.of_type(kind.dtype, kind.shape),)
        blocks.append(inside.builder.block)
    index = maker.index()
    if count == 2 and maker.random.random() < 0.6:
        test = maker.builder.compare(
            maker.random.choice(DIRECTIONS), index, maker.builder.like(maker.number(maker.kind(index).dtype), index)
        )
        return list(maker.builder.many("if", [test], [kind], blocks))
    return list(maker.builder.many("case", [maker.builder.convert(index, "i32")], [kind], blocks))


def _effect(maker: Maker) -> list[int]:
    """A number that is new at every execution."""
    kind = Kind(maker.base, "i32" if maker.random.random() < 0.5 else "f32")
    if kind.dtype == "i32":
        return list(maker.builder.many("custom_call", [], [kind], target="mystery", effect=maker.random.random() < 0.7))
    low, high = (maker.builder.constant(x, kind.shaped()) for x in (0, 1))
    shape = maker.builder.constant(list(kind.shape), Kind((len(kind.shape),), "i64"))
    return [maker.builder.op("rng", (low, high, shape), kind)]


def _pole(maker: Maker) -> list[int]:
    """Operations that have poles, and constants that are no numbers."""
    a = maker.some(lambda k: k.is_float)
    if a is None:
        return []
    kind = maker.kind(a)
    if maker.random.random() < 0.5:
        return [maker.builder.same(maker.random.choice(["log", "rsqrt", "sqrt"]), maker.builder.same("abs", a))]
    return [maker.builder.same("divide", a, maker.of_type(kind.dtype, kind.shape))]


CONTROL = frozenset(["while", "branch"])

STEPS: dict[str, Step] = {
    "unary": _unary, "binary": _binary, "divide": _divide, "compare": _compare, "select": _select, "clamp": _clamp,
    "convert": _convert, "move": _move, "reduce": _reduce, "dot": _dot, "argmax": _argmax, "sort": _sort,
    "gather": _gather, "scatter": _scatter, "dynamic": _dynamic, "while": _while, "branch": _branch, "effect": _effect,
    "special": _pole,
}  # fmt: skip


def make(family: Family, rng: random.Random) -> Function:
    """A program of one to three arguments, whose results are its last values."""
    function = Function()
    builder = Builder(function, function.body)
    sizes = [1, 2, 3, 4, 4, 6, 8]
    base = tuple(rng.choice(sizes) for _ in range(rng.choice([1, 1, 2, 2])))
    base = (0, *base) if rng.random() < 0.01 else base
    maker = Maker(builder, rng, family, base)
    for _ in range(rng.randrange(1, 4)):
        shape = base if rng.random() < 0.8 else base[::-1]
        maker.values.append(builder.argument(Kind(shape, rng.choice(family.dtypes))))
    for _ in range(rng.randrange(family.length[0], family.length[1] + 1)):
        maker.step()
    inner = [v for v in maker.values if v not in builder.block.arguments] or maker.values
    builder.block.results = tuple(dict.fromkeys([inner[-1], rng.choice(inner[-3:])]))
    prune(function)
    return function


def prune(function: Function) -> None:
    """Leave out what nothing depends on (effects and communication stay)."""
    blocks = list(function.body.blocks())
    while True:
        used = {v for b in blocks for v in b.results} | {v for b in blocks for n in b.nodes for v in n.inputs}
        gone = 0
        for block in blocks:
            kept = [n for n in block.nodes if used & set(n.outputs)]
            gone += len(block.nodes) - len(kept)
            block.nodes = kept
        if not gone:
            return
        blocks = list(function.body.blocks())
