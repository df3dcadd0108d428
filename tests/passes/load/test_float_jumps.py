"""Which comparisons and roundings are marked, of numbers that hang on no argument."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.evaluate.nearly import SURE
from hlo_verify.passes.load.load import load
from hlo_verify.program.element_types import sure_digits
from hlo_verify.program.ir import IN_FLOATS, operations
from hlo_verify.program.op_families import JUMPS
from tests.support.places import DEVICES, GIVEN, MESH, PLACES, own, own_places, places, verdict

SIZE = 16
Places = Callable[[jax.Array], jax.Array]


def marks(function: Places) -> list[bool]:
    """Of every comparison and rounding of floats that a program is made of, whether it is marked."""
    text = jax.jit(lambda x: x * function(jnp.arange(SIZE))).lower(jnp.zeros(SIZE)).as_text()
    module = load(text)
    types = {v: t.dtype for op in operations(module.main) for v, t in zip(op.results, op.types, strict=True)}
    jumps = [op for op in operations(module.main) if op.name in JUMPS and types.get(op.operands[0], "").startswith("f")]
    return [IN_FLOATS in op.attributes for op in jumps if op.name != "convert" or not op.types[0].dtype.startswith("f")]


@pytest.mark.parametrize(
    ("function", "is_marked"),
    [
        (lambda i: 0.1 * i > 0.7, True),
        (lambda i: 0.1 * i > 0.75, False),
        (lambda i: i / 7 >= 1, False),
        (lambda i: i / 7 * 7 >= i, True),
        (lambda i: i / 8 >= 1, False),
        (lambda i: i * 0.375 - 3 > 0, False),
        (lambda i: 1.5 * i * 4 / 12 > 3.25, False),
        (lambda i: jnp.floor((i + 0.5) * 5 / SIZE), False),
        (lambda i: jnp.floor((i + 0.5) * 7 / 5), False),
        (lambda i: jnp.floor(i / 5 * 35), True),
        (lambda i: i / 3 >= 2, False),
        (lambda i: jnp.exp(0.0 * i) >= 1, True),
        (lambda i: jnp.round(0.3 * i), True),
        (lambda i: jnp.round(0.3 * i + 0.01), False),
        (lambda i: (0.3 * i).astype(jnp.int32), True),
        (lambda i: (0.3 * i + 0.05).astype(jnp.int32), False),
        (lambda i: jnp.sign(jnp.sin(i + 0.5)), False),
        (lambda i: jnp.sum(0.1 * i) > 12, True),
        (lambda i: jnp.sum(0.1 * i) > 3, False),
        (lambda i: jnp.sum(jnp.where(i == 0, 2.0**25, jnp.where(i == 1, 0.25, -(2.0**25) * (i == 2))) * 4) > 0.5, True),
        (lambda i: jnp.max(0.1 * i) > 0.75, False),
        (lambda i: jnp.max(0.1 * i) > 0.7, False),
        (lambda i: 1e-30 * i * 1e-30 > 0, True),
        (lambda i: jnp.exp(100.0 * i) * 0 == 0, True),
        (lambda i: i.astype(jnp.float32) > 7, False),
        (lambda i: (i | 1 << 24).astype(jnp.float32) > 2.0**24 + 1, True),
        (lambda i: (i << 2).astype(jnp.float32) > 7, False),
        (lambda i: jnp.maximum(i - 2.0**23, -(2.0**24)) + 2.0**23 + 0.25390625 > i, True),
        (lambda i: i + 2.0**10 + 0.25 > 1030, False),
    ],
)
def test_what_floats_may_decide_otherwise(function: Places, is_marked: bool) -> None:
    assert marks(lambda i: function(i) * 1.0) == [is_marked]


def test_the_evaluator_relies_on_as_many_digits() -> None:
    assert {dtype: sure_digits(dtype) for dtype in SURE} == SURE


def test_numbers_of_arguments_are_not_asked_for() -> None:
    text = jax.jit(lambda x: jnp.floor(0.1 * x)).lower(jnp.zeros(SIZE)).as_text()
    assert not any(IN_FLOATS in op.attributes for op in operations(load(text).main))


def test_a_conversion_to_complex_numbers_is_no_jump() -> None:
    text = jax.jit(lambda x: x * (0.1 * jnp.arange(SIZE)).astype(jnp.complex64)).lower(jnp.zeros(SIZE)).as_text()
    assert not any(IN_FLOATS in op.attributes for op in operations(load(text).main))


def ratios(i: jax.Array) -> jax.Array:
    """1 at place 3, or a little less."""
    return jnp.floor(lax.erf(i / 7) / 0.45554602)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x * ratios(jnp.arange(SIZE)),
        lambda x: x * lax.with_sharding_constraint(jnp.floor(jnp.arange(SIZE) / 7 * 7), P("x")),
        lambda x: jax.image.resize(x, (SIZE * 3 // 2,), "bilinear"),
    ],
    ids=["a function of another dialect", "sharded by itself", "weights by their sums"],
)
def test_what_xla_partitions_is_marked_alike(program: Places) -> None:
    """JAX writes `chlo.erf`, read as `mhlo.erf` of HLO; and XLA slices what was computed alike."""
    assert marks(ratios) == [True]
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    with jax.sharding.use_abstract_mesh(mesh):
        distributed = jax.jit(program, in_shardings=NamedSharding(mesh, P("x")))
        found = hlo_verify.check(distributed, jax.ShapeDtypeStruct((SIZE,), jnp.float32), refute=False)
    assert found.verdict is Verdict.PROVED


def test_a_loop_has_the_marks_too() -> None:
    def turn(_: int, x: jax.Array) -> jax.Array:
        return x + jnp.floor(jnp.arange(SIZE) / 7 * 7)

    text = jax.jit(lambda x: lax.fori_loop(0, 3, turn, x)).lower(jnp.zeros(SIZE)).as_text()
    assert [op.name for op in operations(load(text).main) if IN_FLOATS in op.attributes] == ["floor"]


@pytest.mark.parametrize(
    "counted",
    [
        lambda: lax.map(lambda t: jnp.floor(t / 41 * 41) == t, jnp.arange(64.0)),
        lambda: lax.scan(lambda s, _: (s + 1, s / 41 * 41 >= s), jnp.float32(0), None, 64)[1],
        lambda: lax.fori_loop(0, 64, lambda t, held: held & (t / 41 * 41 >= t), True),
        lambda: (
            lax.fori_loop(0, 7, lambda t, s: s + jnp.where(t == 0, 2.0**25, jnp.where(t < 6, 1.0, -(2.0**25))), 0.0) > 4
        ),
    ],
    ids=["map", "scan", "a condition", "a sum"],
)
def test_what_loops_count_is_decided_by_floats_too(counted: Callable[[], jax.Array]) -> None:
    """All of these hold of real numbers, and not of what XLA computes; what is the same in both is the same."""
    assert not np.all(np.asarray(jax.jit(counted)()))
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    x = jax.ShapeDtypeStruct((4,), jnp.float32)

    def verdict(local: Callable[[], jax.Array]) -> Verdict:
        mapped = jax.shard_map(
            lambda x: lax.psum(x.sum(), "x") * local(), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False
        )
        return hlo_verify.check(lambda x: x.sum() * counted(), mapped, x, refute=False).verdict

    assert verdict(lambda: jnp.ones(counted().shape, bool)) is Verdict.UNKNOWN
    assert verdict(counted) is Verdict.PROVED


def test_constants_alone_may_be_decided_otherwise() -> None:
    """`floor(c * 3)` of 0.333333343, as a pass has it that folds 1/3: one float below 1, or 1."""

    def shard(x: jax.Array) -> jax.Array:
        return x * jnp.floor(lax.optimization_barrier(jnp.float32(1 / 3)) * 3)

    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(shard, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    x = jax.ShapeDtypeStruct((4,), jnp.float32)
    assert hlo_verify.check(lambda x: x, mapped, x).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("runs", [True, False])
def test_a_table_of_what_floats_give_is_not_refuted(runs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA multiplies by 1/41, so that 40 is at 41: neither the one nor the other is said to be so."""
    if not runs:  # as of modules that are too large for XLA to run them
        monkeypatch.setattr("hlo_verify.passes.refute.refute.is_small", lambda pair: False)
        monkeypatch.setattr("hlo_verify.passes.refute.where_decided.is_small", lambda pair: False)
    places = jnp.arange(64.0)
    table = np.asarray(jax.jit(lambda: jnp.floor(jnp.arange(64.0) / 41 * 41))())
    assert table[41] == 40

    def plain(x: jax.Array) -> jax.Array:
        return jnp.floor(places / 41 * 41) * x

    def shard(x: jax.Array, table: np.ndarray) -> jax.Array:
        return jnp.asarray(table)[lax.axis_index("x") * 32 + jnp.arange(32)] * x

    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    for held in (table, np.arange(64.0, dtype=np.float32)):
        mapped = jax.shard_map(
            lambda x, held=held: shard(x, held), mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False
        )
        x = jax.ShapeDtypeStruct((64,), jnp.float32)
        assert hlo_verify.check(plain, mapped, x).verdict is Verdict.UNKNOWN


