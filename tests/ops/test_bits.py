"""Operations on bits of numbers that are known are done as a machine does them."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.ops import bits, comparison, conversion, elementwise
from hlo_verify.ops.values import Context, Value
from hlo_verify.program.element_types import DTYPES, INTEGER_RANGES
from hlo_verify.program.ir import Op, TensorType
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import INFINITY
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, ZERO, Apply, Poly, number, tensor
from tests.support.evaluate import Evaluator

CONTEXT = Context(None, 1, 1, lambda *_: [])
FUNCTIONS: dict[str, Callable[..., object]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shift_left": operator.lshift,
    "shift_right_logical": operator.rshift,
    "shift_right_arithmetic": operator.rshift,
}


def outcome(name: str, *operands: Value, dtype: str, **attributes: str) -> Poly:
    op = Op(name, (0, 1)[: len(operands)], (2,), (TensorType((), dtype),), attributes)
    rules = {**elementwise.RULES, **bits.RULES, **comparison.RULES, **conversion.RULES}
    (value,) = rules[name](op, list(operands), CONTEXT)
    return value.term


def scalar(dtype: str, term: Poly) -> Value:
    return Value(TensorType((), dtype), term)


@pytest.mark.parametrize("dtype", ["i8", "ui8", "i32", "ui32", "ui64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_integers(name: str, dtype: str) -> None:
    """Whatever multiples of the number of the type's values a term has on top."""
    drawn, (lo, hi) = np.random.default_rng(0), INTEGER_RANGES[dtype]
    kind = DTYPES[dtype]
    for _ in range(20):
        a, b = (int(n) for n in drawn.integers(lo, hi, 2, kind, endpoint=True))
        if "shift" in name:
            b %= kind.itemsize * 8
        whole = np.dtype(f"{'u' if name == 'shift_right_logical' else 'i'}{kind.itemsize}")
        shifted = whole if "shift_right" in name else kind
        expected = np.asarray(FUNCTIONS[name](np.array(a, kind).view(shifted), np.array(b, kind).view(shifted)))
        found = outcome(name, scalar(dtype, number(a + 3 * (hi - lo + 1))), scalar(dtype, number(b)), dtype=dtype)
        assert found.constant == int(expected.astype(shifted).view(kind))


@pytest.mark.parametrize("dtype", ["i8", "ui8"])
@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_every_value_against_every_number(name: str, dtype: str) -> None:
    """What a mask leaves, and numbers side by side, of an element that may be anything; all others stay functions."""
    kind, (lo, hi) = DTYPES[dtype], INTEGER_RANGES[dtype]
    x = tensor("argument", "x", dtype, (256,))
    values, place = np.arange(lo, hi + 1).astype(kind), expr.var("x", "all", 256)
    read = algebra.read(x, [expr.of_var(place)])
    evaluator, plain = Evaluator({x: values}), 0
    for operand, of in ((read, values), (algebra.scale(read, 16), values * kind.type(16))):
        for known in range(lo, hi + 1):
            found = outcome(name, scalar(dtype, operand), scalar(dtype, number(known)), dtype=dtype)
            if any(isinstance(atom, Apply) for mono, _ in found.items for atom, _ in mono):
                continue
            plain += 1
            expected = np.asarray(FUNCTIONS[name](of, kind.type(known)))
            own = np.asarray(evaluator.poly(found, {place: np.arange(256)}))
            assert ((np.broadcast_to(own, 256) - expected.astype(object)) % 256 == 0).all(), (known, found)
    assert plain >= (36 if name == "and" else 2)


