"""Other ways to write what moves, reduces, looks up and branches, and the table of all ways to write operations."""

from __future__ import annotations

import random
from collections.abc import Callable

from tools.fuzz.programs import arithmetic
from tools.fuzz.programs.program import Builder, Kind, Node, identity, inlined

Rewrite = Callable[[Builder, Node, random.Random], int | None]
"""The value that takes the place of an operation's result, or None where there is none."""


def _dims_reversed(b: Builder, n: Node, rng: random.Random) -> int | None:
    """The same of reversed operands, reversed."""
    kind = b.kind(n.outputs[0])
    if not kind.shape or any(b.kind(v).shape != kind.shape for v in n.inputs):
        return None
    dims = (rng.randrange(len(kind.shape)),)
    inputs = [b.same("reverse", v, dims=dims) for v in n.inputs]
    return b.op("reverse", (b.op(n.op, inputs, kind, **n.attributes),), kind, dims=dims)


def _transposed(b: Builder, n: Node, rng: random.Random) -> int | None:
    kind = b.kind(n.outputs[0])
    if len(kind.shape) != 2 or any(b.kind(v).shape != kind.shape for v in n.inputs):
        return None
    inputs = [b.transpose(v, (1, 0)) for v in n.inputs]
    return b.transpose(b.op(n.op, inputs, kind.shaped(*kind.shape[::-1]), **n.attributes), (1, 0))


def _flattened(b: Builder, n: Node, rng: random.Random) -> int | None:
    kind = b.kind(n.outputs[0])
    if any(b.kind(v).shape != kind.shape for v in n.inputs):
        return None
    size = 1
    for m in kind.shape:
        size *= m
    inputs = [b.reshape(v, size) for v in n.inputs]
    return b.reshape(b.op(n.op, inputs, kind.shaped(size), **n.attributes), *kind.shape)


def _in_halves(b: Builder, n: Node, rng: random.Random) -> int | None:
    kind = b.kind(n.outputs[0])
    dims = [k for k, m in enumerate(kind.shape) if m > 1]
    if not dims or any(b.kind(v).shape != kind.shape for v in n.inputs):
        return None
    dim = rng.choice(dims)
    at = rng.randrange(1, kind.shape[dim])
    parts = []
    for low, high in ((0, at), (at, kind.shape[dim])):
        starts = [low if k == dim else 0 for k in range(len(kind.shape))]
        limits = [high if k == dim else m for k, m in enumerate(kind.shape)]
        inputs = [b.slice(v, starts, limits) for v in n.inputs]
        parts.append(b.op(n.op, inputs, b.kind(inputs[0]).of(kind.dtype), **n.attributes))
    return b.concatenate(parts, dim)


def _dimension_by_dimension(b: Builder, n: Node, rng: random.Random) -> int | None:
    (x,), dims = n.inputs, list(n.attributes["dims"])
    if len(dims) < 2:
        return None
    first = rng.choice(dims)
    one = b.reduce(x, [first], n.attributes["combine"])
    return b.reduce(one, [k - (k > first) for k in dims if k != first], n.attributes["combine"])


def _element_by_element(b: Builder, n: Node, rng: random.Random) -> int | None:
    """A reduction of a few elements along one dimension, spelled out."""
    (x,), dims = n.inputs, n.attributes["dims"]
    shape = b.kind(x).shape
    if len(dims) != 1 or not 0 < shape[dims[0]] <= 4:
        return None
    order = rng.sample(range(shape[dims[0]]), shape[dims[0]])
    rest = [m for k, m in enumerate(shape) if k != dims[0]]
    parts = []
    for at in order:
        starts = [at if k == dims[0] else 0 for k in range(len(shape))]
        limits = [at + 1 if k == dims[0] else m for k, m in enumerate(shape)]
        parts.append(b.reshape(b.slice(x, starts, limits), *rest))
    total = parts[0]
    for part in parts[1:]:
        total = b.same(n.attributes["combine"], total, part)
    return total


def _by_loop(b: Builder, n: Node, rng: random.Random) -> int | None:
    """A reduction along one dimension as a loop over its elements."""
    (x,), dims = n.inputs, n.attributes["dims"]
    kind = b.kind(x)
    if len(dims) != 1 or not 0 < kind.shape[dims[0]] <= 8:
        return None
    (dim,), counter = dims, Kind((), "i32")
    combine = n.attributes["combine"]
    rest = [m for k, m in enumerate(kind.shape) if k != dim]
    zero = b.constant(0, counter)
    start = b.constant(identity(combine, kind.dtype), kind.shaped(*rest))
    test, body = (b.region([counter, kind.shaped(*rest)]) for _ in "tb")
    number = test.block.arguments[0]
    test.block.results = (test.compare("LT", number, test.constant(kind.shape[dim], counter)),)
    number, total = body.block.arguments
    starts = [number if k == dim else zero for k in range(len(kind.shape))]
    sizes = [1 if k == dim else m for k, m in enumerate(kind.shape)]
    part = body.reshape(body.dynamic_slice(x, starts, sizes), *rest)
    body.block.results = (
        body.same("add", number, body.constant(1, counter)),
        body.same(combine, total, part),
    )
    return b.many("while", [zero, start], [counter, kind.shaped(*rest)], [test.block, body.block])[1]