def after_a_barrier(k: int) -> jax.Array:
    return jnp.floor(places() / lax.optimization_barrier((jnp.float32(8), jnp.float32(41)))[k] * 41)


CANCELLING = np.float32([-3, -(2**24), 1, 2**24, 1, -3, -1, 5])
TURNED = [(n, (n + 1) % DEVICES) for n in range(DEVICES)]


@pytest.mark.parametrize(
    ("whole", "real"),
    [
        (lambda: jnp.floor(places() / 41 * 41 / 2 * 2), places),
        (lambda: after_a_barrier(1), places),
        (lambda: jnp.floor(places() / jnp.int32(41.7) * 41), places),
        (
            lambda: jnp.broadcast_to(jnp.cumsum(jnp.asarray(CANCELLING))[-1] >= 0, PLACES) * 1.0,
            lambda: jnp.ones(PLACES),
        ),
        (lambda: jnp.broadcast_to(jnp.sign(jnp.asarray(CANCELLING) @ jnp.ones(8)), PLACES), lambda: jnp.zeros(PLACES)),
        (lambda: jnp.argmax(jnp.abs(places() / 41 * 41 - places())) * jnp.ones(PLACES), lambda: jnp.zeros(PLACES)),
        (lambda: jnp.argsort(places() / 41 * 41 - places()) * 1.0, places),
        (lambda: lax.top_k(jnp.abs(places() / 41 * 41 - places()), PLACES)[1] * 1.0, places),
        (lambda: lax.switch(jnp.int32(1), [lambda: places(), lambda: jnp.floor(places() / 41 * 41)]), places),
        (lambda: jnp.floor(lax.switch(jnp.int32(1), [lambda: places(), lambda: places() / 41]) * 41), places),
        (lambda: lax.map(jnp.floor, places() / 41 * 41), lambda: lax.map(jnp.floor, places())),
        (lambda: jnp.floor(jnp.where(places() < 42, places() / 41 * 41, places())), places),
        (
            lambda: jnp.floor(jnp.where(places() < 32, places() / 41 * 41, places() * 0.1 * 10)),
            lambda: jnp.floor(jnp.where(places() < 32, places() * 0.1 * 10, places() / 41 * 41)),
        ),
        (
            lambda: jnp.floor(places() / 41 * (63 - places())),
            lambda: jnp.floor((63 - places()) / 41 * places()),
        ),
    ],
    ids=[
        "divided once more",
        "another operand of a barrier",
        "a converted divisor",
        "a running sum of 0",
        "a product of 0",
        "argmax",
        "argsort",
        "top_k",
        "a branch",
        "divided in a branch",
        "handed to a loop",
        "partly",
        "exchanged",
        "two factors exchanged",
    ],
)
def test_what_hangs_on_no_argument_is_decided_by_floats(
    whole: Callable[[], jax.Array], real: Callable[[], jax.Array]
) -> None:
    """Both are the same of real numbers; nothing is said of it, but where devices do what the whole program does."""
    assert verdict(whole, lambda: own(real())) is Verdict.UNKNOWN
    assert verdict(whole, lambda: own(whole())) is Verdict.PROVED