def test_packed_and_taken_apart() -> None:
    """`i | j << 2`, and both again: as the TPU's compiler packs indices of a gather."""
    i, j = expr.var("i", "", 4), expr.var("j", "", 8)
    first, second = (scalar("i32", algebra.of_index(expr.of_var(v))) for v in (i, j))
    shifted = outcome("shift_left", second, scalar("i32", number(2)), dtype="i32")
    packed = scalar("i32", outcome("or", first, scalar("i32", shifted), dtype="i32"))
    assert outcome("and", packed, scalar("i32", number(3)), dtype="i32") is first.term
    above = scalar("i32", outcome("and", packed, scalar("i32", number(28)), dtype="i32"))
    assert outcome("shift_right_logical", above, scalar("i32", number(2)), dtype="i32") is second.term
    narrow = scalar("i32", outcome("and", packed, scalar("i32", number(12)), dtype="i32"))
    assert outcome("shift_right_logical", narrow, scalar("i32", number(2)), dtype="i32") is not second.term


@pytest.mark.parametrize("dtype", ["i8", "ui8"])
@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_several_in_any_order(name: str, dtype: str) -> None:
    """Elements, opposites of these, masks and places, joined in any order and nesting."""
    draw, (lo, hi) = random.Random(f"{name} of {dtype}"), INTEGER_RANGES[dtype]
    tensors = [tensor("argument", f"x{n}", dtype, ()) for n in range(6)]
    reads = [algebra.read(x, ()) for x in tensors]
    place = algebra.of_index(expr.scale(expr.of_var(expr.var("v", "several", 5)), 40))
    opposites = [algebra.subtract(number(-1), p) for p in reads]
    for _ in range(60):
        given = draw.choices([*reads, *opposites, place, number(draw.randint(-300, 300))], k=draw.randint(2, 9))
        made = []
        for _ in range(2):
            left = [scalar(dtype, p) for p in draw.sample(given, len(given))]
            while len(left) > 1:
                one, other = (left.pop(draw.randrange(len(left))) for _ in range(2))
                left.append(scalar(dtype, outcome(name, one, other, dtype=dtype)))
            made.append(left[0].term)
        values = {x: np.array(draw.randint(lo, hi), DTYPES[dtype]) for x in tensors}
        evaluator, places = Evaluator(values), {expr.var("v", "several", 5): np.arange(5)}
        wanted, *found = (
            [int(n) & 255 for n in np.broadcast_to(np.asarray(evaluator.poly(p, places)), 5)] for p in (given[0], *made)
        )
        for p in given[1:]:
            others = np.broadcast_to(np.asarray(evaluator.poly(p, places)), 5)
            wanted = [
                int(FUNCTIONS[name](np.uint8(a), np.uint8(int(b) & 255))) for a, b in zip(wanted, others, strict=True)
            ]
        assert found == [wanted, wanted]


def test_a_checksum_has_one_form() -> None:
    reads = [scalar("i32", algebra.read(tensor("argument", f"x{n}", "i32", ()), ())) for n in range(7)]

    def joined(name: str, several: list[Value]) -> Poly:
        total = several[0]
        for each in several[1:]:
            total = scalar("i32", outcome(name, total, each, dtype="i32"))
        return total.term

    for name in ("and", "or", "xor"):
        assert joined(name, reads) is joined(name, reads[::-1])
        assert joined(name, reads) is not joined(name, reads[1:])
    assert joined("xor", [*reads, *reads[1:]]) is reads[0].term
    assert joined("xor", [*reads, reads[0]]) is joined("xor", reads[1:])
    assert joined("and", [*reads, reads[0]]) is joined("and", reads)


@pytest.mark.parametrize("name", ["and", "or", "xor"])
@pytest.mark.parametrize("first", [(0, 2), (0, 3), (-1, 2), (0, 8), (1, 8)], ids=str)
@pytest.mark.parametrize("second", [(0, 2), (-1, 3), 0, 1, 3, 7, -1], ids=str)
def test_flags_and_masks(name: str, first: tuple[int, int], second: tuple[int, int] | int) -> None:
    """Integers of a small range: two that are 0 or 1 are truth values, and all bits of one may be turned."""
    i, j = (expr.var(k, "flags", 8) for k in "ij")

    def within(v: expr.Var, ends: tuple[int, int]) -> Poly:
        return algebra.of_index(expr.shift(expr.modulo(expr.of_var(v), ends[1] - ends[0]), ends[0]))

    one = within(i, first)
    other = number(second) if isinstance(second, int) else within(j, second)
    found = outcome(name, scalar("i32", one), scalar("i32", other), dtype="i32")
    is_plain = not any(isinstance(atom, Apply) for mono, _ in found.items for atom, _ in mono)
    assert is_plain or (first, second) not in {((0, 2), (0, 2)), ((0, 2), 0), ((0, 2), 1)}
    assert is_plain or name != "xor" or (first, second) not in {((0, 3), 3), ((0, 8), 7), ((1, 8), 7)}
    if not is_plain:
        return
    places = {i: np.arange(8)[:, None], j: np.arange(8)}
    a, b, own = (np.broadcast_to(np.asarray(Evaluator({}).poly(p, places)), (8, 8)) for p in (one, other, found))
    assert (own == FUNCTIONS[name](a.astype(int), b.astype(int))).all()


