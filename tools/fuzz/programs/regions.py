"""Loops, branches and repeated layers of random operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.fuzz.programs.maker import DIRECTIONS, Family, Maker
from tools.fuzz.programs.program import Block, Kind, inlined
from tools.fuzz.programs.steps import TRUTH_BINARY

CONTROL = frozenset(["while", "branch", "layers"])


def _inside(maker: Maker, kinds: Sequence[Kind] = ()) -> Maker:
    region = maker.builder.region(kinds)
    family = Family(
        maker.family.dtypes,
        {k: v for k, v in maker.family.steps.items() if k not in CONTROL or maker.depth < 1} or {"binary": 1},
    )
    return Maker(
        region, maker.random, family, maker.base, maker.steps, [*maker.values, *region.block.arguments], maker.depth + 1
    )


@dataclass(frozen=True, slots=True)
class _Counting:
    """How a loop counts: from a value, by steps, as long as it compares so with the limit: a number, or a value."""

    start: int
    step: int
    direction: str
    limit: int
    is_value: bool = False


def _counting(maker: Maker) -> _Counting:
    rng, builder, counter = maker.random, maker.builder, Kind((), "i32")
    first, step, turns = rng.choice([0, 0, 0, 1, 2]), rng.choice([1, 1, 1, 2]), rng.randrange(1, 6)
    way = rng.choice(["up", "up", "up", "down", "until", "given"])
    if way == "given":
        given = builder.convert(maker.index(), "i32")
        low, high = (builder.constant(k, counter) for k in (0, 4))
        return _Counting(builder.constant(first, counter), step, "LT", builder.same("clamp", low, given, high), True)
    if way == "down":
        return _Counting(builder.constant(first + turns * step, counter), -step, "GT", first)
    if way == "until":
        return _Counting(builder.constant(first, counter), step, "NE", first + turns * step)
    return _Counting(builder.constant(first, counter), step, "LT", first + turns)


def loop(maker: Maker) -> list[int]:
    """A loop that counts by steps to a limit, and carries a value or two."""
    rng, counter = maker.random, Kind((), "i32")
    count = _counting(maker)
    carried = [a for a in (maker.some() for _ in range(rng.choice([1, 1, 2]))) if a is not None] or [
        maker.of_type(maker.dtype(), maker.base)
    ]
    kinds = [counter, *map(maker.kind, carried)]
    test = maker.builder.region(kinds)
    bound = count.limit if count.is_value else test.constant(count.limit, counter)
    test.block.results = (test.compare(count.direction, test.block.arguments[0], bound),)
    body = _inside(maker, kinds)
    number = body.builder.same("add", body.builder.block.arguments[0], body.builder.constant(count.step, counter))
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
    found = maker.builder.many("while", [count.start, *carried], kinds, [test.block, body.builder.block])
    return list(found[1:])


def branch(maker: Maker) -> list[int]:
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


def _copied(maker: Maker, block: Block) -> Block:
    """The block with other numbers for its values."""
    function = maker.builder.function
    values = {value: function.fresh(function.kinds[value]) for value in block.arguments}
    arguments = tuple(values.values())
    nodes = inlined(function, block, values)
    return Block(arguments, nodes, tuple(values.get(value, value) for value in block.results))


def layers(maker: Maker) -> list[int]:
    """Equal layers one after another, each with numbers of its own."""
    kind = Kind(maker.base, maker.dtype())
    first = maker.of_type(kind.dtype, kind.shape)
    layer = _inside(maker, [kind, kind])
    layer.values = list(layer.builder.block.arguments)
    for _ in range(maker.random.randrange(2, 4)):
        layer.step()
    last = [v for v in layer.values[2:] if maker.kind(v) == kind]
    result = last[-1] if last else layer.builder.same("maximum" if kind.dtype != "i1" else "and", *layer.values[:2])
    layer.builder.block.results = (layer.builder.same("add", result, layer.values[1]),)
    wanted = maker.random.randrange(2, 5)
    others = [v for v in maker.values if maker.kind(v) == kind]
    found, is_called = first, maker.random.random() < 0.4
    for _ in range(wanted):
        own = maker.random.choice(others) if others else maker.builder.like(maker.number(kind.dtype), first)
        if is_called:
            (found,) = maker.builder.many("call", (found, own), [kind], [_copied(maker, layer.builder.block)])
            continue
        values = dict(zip(layer.builder.block.arguments, (found, own), strict=True))
        maker.builder.block.nodes += inlined(maker.builder.function, layer.builder.block, values)
        found = values[layer.builder.block.results[0]]
    return [found]
