"""Functions at infinities, and programs that mask with them: right ones are confirmed, wrong ones are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.nn import logsumexp
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.passes.recheck.answer import Finding, Task, answer
from hlo_verify.passes.recheck.at_infinities import ENDS, ends_of_power
from hlo_verify.passes.recheck.recheck import recheck_with
from hlo_verify.terms.functions import EXPONENTIAL, INVERSE, LOG, SQRT
from tests.passes.prove.each_device.programs import on
from tests.support.lowering import Placed

OTHERS = {
    str(EXPONENTIAL): np.exp,
    str(LOG): np.log,
    str(SQRT): np.sqrt,
    str(INVERSE): lambda x: 1 / x,
    "positive": lambda x: float(x > 0),
    "zero": lambda x: float(x == 0),
    "cosine": np.cos,
    "exponential_minus_one": np.expm1,
    "log_plus_one": np.log1p,
    "sine": np.sin,
    "erf": lambda x: float(jax.lax.erf(np.float32(x))),
    "erfc": lambda x: float(jax.lax.erfc(np.float32(x))),
    "logistic": lambda x: float(jax.nn.sigmoid(np.float32(x))),
    "round_nearest_afz": np.round,
    "round_nearest_even": np.round,
    "rsqrt": lambda x: float(jax.lax.rsqrt(np.float32(x))),
    "asinh": np.arcsinh,
}


@pytest.mark.parametrize("name", ENDS)
def test_values_at_infinities(name: str) -> None:
    function = OTHERS.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        for end, x in zip(ENDS[name], (-np.inf, np.inf), strict=True):
            assert np.isclose(function(x), end, equal_nan=True), x


@pytest.mark.parametrize("exponent", [Fraction(n, 2) for n in range(-7, 8) if n])
def test_powers_at_infinities(exponent: Fraction) -> None:
    with np.errstate(all="ignore"):
        of_minus, of_plus = (np.power(x, float(exponent)) for x in (-np.inf, np.inf))
    least, greatest = ends_of_power(exponent)
    assert greatest == of_plus
    assert np.isnan(least) if exponent.denominator > 1 else least == of_minus


# programs


def _inline(tasks: Sequence[Task]) -> Iterator[tuple[int, Finding]]:
    for n, task in enumerate(tasks):
        yield n, answer(task)


MESH = {"i": 2}
BOTH = (P(None, "i"), P(None, "i"))
ARGUMENTS = [jax.ShapeDtypeStruct((3, 4), kind) for kind in (jnp.float32, jnp.bool_)]


def placed(wanted: P) -> Placed:
    return Placed(on(MESH, BOTH, wanted).mesh, BOTH, wanted, ARGUMENTS)


def softmax(x: jax.Array, keep: jax.Array, low: float = -np.inf) -> jax.Array:
    return jax.nn.softmax(jnp.where(keep, x, low), -1)


def weights(
    x: jax.Array, keep: jax.Array, *, low: float = -np.inf, summed: bool = True, kept: bool = True
) -> jax.Array:
    scores = jnp.where(keep == kept, x, low)
    e = jnp.exp(scores - lax.pmax(scores.max(-1, keepdims=True), "i"))
    total = e.sum(-1, keepdims=True)
    return e / (lax.psum(total, "i") if summed else total)


def greatest(x: jax.Array, keep: jax.Array) -> jax.Array:
    return jnp.max(x, -1, where=keep, initial=-jnp.inf)


def greatest_of_devices(x: jax.Array, keep: jax.Array, *, low: float = -np.inf) -> jax.Array:
    return lax.pmax(jnp.where(keep, x, low).max(-1), "i")


PROGRAMS: dict[str, tuple[Placed, Callable[..., jax.Array], Callable[..., jax.Array], list[dict[str, object]]]] = {
    "softmax": (placed(P(None, "i")), softmax, weights, [{"low": 0.0}, {"summed": False}, {"kept": False}]),
    "softmax by a number": (
        placed(P(None, "i")),
        partial(softmax, low=-1e30),
        partial(weights, low=-1e30),
        [{"low": -1e29}, {"summed": False}],
    ),
    "greatest": (placed(P()), greatest, greatest_of_devices, [{"low": 0.0}]),
    "exponentials": (
        placed(P(None, "i")),
        lambda x, keep: jnp.exp(jnp.where(keep, x, -jnp.inf)),
        lambda x, keep, other=0.0: jnp.where(keep, jnp.exp(x), other),
        [{"other": 1.0}],
    ),
    "no power": (
        placed(P(None, "i")),
        lambda x, keep: jnp.where(keep, jnp.inf, x) ** jnp.zeros_like(x),
        lambda x, keep, power=0.0: jnp.where(keep, jnp.inf, x) ** jnp.full_like(x, power),
        [{"power": 0.5}, {"power": -1.0}],
    ),
    "half a power": (
        placed(P(None, "i")),
        lambda x, keep: jnp.where(keep, jnp.inf, x) ** jnp.full_like(x, 1.5),
        lambda x, keep, power=1.5: jnp.where(keep, jnp.inf, x) ** jnp.full_like(x, power),
        [{"power": 0.5}, {"power": 2.5}],
    ),
    "logarithms": (
        placed(P(None, "i")),
        lambda x, keep: logsumexp(x[..., None], -1, where=keep[..., None]),
        lambda x, keep, low=-np.inf: logsumexp(jnp.where(keep, x, low)[..., None], -1),
        [],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_masked_programs_are_confirmed(name: str) -> None:
    where, whole, right, _ = PROGRAMS[name]
    report = hlo_verify.verify(*where.pair(whole, right), refute=False, recheck=True)
    assert report.verdict is Verdict.PROVED, report
    assert report.recheck is not None and not report.recheck.disagreements


@pytest.mark.parametrize(("name", "wrong"), [(name, n) for name in PROGRAMS for n in range(len(PROGRAMS[name][3]))])
def test_wrong_ones_are_not(name: str, wrong: int) -> None:
    where, whole, local, versions = PROGRAMS[name]
    pair = where.pair(whole, lambda x, keep: local(x, keep, **versions[wrong]))
    found = recheck_with(_inline, load(pair[0]), load(pair[1]), 2000)
    assert found.agreed + found.partly < found.steps