@pytest.mark.parametrize(
    "local",
    [
        lambda: own(jnp.floor(lax.all_gather(own(places()) / 41, "d", tiled=True) * 41)),
        lambda: jnp.floor(
            lax.ppermute(lax.ppermute(own(places()) / 41, "d", TURNED), "d", [(b, a) for a, b in TURNED]) * 41
        ),
        lambda: own(jnp.floor(lax.psum(places() / 41, "d") * 41)) / DEVICES,
        lambda: jnp.floor(lax.psum_scatter(places() / 41, "d", tiled=True) * 41) / DEVICES,
        lambda: own(jnp.floor(lax.pmax(places() / 41, "d") * 41)),
        lambda: jnp.floor(
            lax.all_to_all(jnp.tile(places() / 41, (DEVICES, 1)), "d", 1, 0, tiled=True).reshape(DEVICES, DEVICES, -1)[
                0, 0
            ]
            * 41
        ),
    ],
    ids=["all_gather", "ppermute", "psum", "psum_scatter", "pmax", "all_to_all"],
)
def test_what_devices_exchange_hangs_on_no_argument_either(local: Callable[[], jax.Array]) -> None:
    assert verdict(places, local) is not Verdict.PROVED


def test_what_is_handed_to_a_region_is_decided_by_floats() -> None:
    """And what a region gives."""
    given = GIVEN

    def into(x: jax.Array) -> jax.Array:
        body = jax.shard_map(lambda x, t: x * jnp.floor(t * 41), mesh=MESH, in_specs=(P("d"), P("d")), out_specs=P("d"))
        return body(x, places() / 41)

    def whole_into(x: jax.Array) -> jax.Array:
        local = lambda x, t: x * own(jnp.floor(t * 41))  # noqa: E731
        body = jax.shard_map(local, mesh=MESH, in_specs=(P("d"), P()), out_specs=P("d"))
        return body(x, places() / 41)

    def out_of(x: jax.Array) -> jax.Array:
        table = jax.shard_map(lambda: own(places()) / 41, mesh=MESH, in_specs=(), out_specs=P("d"))()
        return x * jnp.floor(table * 41)

    for program in (into, whole_into, out_of):
        assert (
            hlo_verify.check(lambda x: x * places(), jax.jit(program), given, refute=False).verdict is Verdict.UNKNOWN
        )
        same = hlo_verify.check(lambda x: x * jnp.floor(places() / 41 * 41), jax.jit(program), given, refute=False)
        assert same.verdict is Verdict.PROVED