@pytest.mark.parametrize("name", ["and", "or", "xor"])
@pytest.mark.parametrize("first", [-5, 0, 3])
def test_masks_of_places(name: str, first: int) -> None:
    """A place on a device and any mask without a sign: no function is left, and each bit is what a machine has it."""
    d, i = expr.var("d", "masks", 4), expr.var("i", "masks", 6)
    e = expr.shift(expr.add(expr.scale(expr.of_var(d), 6), expr.of_var(i)), first)
    places = {d: np.arange(4)[:, None], i: np.arange(6)}
    values = 6 * np.arange(4)[:, None] + np.arange(6) + first
    for mask in (*range(41), 64, 127):
        both = [scalar("i8", algebra.of_index(e)), scalar("i8", number(mask))]
        found = outcome(name, *both[:: 1 - 2 * (mask % 2)], dtype="i8")
        assert not any(isinstance(atom, Apply) for mono, _ in found.items for atom, _ in mono)
        own = np.broadcast_to(np.asarray(Evaluator({}).poly(found, places)), values.shape)
        assert (own == FUNCTIONS[name](values, mask)).all()


def test_shifts_by_the_width_are_not_done() -> None:
    assert outcome("shift_left", scalar("ui8", number(3)), scalar("ui8", number(8)), dtype="ui8").constant is None


@pytest.mark.parametrize("dtype", ["i8", "ui8", "i32", "ui64"])
@pytest.mark.parametrize("first", [0, 1, 3])
def test_shifts_by_places(dtype: str, first: int) -> None:
    """`x << (first + i)`, of places less than the width, wraps as a machine does; by others it is opaque."""
    kind, (lo, hi) = DTYPES[dtype], INTEGER_RANGES[dtype]
    width = kind.itemsize * 8
    x, place = tensor("argument", "x", dtype, (4,)), expr.var("x", "places", 4)
    values = np.array([1, 3, lo, hi], dtype=kind)
    read = algebra.read(x, [expr.of_var(place)])
    for size in (2, 5, width - first, width - first + 1):
        v = expr.var("v", "shifts", size)
        by = algebra.of_index(expr.shift(expr.of_var(v), first))
        found = outcome("shift_left", scalar(dtype, read), scalar(dtype, by), dtype=dtype)
        is_plain = not any(isinstance(atom, Apply) for mono, _ in found.items for atom, _ in mono)
        assert is_plain == (first + size <= width)
        if is_plain:
            own = Evaluator({x: values}).poly(found, {place: np.arange(4)[:, None], v: np.arange(size)})
            expected = values.astype(object)[:, None] << (np.arange(size).astype(object) + first)
            assert ((np.asarray(own, dtype=object) - expected) % (1 << width) == 0).all()


def hashed(x: jax.Array, planes: jax.Array) -> jax.Array:
    return jnp.sum((x @ planes > 0) * 2 ** jnp.arange(8), -1)


