"""Draw operations that move, combine and order; `windowing` draws those with windows, `indexing` those with indices."""

from __future__ import annotations

from tools.hunt.maker import Maker, NoProgram
from tools.hunt.operations import Attributes

UNARY = ("jnp.negative", "jnp.abs", "jnp.square", "jnp.sign", "jnp.tanh", "jax.nn.relu")
BINARY = ("jnp.add", "jnp.multiply", "jnp.subtract", "jnp.maximum", "jnp.minimum")
PRODUCTS = (
    ("ij,jk->ik", "ij", "jk"), ("ij,kj->ik", "ij", "kj"), ("bij,bjk->bik", "bij", "bjk"), ("ijk,k->ij", "ijk", "k"),
    ("bij,bkj->bik", "bij", "bkj"), ("ij,ij->i", "ij", "ij"), ("ijk,ljk->il", "ijk", "ljk"), ("ij,jk->ki", "ij", "jk"),
    ("i,j->ij", "i", "j"), ("ijk,jl->ikl", "ijk", "jl"),
)  # fmt: skip


def elementwise(m: Maker) -> int:
    x = m.value((1, 2, 3))
    way = m.rng.random()
    if way < 0.3:
        return m.step("unary", [x], {"function": m.rng.choice(UNARY)})
    if way < 0.85:
        return m.step("binary", [x, m.like(x)], {"function": m.rng.choice(BINARY)})
    return m.step("choose", [x, m.like(x)], {})


def reshape(m: Maker) -> int:
    x = m.value((1, 2, 3))
    shape, rng = m.shape(x), m.rng
    way = rng.random()
    if way < 0.45 and len(shape) > 1:
        return m.step("merge", [x], {"dim": rng.randrange(len(shape) - 1)})
    if way < 0.9:
        d = rng.randrange(len(shape))
        by = [k for k in range(2, shape[d] + 1) if shape[d] % k == 0]
        if not by:
            raise NoProgram
        return m.step("split", [x], {"dim": d, "by": rng.choice(by), "minor": rng.random() < 0.5})
    return m.step("flatten", [x], {})


def movement(m: Maker) -> int:
    x = m.value((1, 2, 3))
    rank, rng = len(m.shape(x)), m.rng
    way = rng.choice(("transpose", "repeat", "reverse", "slice", "slice", "roll", "iota", "triangle"))
    d = rng.randrange(rank)
    size = m.shape(x)[d]
    if way == "transpose":
        return m.step("transpose", [x], {"order": rng.sample(range(rank), rank)})
    if way == "repeat":
        return m.step("repeat", [x], {"dim": rng.randrange(rank + 1), "size": m.size()})
    if way == "reverse":
        return m.step("reverse", [x], {"dims": sorted(rng.sample(range(rank), rng.randint(1, rank)))})
    if way == "slice":
        low, high = rng.randrange(size), rng.randrange(size)
        return m.step("slice", [x], {"dim": d, "low": low, "high": high, "stride": rng.choice((1, 1, 2, 3))})
    if way == "roll":
        return m.step("roll", [x], {"by": rng.randint(-size, size), "dim": d})
    if way == "triangle":
        return m.step("triangle", [x], {"function": rng.choice(("tril", "triu")), "diagonal": rng.randint(-2, 2)})
    return m.step("iota", [x], {"dim": d})


def pad(m: Maker) -> int:
    x = m.value((1, 2))
    edges = []
    for size in m.shape(x):
        way = m.rng.random()
        inner = m.rng.choice((0, 0, 1, 2))
        if way < 0.25:
            edges.append((0, 0, 0))
        elif way < 0.5:
            by = m.rng.randint(1, max(1, min(3, size - 1))) * m.rng.choice((1, -1))
            edges.append((by, -by, 0))
        else:
            edges.append((m.rng.randint(-3, 4), m.rng.randint(-3, 4), inner))
    return m.step("pad", [x], {"edges": edges, "value": m.rng.choice((0, 0, 1))})


def concatenate(m: Maker) -> int:
    x = m.value((1, 2, 3))
    d = m.rng.randrange(len(m.shape(x)))
    others = []
    for _ in range(m.rng.choice((1, 1, 2))):
        shape = list(m.shape(x))
        shape[d] = m.size()
        others.append(x if m.rng.random() < 0.2 else m.argument(shape))
    operands = [x, *others]
    m.rng.shuffle(operands)
    return m.step("concatenate", operands, {"dim": d})


def reduction(m: Maker) -> int:
    x = m.value((1, 2, 3))
    rank, rng = len(m.shape(x)), m.rng
    if rng.random() < 0.2:
        return m.step("place", [x], {"function": rng.choice(("argmax", "argmin")), "dim": rng.randrange(rank)})
    dims = sorted(rng.sample(range(rank), rng.randint(1, rank)))
    return m.step("reduce", [x], {"function": rng.choice(("sum", "sum", "max", "min", "prod", "any")), "dims": dims})


def cumulative(m: Maker) -> int:
    x = m.value((1, 2))
    rank, rng = len(m.shape(x)), m.rng
    if rng.random() < 0.2:
        return m.step("scan", [x], {"which": rng.randrange(2)})
    function = rng.choice(("cumsum", "cumsum", "cummax", "cummin", "cumprod"))
    return m.step("cumulative", [x], {"function": function, "dim": rng.randrange(rank), "reverse": rng.random() < 0.3})


def order(m: Maker) -> int:
    x = m.value((1, 2))
    rank, rng = len(m.shape(x)), m.rng
    way = rng.choice(("sort", "arrange", "best"))
    if way == "best":
        return m.step("best", [x], {"count": rng.randint(1, m.shape(x)[-1]), "which": rng.randrange(2)})
    inputs = [x] if way == "sort" else [x, m.like(x)]
    return m.step(way, inputs, {"dim": rng.randrange(rank)})


def product(m: Maker) -> int:
    formula, left, right = m.rng.choice(PRODUCTS)
    x = m.value((len(left),))
    sizes = dict(zip(left, m.shape(x), strict=True))
    for letter in right:
        sizes.setdefault(letter, m.size())
    y = m.argument([sizes[letter] for letter in right])
    attributes: Attributes = {"formula": formula}
    return m.step("product", [x, y], attributes)


def fourier(m: Maker) -> int:
    x = m.value((1, 2))
    return m.step("fourier", [x], {"function": m.rng.choice(("fft", "ifft")), "dim": m.rng.randrange(len(m.shape(x)))})