def _by_product_and_sum(b: Builder, n: Node, rng: random.Random) -> int | None:
    """A product of matrices as a sum of products."""
    x, y = n.inputs
    if n.attributes["batch"][0]:
        return None
    (over_x,), (over_y,) = n.attributes["contract"]
    x = x if over_x == 1 else b.transpose(x, (1, 0))
    y = y if over_y == 1 else b.transpose(y, (1, 0))
    rows, columns, size = b.kind(x).shape[0], b.kind(y).shape[0], b.kind(x).shape[1]
    wide = (rows, columns, size)
    product = b.same("multiply", b.broadcast(x, wide, (0, 2)), b.broadcast(y, wide, (1, 2)))
    return b.reduce(product, [2], "add")


def _swapped_product(b: Builder, n: Node, rng: random.Random) -> int | None:
    x, y = n.inputs
    over_x, over_y = n.attributes["contract"]
    if n.attributes["batch"][0]:
        return None
    kind = b.kind(n.outputs[0])
    found = b.op("dot_general", (y, x), kind.shaped(*kind.shape[::-1]), batch=((), ()), contract=(over_y, over_x))
    return b.transpose(found, (1, 0))


def _where_it_starts(b: Builder, n: Node, rng: random.Random) -> int | None:
    """A slice as a dynamic one."""
    if any(k != 1 for k in n.attributes["strides"]):
        return None
    starts = [b.constant(k, Kind((), "i32")) for k in n.attributes["starts"]]
    return b.dynamic_slice(n.inputs[0], starts, b.kind(n.outputs[0]).shape)


def _clamped_first(b: Builder, n: Node, rng: random.Random) -> int | None:
    """Starts that are clamped by the program itself."""
    x, y = n.inputs[:2]
    first = 2 if n.op == "dynamic_update_slice" else 1
    sizes = b.kind(y if first == 2 else n.outputs[0]).shape
    starts = []
    for start, m, size in zip(n.inputs[first:], b.kind(x).shape, sizes, strict=True):
        low, high = (b.like(k, start) for k in (0, m - size))
        starts.append(b.same("clamp", low, start, high))
    return b.op(n.op, (*n.inputs[:first], *starts), b.kind(n.outputs[0]))


def _from_the_end(b: Builder, n: Node, rng: random.Random) -> int | None:
    """Negative starts count from the end, as JAX writes it: they are clamped without."""
    first = 2 if n.op == "dynamic_update_slice" else 1
    starts = []
    for start, m in zip(n.inputs[first:], b.kind(n.inputs[0]).shape, strict=True):
        negative = b.compare("LT", start, b.like(0, start))
        starts.append(b.same("select", negative, b.same("add", start, b.like(m, start)), start))
    return b.op(n.op, (*n.inputs[:first], *starts), b.kind(n.outputs[0]))


def _by_mask(b: Builder, n: Node, rng: random.Random) -> int | None:
    """A gather of rows as a product with where they are: [t = v] w[v, ...]. Rows out of range are zero."""
    table, index = n.inputs
    kind = b.kind(table)
    if kind.dtype == "i1" or len(kind.shape) > 2:
        return None
    count, size = b.kind(index).shape[0], kind.shape[0]
    if rng.random() < 0.7:
        index = b.same("clamp", b.like(0, index), index, b.like(size - 1, index))
    rows = b.broadcast(b.reshape(index, count), (count, size), (0,))
    hot = b.convert(b.compare("EQ", rows, b.op("iota", (), b.kind(rows), dim=1)), kind.dtype)
    column = table if len(kind.shape) == 2 else b.reshape(table, size, 1)
    found = b.op(
        "dot_general", (hot, column), kind.shaped(count, b.kind(column).shape[1]), batch=((), ()), contract=((1,), (0,))
    )
    return b.reshape(found, *b.kind(n.outputs[0]).shape)


def _as_numbers(b: Builder, n: Node, rng: random.Random) -> int | None:
    """Numbers along a dimension, as a table or counted from one."""
    kind, dim = b.kind(n.outputs[0]), n.attributes["dim"]
    size = kind.shape[dim]
    if rng.random() < 0.5:
        line = b.constant(list(range(size)), kind.shaped(size))
        return b.broadcast(line, kind.shape, (dim,))
    one = b.op("iota", (), kind, dim=dim)
    return b.same("subtract", b.same("add", one, b.like(1, one)), b.like(1, one))