def own_bits(x: jax.Array, planes: jax.Array, first: int = 2) -> jax.Array:
    bits = (x @ planes > 0).astype(jnp.int32)
    return lax.psum(jnp.sum(bits << (first * lax.axis_index("x") + jnp.arange(2)), -1), "x")


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (own_bits, Verdict.PROVED),
        (lambda x, planes: own_bits(x, planes, first=1), Verdict.REFUTED),
        (lambda x, planes: own_bits(x, planes[:, ::-1]), Verdict.REFUTED),
    ],
    ids=["right", "shifted too little", "in the other order"],
)
def test_codes_of_bits_that_devices_find(local: Callable[..., jax.Array], expected: Verdict) -> None:
    """A hash of the sides of planes, of which each device has some."""
    shapes = jax.ShapeDtypeStruct((3, 4), jnp.float32), jax.ShapeDtypeStruct((4, 8), jnp.float32)
    mesh = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(local, mesh=mesh, in_specs=(P(), P(None, "x")), out_specs=P(), check_vma=False)
    found = hlo_verify.verify(*(jax.jit(f).trace(*shapes) for f in (hashed, mapped)), devices=4)
    assert found.verdict is expected


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (lambda x: x[::-1], Verdict.PROVED),
        (lambda x: x[jnp.arange(2) | 1], Verdict.REFUTED),
    ],
    ids=["right", "the second of a pair"],
)
def test_partners_of_pairs(local: Callable[..., jax.Array], expected: Verdict) -> None:
    """Pairs of examples side by side, as contrastive losses have them, each of which finds the other."""
    shape = jax.ShapeDtypeStruct((8, 3), jnp.float32)
    mesh = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    paired = jax.jit(lambda x: x[jnp.arange(8) ^ 1]).trace(shape)
    assert hlo_verify.verify(paired, jax.jit(mapped).trace(shape), devices=4).verdict is expected


@pytest.mark.parametrize(("integers", "floats"), [("ui32", "f32"), ("i32", "f32"), ("ui16", "bf16"), ("ui64", "f64")])
def test_bits_of_numbers(integers: str, floats: str) -> None:
    for known in (1.0, -2.5, 3.0e-5):
        exact = np.array(known, DTYPES[floats])
        pattern = int(exact.view(DTYPES[integers]))
        there = outcome("bitcast_convert", scalar(integers, number(pattern)), dtype=floats)
        assert there.constant is not None and float(there.constant) == float(exact)
        assert outcome("bitcast_convert", scalar(floats, there), dtype=integers).constant == pattern


@pytest.mark.parametrize("term", [ZERO, number(1 + 2 * 2**30 + 2**60)], ids=["no sign", "not held"])
def test_bits_that_are_not_known(term: Poly) -> None:
    assert outcome("bitcast_convert", scalar("f32", term), dtype="ui32").constant is None


def test_what_is_no_number_stays_a_function() -> None:
    assert outcome("bitcast_convert", scalar("ui32", number(0x7FC00000)), dtype="f32").constant is None
    assert outcome("bitcast_convert", scalar("ui32", number(0x80000000)), dtype="f32").constant is None


def test_infinities_are_compared() -> None:
    infinity = apply(INFINITY, ())
    values = {-np.inf: algebra.scale(infinity, -1), -1.0: number(-1), 0.0: ZERO, 2.0: number(2), np.inf: infinity}
    named = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge}
    for direction, holds in {**named, "EQ": operator.eq, "NE": operator.ne}.items():
        for a, p in values.items():
            for b, q in values.items():
                operands = scalar("f32", p), scalar("f32", q)
                found = outcome("compare", *operands, dtype="i1", comparison_direction=direction)
                assert found is (ONE if holds(a, b) else ZERO)


@pytest.mark.parametrize("dtype", ["i32", "ui8"])
def test_bits_of_places_are_counted(dtype: str) -> None:
    """Each a digit, or a power that is reached; of numbers, negative ones too, as a machine counts them."""
    width = 8 * DTYPES[dtype].itemsize
    for n in (0, 1, 5, 100, -1, -100):
        (operand,) = (scalar(dtype, number(n)),)
        assert outcome("popcnt", operand, dtype=dtype).constant == (n % (1 << width)).bit_count()
        assert outcome("count_leading_zeros", operand, dtype=dtype).constant == width - (n % (1 << width)).bit_length()
    place = expr.var("d", "place", 23)
    operand = scalar(dtype, algebra.of_index(expr.shift(expr.scale(expr.of_var(place), 3), 2)))
    counted, before = (outcome(name, operand, dtype=dtype) for name in ("popcnt", "count_leading_zeros"))
    for n in range(23):
        here = {place: expr.constant(n)}
        assert algebra.substitute(counted, here).constant == (3 * n + 2).bit_count()
        assert algebra.substitute(before, here).constant == width - (3 * n + 2).bit_length()


