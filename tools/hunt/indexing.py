"""Draw operations with indices, some of which lie outside."""

from __future__ import annotations

from math import prod

from tools.hunt.maker import Maker

MODES = ("clip", "fill", "wrap")
INTEGERS = ("int32",) * 7 + ("int8", "uint8", "int16")


def dynamic(m: Maker) -> int:
    x = m.value((1, 2, 3))
    shape, rng = m.shape(x), m.rng
    d = rng.randrange(len(shape))
    size = rng.randint(1, shape[d])
    start = m.argument([1], "int32", below=shape[d] - size + 1)
    if rng.random() < 0.5:
        return m.step("dynamic_slice", [x, start], {"size": size, "dim": d})
    update = m.argument([*shape[:d], size, *shape[d + 1 :]])
    return m.step("dynamic_update", [x, update, start], {"dim": d})


def gather(m: Maker) -> int:
    x = m.value((1, 2, 3))
    shape, rng = m.shape(x), m.rng
    d, dtype, mode = rng.randrange(len(shape)), rng.choice(INTEGERS), rng.choice(MODES)
    way = rng.choice(("take", "take", "take_along", "each_row"))
    if way == "each_row" and len(shape) > 1:
        return m.step("each_row", [x, m.argument([shape[0]], dtype, below=shape[1])], {})
    if way == "take_along":
        sizes = [*shape[:d], m.size(), *shape[d + 1 :]]
        return m.step("take_along", [x, m.argument(sizes, dtype, below=shape[d])], {"dim": d, "mode": mode})
    sizes = [m.size() for _ in range(rng.choice((1, 1, 2)))]
    return m.step("take", [x, m.argument(sizes, dtype, below=shape[d])], {"dim": d, "mode": mode})


def scatter(m: Maker) -> int:
    x = m.value((1, 2, 3))
    shape, rng = m.shape(x), m.rng
    function = rng.choice(("add", "add", "max", "min", "multiply", "set"))
    if len(shape) > 1 and rng.random() < 0.25:
        indices = m.argument([shape[0]], "int32", below=shape[1])
        updates = m.argument([shape[0], *shape[2:]])
        return m.step("scatter_rows", [x, indices, updates], {"function": function})
    d = rng.randrange(len(shape))
    unique = function == "set" or rng.random() < 0.1
    count = rng.randint(1, shape[d]) if unique else m.size()
    indices = m.argument([count], rng.choice(INTEGERS), below=shape[d], distinct=unique)
    sizes = [*shape[:d], count, *shape[d + 1 :]]
    attributes = {"dim": d, "function": function, "mode": rng.choice(("drop", "clip")), "unique": unique}
    assert prod(sizes) > 0
    return m.step("scatter", [x, indices, m.argument(sizes)], attributes)
