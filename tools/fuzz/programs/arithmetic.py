"""Other ways to write elementwise operations.

What is tempting to believe of integers that wrap, of division that rounds towards zero and of signs is what a verifier
may believe too: some are right for some numbers only, and evaluation tells which.
"""

from __future__ import annotations

import random

from tools.fuzz.programs.program import UNSIGNED, Builder, Node


def _is_signed(builder: Builder, value: int) -> bool:
    return builder.kind(value).dtype not in UNSIGNED


def exchange(b: Builder, n: Node, rng: random.Random) -> int | None:
    return b.same(n.op, n.inputs[1], n.inputs[0])


def less_the_negative(b: Builder, n: Node, rng: random.Random) -> int | None:
    x, y = n.inputs
    if b.kind(x).dtype == "i1":
        return b.same("or", x, y)
    return b.same("subtract" if n.op == "add" else "add", x, b.same("negate", y))


def by_bits(b: Builder, n: Node, rng: random.Random) -> int | None:
    """x + y = (x xor y) + 2 (x and y), and x or y = x + y - (x and y)."""
    x, y = n.inputs
    if not b.kind(x).is_integer:
        return None
    both = b.same("and", x, y)
    if n.op == "add":
        return b.same("add", b.same("xor", x, y), b.same("add", both, both))
    if n.op == "or":
        return b.same("subtract", b.same("add", x, y), both)
    return b.same("subtract", b.same("or", x, y), both)


def distribute(b: Builder, n: Node, rng: random.Random) -> int | None:
    """x y = (x + c) y - c y."""
    x, y = n.inputs
    if b.kind(x).dtype == "i1":
        return b.same("and", x, y)
    c = b.like(rng.choice([1, 2, 3]), x)
    return b.same("subtract", b.same("multiply", b.same("add", x, c), y), b.same("multiply", c, y))


def subtract_from_more(b: Builder, n: Node, rng: random.Random) -> int | None:
    x, y = n.inputs
    c = b.like(rng.choice([1, 2, 100]), x)
    return b.same("subtract", b.same("add", x, c), b.same("add", y, c))


def by_comparison(b: Builder, n: Node, rng: random.Random) -> int | None:
    x, y = n.inputs
    if b.kind(x).dtype == "i1":
        return None
    direction = rng.choice(["GT", "GE"] if n.op == "maximum" else ["LT", "LE"])
    return b.op("select", (b.compare(direction, x, y), x, y), b.kind(x))


def by_difference(b: Builder, n: Node, rng: random.Random) -> int | None:
    """max(x, y) = y + max(x - y, 0), which wraps."""
    x, y = n.inputs
    if b.kind(x).dtype == "i1":
        return None
    return b.same("add", y, b.same(n.op, b.same("subtract", x, y), b.like(0, x)))


def by_the_other(b: Builder, n: Node, rng: random.Random) -> int | None:
    """max(x, y) = -min(-x, -y), but for the least number and without a sign."""
    x, y = n.inputs
    other = "minimum" if n.op == "maximum" else "maximum"
    name = rng.choice(["not", "negate"] if b.kind(x).is_integer else ["negate"])
    if b.kind(x).dtype == "i1":
        name = "not"
    return b.same(name, b.same(other, b.same(name, x), b.same(name, y)))


def turned(b: Builder, n: Node, rng: random.Random) -> int | None:
    turned = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
    return b.compare(turned[n.attributes["direction"]], n.inputs[1], n.inputs[0])


OPPOSITE = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}


def not_the_opposite(b: Builder, n: Node, rng: random.Random) -> int | None:
    return b.same("not", b.compare(OPPOSITE[n.attributes["direction"]], *n.inputs))


def compare_the_difference(b: Builder, n: Node, rng: random.Random) -> int | None:
    """x < y as x - y < 0, which wraps."""
    x, y = n.inputs
    if b.kind(x).dtype == "i1":
        return None
    return b.compare(n.attributes["direction"], b.same("subtract", x, y), b.like(0, x))


def compare_shifted(b: Builder, n: Node, rng: random.Random) -> int | None:
    """x < y as x + 1 < y + 1 or 2 x < 2 y, which wrap."""
    x, y = n.inputs
    if b.kind(x).dtype == "i1":
        return None
    name, by = rng.choice([("add", 1), ("add", 5), ("multiply", 2), ("multiply", 3)])
    c = b.like(by, x)
    return b.compare(n.attributes["direction"], b.same(name, x, c), b.same(name, y, c))


def compare_next(b: Builder, n: Node, rng: random.Random) -> int | None:
    """x < y as x + 1 <= y."""
    x, y = n.inputs
    direction = n.attributes["direction"]
    if not b.kind(x).is_integer or direction not in ("LT", "GE"):
        return None
    return b.compare({"LT": "LE", "GE": "GT"}[direction], b.same("add", x, b.like(1, x)), y)


def compare_wider(b: Builder, n: Node, rng: random.Random) -> int | None:
    x, y = n.inputs
    if not b.kind(x).is_integer:
        return None
    wide = rng.choice(["i64", "i32", "ui32", "i16"])
    return b.compare(n.attributes["direction"], b.convert(x, wide), b.convert(y, wide))


def choose_otherwise(b: Builder, n: Node, rng: random.Random) -> int | None:
    p, x, y = n.inputs
    return b.same("select", b.same("not", p), y, x)


def by_product(b: Builder, n: Node, rng: random.Random) -> int | None:
    """select(p, x, y) = p x + (1 - p) y, of numbers that are finite."""
    p, x, y = n.inputs
    kind = b.kind(x)
    if kind.dtype == "i1":
        return b.same("or", b.same("and", p, x), b.same("and", b.same("not", p), y))
    if b.kind(p).shape != kind.shape:
        return None
    one = b.convert(p, kind.dtype)
    rest = b.same("subtract", b.like(1, one), one)
    return b.same("add", b.same("multiply", one, x), b.same("multiply", rest, y))