BIT_BY_BIT: dict[str, tuple[Callable[..., object], Callable[..., object], Callable[..., object]]] = {
    "or and and": (lambda a, b: a + b, lambda a, b: (a | b) + (a & b), lambda a, b: (a | b) + (a ^ b)),
    "exchanged": (
        lambda a, b: (b, a),
        lambda a, b: (lambda c: (c ^ a, c ^ b))(a ^ b),
        lambda a, b: (lambda c: (c | a, c ^ b))(a ^ b),
    ),
    "chosen": (lambda a, b: (a & b) | (~a & (a ^ b)), lambda a, b: b | (a & b), lambda a, b: a | (a & b)),
}


@pytest.mark.parametrize("name", BIT_BY_BIT)
def test_sums_of_bits(name: str) -> None:
    shape = jax.ShapeDtypeStruct((8,), jnp.int32)
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    whole, right, wrong = BIT_BY_BIT[name]
    for local, expected in ((right, Verdict.PROVED), (wrong, Verdict.REFUTED)):
        mapped = jax.shard_map(local, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"), check_vma=False)
        pair = (jax.jit(f).trace(shape, shape) for f in (whole, mapped))
        assert hlo_verify.verify(*pair, devices=2).verdict is expected


def test_sums_that_wrap_are_no_numbers_of_their_bits() -> None:
    """As a float, `a + b` is not what wraps: `(a | b) + (a & b)` may be no 32 bits."""
    shape = jax.ShapeDtypeStruct((8,), jnp.int32)
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    local = lambda a, b: (a | b).astype(jnp.float32) + (a & b).astype(jnp.float32)  # noqa: E731
    mapped = jax.shard_map(local, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"), check_vma=False)
    for whole, expected in (
        (lambda a, b: (a + b).astype(jnp.float32), Verdict.REFUTED),
        (lambda a, b: a.astype(jnp.float32) + b.astype(jnp.float32), Verdict.PROVED),
    ):
        pair = (jax.jit(f).trace(shape, shape) for f in (whole, mapped))
        assert hlo_verify.verify(*pair, devices=2).verdict is expected


@pytest.mark.parametrize("name", ["xor", "and", "or"])
def test_a_reduction_of_bits_by_devices(name: str, prover_alone: None) -> None:
    """Of each device's elements, and of those; a device that takes another one's places has another number."""
    join, first = getattr(lax, f"bitwise_{name}"), jnp.int32(-1 if name == "and" else 0)

    def reduced(x: jax.Array) -> jax.Array:
        return lax.reduce(x, first, join, (0,))

    def by_devices(x: jax.Array, step: int) -> jax.Array:
        at = (jnp.arange(3) + step * lax.axis_index("d")) * 40503
        return reduced(lax.all_gather(reduced(x ^ at), "d"))

    def verdict(step: int) -> Verdict:
        given, mesh = jax.ShapeDtypeStruct((12,), jnp.int32), AbstractMesh((4,), ("d",))
        mapped = jax.shard_map(
            lambda x: by_devices(x, step), mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False
        )
        whole = jax.jit(lambda x: reduced(x ^ (jnp.arange(12) * 40503))).trace(given)
        report = hlo_verify.verify(whole, jax.jit(mapped).trace(given), devices=4, refute=False, recheck=True)
        assert report.recheck is None or not report.recheck.disagreements
        return report.verdict

    assert verdict(3) is Verdict.PROVED
    assert verdict(2) is not Verdict.PROVED
