"""Steps of optimizers that people spell by weights, `0.9*m + 0.1*g`, or by differences, `m + 0.1*(g - m)`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.chain import by_people

MESH = jax.sharding.AbstractMesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
MATRIX = jax.ShapeDtypeStruct((8, 2), jnp.float32)
STEP = jax.ShapeDtypeStruct((), jnp.float32)
ARGUMENTS = (MATRIX, MATRIX, MATRIX, jax.ShapeDtypeStruct((4, 8, 2), jnp.float32), STEP)
SPLIT = (P("d"), P("d"), P("d"), P("d"), P())

State = tuple[jax.Array, jax.Array, jax.Array]
Step = Callable[[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array], State]


def adamw(w: jax.Array, m: jax.Array, v: jax.Array, grads: jax.Array, t: jax.Array) -> State:
    """A step with decayed weights, whose moments are corrected by powers of the weights that they have."""
    g = grads.mean(0)
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    first, second = m / (1 - 0.9**t), v / (1 - 0.999**t)
    return w - 1e-3 * (first / (jnp.sqrt(second) + 1e-8) + 0.1 * w), m, v


def by_differences(*, rate: float = 0.1, base: float = 0.999, decay: float = 1e-3 * 0.1) -> Step:
    """The same of shards, moments moved by a part of what gradients differ from them by."""

    def local(w: jax.Array, m: jax.Array, v: jax.Array, grads: jax.Array, t: jax.Array) -> State:
        g = lax.psum_scatter(grads[0], "d", scatter_dimension=0, tiled=True) / 4
        m, v = m + rate * (g - m), v + 0.001 * (g**2 - v)
        first, second = m / (1 - 0.9**t), v / (1 - base**t)
        return w * (1 - decay) - 1e-3 * first / (jnp.sqrt(second) + 1e-8), m, v

    return jax.shard_map(local, mesh=MESH, in_specs=SPLIT, out_specs=(P("d"),) * 3)


@pytest.mark.parametrize(
    ("step", "verdict"),
    [
        (by_differences(), Verdict.PROVED),
        (by_differences(rate=0.11), Verdict.UNKNOWN),
        (by_differences(base=0.99), Verdict.UNKNOWN),
        (by_differences(decay=1e-3), Verdict.UNKNOWN),
    ],
)
def test_moments_that_are_corrected_by_powers_of_their_weights(step: Step, verdict: Verdict) -> None:
    """The rounding of 0.999 is one in `0.999*v`, and a thousand in `1 - 0.999**t`, where it is not read as a rest. No
    witness is looked for, so that what is wrong is not refuted before."""
    pair = jax.jit(adamw).trace(*ARGUMENTS), jax.jit(step).trace(*ARGUMENTS)
    report = hlo_verify.verify(*pair, assume={"v": "nonnegative"}, refute=False)
    assert report.verdict is verdict, report
    assert verdict is Verdict.UNKNOWN or any("1 - 0.00100000005, rounded" in said for said in report.assumptions)


def test_numbers_that_differ_by_far_spare_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proof of a reading would be one of what numbers show to differ."""
    tried = []
    monkeypatch.setattr(by_people, "proof_by_people", lambda *given: (tried.append(given), (None, None))[1])
    x = jax.ShapeDtypeStruct((8, 4), jnp.float32)
    mesh = jax.sharding.AbstractMesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    places = {"mesh": mesh, "in_specs": P("d"), "out_specs": P("d")}
    for factor, count in ((0.3, 0), (0.50001, 1)):
        local = jax.shard_map(lambda x, factor=factor: jnp.tanh(x * factor), **places)
        assert hlo_verify.check(lambda x: jnp.tanh(x / 2), local, x).verdict is not Verdict.PROVED
        assert len(tried) == count


# Optimizers with averages of weights


def averaged(w: jax.Array, e: jax.Array, m: jax.Array, g: jax.Array, *, decay: float, rate: float) -> State:
    m = 0.9 * m + g
    w = w - rate * (g + 0.9 * m)
    return w, decay * e + (1 - decay) * w, m


def averaged_by_hand(
    w: jax.Array, e: jax.Array, m: jax.Array, g: jax.Array, *, ahead: float, decay: float, rate: float
) -> State:
    m = g + 0.9 * m
    w = w - (rate * g + ahead * m)
    return w, e + (1 - decay) * (w - e), m