def handed_on_beside(x: jax.Array) -> jax.Array:
    y, table = lax.optimization_barrier((x, places() / 41))
    return y * jnp.floor(table * 41)


def recomputed(x: jax.Array) -> jax.Array:
    return jax.grad(jax.checkpoint(lambda y, t: jnp.sum(y * y * jnp.floor(t * 41))))(x, places() / 41) / 2


def put_in_order(x: jax.Array, num_keys: int = 1) -> jax.Array:
    return lax.sort((jnp.abs(places() / 41 * 41 - places()), x), num_keys=num_keys)[1]


def put_in_order_by_both(x: jax.Array) -> jax.Array:
    return put_in_order(x, num_keys=2)


@pytest.mark.parametrize("program", [handed_on_beside, recomputed, put_in_order, put_in_order_by_both])
def test_what_hangs_on_arguments_may_stand_beside(program: Callable[[jax.Array], jax.Array]) -> None:
    """In an operation that gives both as they are, or puts one in the order of the other."""
    real = (lambda x: x) if program in (put_in_order, put_in_order_by_both) else (lambda x: x * own(places()))
    given = GIVEN
    mapped = jax.shard_map(real, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    assert hlo_verify.check(program, mapped, given, refute=False).verdict is Verdict.UNKNOWN
    copied = jax.shard_map(program, mesh=MESH, in_specs=P(), out_specs=P(), check_vma=False)
    assert hlo_verify.check(program, copied, given, refute=False).verdict is Verdict.PROVED


def test_which_of_two_places_is_divided_is_told() -> None:
    """`i/41 * j` by the dimensions along which they vary."""
    shape, part = (PLACES, PLACES), PLACES // DEVICES

    def along(k: int) -> jax.Array:
        return lax.broadcasted_iota(jnp.float32, shape, k)

    def product(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.floor(a / 41 * b)

    assert (
        verdict(lambda: product(along(0), along(1)), lambda: own(product(along(1), along(0))), shape) is Verdict.UNKNOWN
    )

    def local() -> jax.Array:
        first = lax.axis_index("d") * part
        here = (first + lax.broadcasted_iota(jnp.int32, (part, PLACES), 0)).astype(jnp.float32)
        return product(here, lax.broadcasted_iota(jnp.float32, (part, PLACES), 1))

    assert verdict(lambda: product(along(0), along(1)), local, shape) is Verdict.PROVED


@pytest.mark.parametrize(
    ("table", "is_open"),
    [
        (lambda i: jnp.sin(i), False),
        (lambda i: jnp.where(i < 3, i, 7 - i), False),
        (lambda i: 0.5 * jnp.floor(i / 4 + 0.1), False),
        (lambda i: jnp.abs(i / 41 * 41 - i), True),
        (lambda i: jnp.sin(jnp.floor(i / 4 + 0.1)), True),
    ],
)
def test_orders_are_open_where_numbers_are_near_each_other(table: Places, is_open: bool) -> None:
    """Equal ones, too, but for exact ones: an order of what was rounded is not that of real numbers."""
    text = jax.jit(lambda x: x * jnp.argsort(table(jnp.arange(SIZE)))).lower(jnp.zeros(SIZE)).as_text()
    assert [op.name for op in operations(load(text).main) if IN_FLOATS in op.attributes] == ["sort"] * is_open


def test_which_is_asked_whether_it_is_greater_is_told() -> None:
    """`i/41*41 > i` is false at 41, and true of `i > i/41*41`, where real numbers are equal."""

    def rounded(i: jax.Array) -> jax.Array:
        return i / 41 * 41

    asked = {
        "greater": lambda i: rounded(i) > i,
        "less": lambda i: i < rounded(i),
        "the other one": lambda i: i > rounded(i),
        "less than it": lambda i: rounded(i) < i,
    }
    for a, first in enumerate(asked.values()):
        for b, second in enumerate(asked.values()):
            found = verdict(lambda first=first: first(places()), lambda second=second: second(own_places()))
            assert found is (Verdict.PROVED if a // 2 == b // 2 else Verdict.UNKNOWN), (a, b)


@pytest.mark.parametrize("number", [jnp.inf, jnp.nan])
def test_numbers_that_are_none_may_be_added_twice(number: float) -> None:
    def computed(x: jax.Array) -> jax.Array:
        many = jnp.full(x.shape, number)
        return jnp.where(jnp.isnan(many + many - many), x, many)

    mapped = jax.shard_map(computed, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    assert hlo_verify.check(computed, mapped, GIVEN, refute=False).verdict is Verdict.PROVED
