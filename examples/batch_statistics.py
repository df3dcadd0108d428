"""Verify what is around an approximation that is meant: `python examples/batch_statistics.py`.

Batch normalization takes the mean and variance of the whole batch. Split over 4 devices, it is usually left at those of
a device's own part: another function, and REFUTED. With the two declared to stand for the reference's, all else is
proved, for whatever values they have; with what gradients come to there declared as well, so are gradients. Mistakes
elsewhere are found as ever: the second version takes the variance for a deviation, the third forgets to add up the
gradients of the weights.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from shared import expect, floats, mesh

import hlo_verify

STATISTICS = {"stats/mean": "stats/mean", "stats/variance": "stats/variance"}
"""Of the distributed program, and what they stand for in the reference: the scopes are called alike here."""

GRADIENTS = {f"transpose({name})": f"transpose({name})" for name in STATISTICS}
"""What gradients come to there."""


def network(weights: Any, x: jax.Array, deviation: bool = False) -> jax.Array:
    hidden = x @ weights["in"]
    with jax.named_scope("stats/mean"):
        mean = hidden.mean(0)
    with jax.named_scope("stats/variance"):
        variance = hidden.var(0)
    spread = variance if deviation else jnp.sqrt(variance + 1e-5)
    return jnp.tanh((hidden - mean) / spread * weights["scale"]) @ weights["out"]


def loss(weights: Any, x: jax.Array) -> jax.Array:
    return jnp.sum(network(weights, x) ** 2)


def gradients(summed: bool, weights: Any, x: jax.Array) -> Any:
    found = jax.grad(loss)(weights, x)
    return lax.psum(found, "data") if summed else found


def main() -> None:
    weights, x = {"in": floats(8, 16), "scale": floats(16), "out": floats(16, 4)}, floats(32, 8)
    spread = partial(jax.shard_map, mesh=mesh(data=4), in_specs=(P(), P("data")), check_vma=False)
    forward = spread(network, out_specs=P("data"))
    expect("REFUTED", hlo_verify.check(network, forward, weights, x), "Nothing declared")
    declared = partial(hlo_verify.check, approximations=STATISTICS)
    expect("PROVED", declared(network, forward, weights, x), "Statistics declared")
    wrong = spread(partial(network, deviation=True), out_specs=P("data"))
    expect("REFUTED", declared(network, wrong, weights, x), "A mistake in how they are used")
    declared = partial(hlo_verify.check, approximations=STATISTICS | GRADIENTS)
    for summed in (True, False):
        backward = spread(partial(gradients, summed), out_specs=P())
        title = "Gradients" if summed else "Gradients that are not added up"
        expect("PROVED" if summed else "REFUTED", declared(jax.grad(loss), backward, weights, x), title)


if __name__ == "__main__":
    main()