def two_limits(b: Builder, n: Node, rng: random.Random) -> int | None:
    low, x, high = (b.broadcast(v, b.kind(n.inputs[1]).shape) if not b.kind(v).shape else v for v in n.inputs)
    if rng.random() < 0.5:
        return b.same("minimum", b.same("maximum", x, low), high)
    return b.same("maximum", b.same("minimum", x, high), low)


def there_and_back(b: Builder, n: Node, rng: random.Random) -> int | None:
    """By a wider type, or by a narrower one."""
    (old,) = n.outputs
    kind = b.kind(old)
    if not kind.is_integer:
        return None
    again = b.same(n.op, *n.inputs, **n.attributes) if n.op != "convert" else b.convert(n.inputs[0], kind.dtype)
    return b.convert(b.convert(again, rng.choice(["i8", "ui8", "i16", "ui32", "i64", "i64"])), kind.dtype)


def by_steps(b: Builder, n: Node, rng: random.Random) -> int | None:
    (x,), kind = n.inputs, b.kind(n.outputs[0])
    if not b.kind(x).is_integer or not kind.is_integer:
        return None
    return b.convert(b.convert(x, rng.choice(["i8", "ui8", "i16", "ui16", "ui32", "i64"])), kind.dtype)


def in_wider(b: Builder, n: Node, rng: random.Random) -> int | None:
    """Computed in a wider type, and narrowed."""
    x, y = n.inputs
    kind = b.kind(x)
    if not kind.is_integer or b.kind(y) != kind:
        return None
    wide = rng.choice(["i64", "i32", "i16", "ui32"])
    return b.convert(b.same(n.op, b.convert(x, wide), b.convert(y, wide)), kind.dtype)


def greatest_of_both(b: Builder, n: Node, rng: random.Random) -> int | None:
    (x,) = n.inputs
    return b.same("maximum", b.same("negate", x), x)


def by_sign(b: Builder, n: Node, rng: random.Random) -> int | None:
    (x,) = n.inputs
    return b.same("multiply", b.same("sign", x), x) if _is_signed(b, x) else None


def negate(b: Builder, n: Node, rng: random.Random) -> int | None:
    (x,) = n.inputs
    if b.kind(x).is_integer and rng.random() < 0.5:
        return b.same("add", b.same("not", x), b.like(1, x))
    return (
        b.same(*rng.choice([("subtract", b.like(0, x), x), ("multiply", b.like(-1, x), x)]))
        if _is_signed(b, x)
        else None
    )


def not_by_minus(b: Builder, n: Node, rng: random.Random) -> int | None:
    (x,) = n.inputs
    return None if b.kind(x).dtype == "i1" else b.same("subtract", b.same("negate", x), b.like(1, x))


# Division and shifts


def _constant_of(b: Builder, value: int) -> int | None:
    for block in b.function.body.blocks():
        for node in block.nodes:
            if value in node.outputs:
                found = node.attributes.get("value") if node.op == "constant" else None
                return found if isinstance(found, int) else None
    return None


def in_two_steps(b: Builder, n: Node, rng: random.Random) -> int | None:
    x, y = n.inputs
    c = _constant_of(b, y)
    factors = [k for k in range(2, c or 0) if c % k == 0] if c else []
    if not factors:
        return None
    k = rng.choice(factors)
    return b.same("divide", b.same("divide", x, b.like(k, x)), b.like(c // k, x))


def by_shift(b: Builder, n: Node, rng: random.Random) -> int | None:
    """A division by a power of two as a shift: of negative numbers it rounds the other way."""
    x, y = n.inputs
    c = _constant_of(b, y)
    if not b.kind(x).is_integer or c is None or c < 2 or c & (c - 1):
        return None
    name = rng.choice(["shift_right_arithmetic", "shift_right_logical"])
    if n.op == "remainder":
        return b.same("and", x, b.like(c - 1, x))
    if n.op == "multiply":
        return b.same("shift_left", x, b.like(c.bit_length() - 1, x))
    return b.same(name, x, b.like(c.bit_length() - 1, x))


def by_division(b: Builder, n: Node, rng: random.Random) -> int | None:
    x, y = n.inputs
    c = _constant_of(b, y)
    if c is None or not 0 <= c < b.kind(x).bits - 1:
        return None
    name = "multiply" if n.op == "shift_left" else "divide"
    return b.same(name, x, b.like(2**c, x))


def multiple_first(b: Builder, n: Node, rng: random.Random) -> int | None:
    """(x + c k) / c - k and (x + c k) % c, which wrap and change the sign."""
    x, y = n.inputs
    c, k = _constant_of(b, y), rng.choice([1, 2, 4])
    if not c or not -20 < c < 20 or (c < 0 and not _is_signed(b, x)):
        return None
    found = b.same(n.op, b.same("add", x, b.like(c * k, x)), y)
    return found if n.op == "remainder" else b.same("subtract", found, b.like(k, x))


def rest_by_division(b: Builder, n: Node, rng: random.Random) -> int | None:
    x, y = n.inputs
    return b.same("subtract", x, b.same("multiply", b.same("divide", x, y), y)) if b.kind(x).is_integer else None


def scaled(b: Builder, n: Node, rng: random.Random) -> int | None:
    """(2 x) / (2 c)."""
    x, y = n.inputs
    if b.kind(x).dtype == "i1":
        return None
    two = b.like(2, x)
    found = b.same(n.op, b.same("multiply", x, two), b.same("multiply", y, two))
    return found if n.op == "divide" else b.same("divide", found, two)