def _test_by_case(b: Builder, n: Node, rng: random.Random) -> int | None:
    """An if as a case of two, or the other way round."""
    (p,) = n.inputs
    kinds = [b.kind(v) for v in n.outputs]
    if n.op == "if":
        return b.many("case", [b.convert(b.same("not", p), "i32")], kinds, n.regions)[0]
    if len(n.regions) == 2:
        return b.many("if", [b.compare("EQ", p, b.like(0, p))], kinds, n.regions)[0]
    return None


def _both_and_select(b: Builder, n: Node, rng: random.Random) -> int | None:
    """Both branches, and the result of one of them."""
    if n.op != "if" or any(node.op in ("rng", "custom_call") for block in n.regions for node in block.nodes):
        return None
    found = []
    for block in n.regions:
        values: dict[int, int] = {}
        b.block.nodes += inlined(b.function, block, values)
        found.append(values.get(block.results[0], block.results[0]))
    wide = b.broadcast(n.inputs[0], b.kind(found[0]).shape)
    return b.op("select", (wide, *found), b.kind(found[0]))


_ELEMENTWISE = frozenset(
    "add subtract multiply maximum minimum and or xor negate abs not tanh exponential select".split()
)
_WIDENED = frozenset("add subtract multiply maximum minimum and or xor divide remainder shift_left".split())

REWRITES: list[tuple[frozenset[str], Rewrite]] = [
    (frozenset("add multiply maximum minimum and or xor".split()), arithmetic.exchange),
    (frozenset(["add", "subtract"]), arithmetic.less_the_negative),
    (frozenset(["add", "or", "xor"]), arithmetic.by_bits),
    (frozenset(["multiply"]), arithmetic.distribute),
    (frozenset(["multiply", "divide", "remainder"]), arithmetic.by_shift),
    (frozenset(["subtract"]), arithmetic.subtract_from_more),
    (frozenset(["maximum", "minimum"]), arithmetic.by_comparison),
    (frozenset(["maximum", "minimum"]), arithmetic.by_difference),
    (frozenset(["maximum", "minimum"]), arithmetic.by_the_other),
    (frozenset(["compare"]), arithmetic.turned),
    (frozenset(["compare"]), arithmetic.not_the_opposite),
    (frozenset(["compare"]), arithmetic.compare_the_difference),
    (frozenset(["compare"]), arithmetic.compare_shifted),
    (frozenset(["compare"]), arithmetic.compare_next),
    (frozenset(["compare"]), arithmetic.compare_wider),
    (frozenset(["select"]), arithmetic.choose_otherwise),
    (frozenset(["select"]), arithmetic.by_product),
    (frozenset(["clamp"]), arithmetic.two_limits),
    (_WIDENED | {"convert"}, arithmetic.there_and_back),
    (frozenset(["convert"]), arithmetic.by_steps),
    (_WIDENED, arithmetic.in_wider),
    (frozenset(["abs"]), arithmetic.greatest_of_both),
    (frozenset(["abs"]), arithmetic.by_sign),
    (frozenset(["negate"]), arithmetic.negate),
    (frozenset(["not"]), arithmetic.not_by_minus),
    (frozenset(["divide"]), arithmetic.in_two_steps),
    (frozenset(["shift_left", "shift_right_arithmetic", "shift_right_logical"]), arithmetic.by_division),
    (frozenset(["divide", "remainder"]), arithmetic.multiple_first),
    (frozenset(["remainder"]), arithmetic.rest_by_division),
    (frozenset(["divide", "remainder"]), arithmetic.scaled),
    (_ELEMENTWISE, _dims_reversed),
    (_ELEMENTWISE, _transposed),
    (_ELEMENTWISE, _flattened),
    (_ELEMENTWISE, _in_halves),
    (frozenset(["reduce"]), _dimension_by_dimension),
    (frozenset(["reduce"]), _element_by_element),
    (frozenset(["reduce"]), _by_loop),
    (frozenset(["dot_general"]), _by_product_and_sum),
    (frozenset(["dot_general"]), _swapped_product),
    (frozenset(["slice"]), _where_it_starts),
    (frozenset(["dynamic_slice", "dynamic_update_slice"]), _clamped_first),
    (frozenset(["dynamic_slice", "dynamic_update_slice"]), _from_the_end),
    (frozenset(["gather"]), _by_mask),
    (frozenset(["iota"]), _as_numbers),
    (frozenset(["if", "case"]), _test_by_case),
    (frozenset(["if"]), _both_and_select),
]
"""For which operations, and how."""