@pytest.mark.parametrize(
    ("decay", "rate", "ahead", "is_right"),
    [
        (0.9, 0.2, 0.18, True),  # 0.9 is the momentum and what 0.1 leaves of 1
        (0.99, 0.1, 0.09, True),  # 0.09 is 0.1 - 0.01 as well
        (0.9, 0.2, 0.1801, False),
        (0.99, 0.1, 0.0901, False),
    ],
)
def test_a_momentum_beside_an_average_of_weights(decay: float, rate: float, ahead: float, is_right: bool) -> None:
    local = partial(averaged_by_hand, ahead=ahead, decay=decay, rate=rate)
    step = jax.shard_map(local, mesh=MESH, in_specs=(P("d"),) * 4, out_specs=(P("d"),) * 3)
    arguments = [jax.ShapeDtypeStruct((8, 4), jnp.float32)] * 4
    pair = jax.jit(partial(averaged, decay=decay, rate=rate)).trace(*arguments), jax.jit(step).trace(*arguments)
    assert (hlo_verify.verify(*pair, refute=False).verdict is Verdict.PROVED) is is_right


HEADS = jax.ShapeDtypeStruct((4, 2), jnp.float32)
PAGES = jax.ShapeDtypeStruct((5, 2, 4, 2), jnp.float32)
DECODED = (HEADS, PAGES, PAGES, jax.ShapeDtypeStruct((3,), jnp.int32), jax.ShapeDtypeStruct((), jnp.int32))


def decoded(q: jax.Array, keys: jax.Array, values: jax.Array, table: jax.Array, count: jax.Array) -> jax.Array:
    """Attention to as many positions of three pages, which a table lists."""
    k, v = (pages[table].reshape(6, -1, 2) for pages in (keys, values))
    scores = jnp.einsum("hd,thd->ht", q, k) / jnp.sqrt(2.0)
    scores = jnp.where(jnp.arange(6)[None] < count, scores, -jnp.inf)
    return jnp.einsum("ht,thd->hd", jax.nn.softmax(scores, 1), v)


def page_by_page(late: int) -> Callable[..., jax.Array]:
    """The same of each device's head, with a running maximum, another spelling of the scale and another mask."""

    def local(q: jax.Array, keys: jax.Array, values: jax.Array, table: jax.Array, count: jax.Array) -> jax.Array:
        def page(carry: State, i: jax.Array) -> tuple[State, None]:
            most, total, out = carry
            k, v = (lax.dynamic_index_in_dim(pages, table[i], 0, keepdims=False) for pages in (keys, values))
            scores = jnp.sum(q[None] * k, -1) * 2**-0.5
            scores = jnp.where((2 * i + jnp.arange(2))[:, None] < count + late, scores, -1e30)
            new = jnp.maximum(most, scores.max(0))
            e, r = jnp.exp(scores - new), jnp.exp(most - new)
            return (new, total * r + e.sum(0), out * r[:, None] + jnp.einsum("th,thd->hd", e, v)), None

        start = (jnp.full(q.shape[0], -jnp.inf), jnp.zeros(q.shape[0]), jnp.zeros((q.shape[0], 2)))
        (_, total, out), _ = lax.scan(page, start, jnp.arange(3))
        return out / total[:, None]

    places = (P("d"), P(None, None, "d"), P(None, None, "d"), P(), P())
    return jax.shard_map(local, mesh=MESH, in_specs=places, out_specs=P("d"), check_vma=False)


@pytest.mark.parametrize(("late", "verdict"), [(0, Verdict.PROVED), (1, Verdict.REFUTED)])
def test_any_reading_by_construction_comes_first(late: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that may be tried of the modules as they are took 20 s; with the other mask they are one by construction."""
    monkeypatch.setattr(by_people, "examine", None)
    pair = jax.jit(decoded).trace(*DECODED), jax.jit(page_by_page(late)).trace(*DECODED)
    report = hlo_verify.verify(*pair, assume={"table": (0, 5), "count": (1, 7)})
    assert report.verdict is verdict, report


@pytest.mark.parametrize("divides_first", [True, False])
@pytest.mark.parametrize(
    ("size", "further", "is_right"), [(6, 0, True), (96, 0, True), (12, 0, True), (6, 1, False), (96, 1, False)]
)
def test_a_root_and_its_inverse_rounded_each_on_its_own(
    size: int, further: int, is_right: bool, divides_first: bool
) -> None:
    """96**-0.5 is not the float next to 1 over the float next to sqrt(96), but the one beside it; no other one is."""
    root, inverse = np.float32(size**0.5), np.float32(size**-0.5)
    away = np.float32(np.sign(float(inverse) - 1 / float(root)) * np.inf)
    for _ in range(further):
        inverse = np.nextafter(inverse, away)
    spellings: list[Callable[[jax.Array], jax.Array]] = [lambda x: jnp.exp(x / root), lambda x: jnp.exp(x * inverse)]
    whole, part = spellings if divides_first else reversed(spellings)
    local = jax.shard_map(
        lambda x: lax.all_gather(part(x), "d", tiled=True), mesh=MESH, in_specs=P("d"), out_specs=P(), check_vma=False
    )
    report = hlo_verify.verify(jax.jit(whole).trace(MATRIX), jax.jit(local).trace(MATRIX), refute=False)
    assert (report.verdict is Verdict.PROVED) is is_right, report
    assert not is_right or any("rounded" in said for said in report.assumptions)
