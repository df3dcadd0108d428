"""A value that is the opposite of a logical tensor's block is seen and proved to be it, as a loss is of what its
reference calls one."""

from __future__ import annotations

import random
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.prove.each_device.apart import Apart
from hlo_verify.session import Session
from tests.passes.prove.each_device.programs import Function, Program, on
from tests.passes.prove.test_cut_points import guessed, loaded, misled


def policy_loss(z: jax.Array, old: jax.Array, gain: jax.Array) -> jax.Array:
    """A clipped policy gradient and the entropy of the policy, as a textbook has them."""
    p = jax.nn.log_softmax(z, -1)
    ratio = jnp.exp(p[:, 0] - old)
    objective = jnp.minimum(ratio * gain, jnp.clip(ratio, 0.8, 1.2) * gain).mean()
    return -objective - 0.01 * -(jnp.exp(p) * p).sum(-1).mean()


def on_rows(sign: float = -1.0, least: float = 0.8) -> Function:
    """The same of some rows each, with the greater of two losses and the entropy by the logarithm of sums."""

    def local(z: jax.Array, old: jax.Array, gain: jax.Array) -> jax.Array:
        norm = jax.nn.logsumexp(z, -1)
        ratio = jnp.exp(z[:, 0] - norm - old)
        loss = jnp.maximum(-gain * ratio, -gain * jnp.clip(ratio, least, 1.2)).sum()
        entropy = (norm - jnp.sum(jax.nn.softmax(z, -1) * z, -1)).sum()
        return lax.psum(loss + sign * 0.01 * entropy, "i") / 8

    return local


ROWS = P("i")
POLICY = Program(
    on({"i": 4}, (ROWS, ROWS, ROWS), P(), (8, 4), (8,), (8,)),
    policy_loss,
    on_rows,
    {"the entropy's opposite": {"sign": 1.0}, "another bound": {"least": 0.5}},
)


def test_two_losses_that_are_each_spelled_otherwise() -> None:
    report = hlo_verify.verify(*POLICY.pair(), refute=False)
    assert report.verdict is Verdict.PROVED, [result.reason for result in report.results]


@pytest.mark.parametrize("wrong", POLICY.wrong)
def test_wrong_losses(wrong: str) -> None:
    """Nor is one proved where each guess says the opposite of what it does, or that a value is another one's."""
    pair = loaded(POLICY, wrong)
    with Session().on() as session:
        found = guessed(pair, session)
        turned = {made: [replace(g, is_opposite=not g.is_opposite) for g in each] for made, each in found.items()}
        assert any(guess.is_opposite for each in found.values() for guess in each)
        for guesses in (found, turned, misled(turned, random.Random(0))):
            assert not Apart(*pair, session, [0], guesses=guesses).proves_briefly(0)
