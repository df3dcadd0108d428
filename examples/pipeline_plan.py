"""Verify a pipeline that is several programs: `python examples/pipeline_plan.py`.

Two ranks train a network of two layers with two microbatches. Each rank runs programs of its own and hands the other
one activations and gradients: a plan says which, and it is compared with the textbook's step. The second plan adds up
the gradients of the microbatches where the loss is their mean; the third is written out by hand, for inference, and
hands the second rank the microbatches in the wrong order.
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp

import hlo_verify
from hlo_verify import Plan
from hlo_verify.plans import Join, Receive, Run, Send


def layer(weights: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ weights)


def error(y: jax.Array, target: jax.Array) -> jax.Array:
    return jnp.mean((y - target) ** 2)


def reference(params: Any, x: jax.Array, target: jax.Array) -> Any:
    return jax.value_and_grad(lambda params: error(inference(params, x), target))(params)


def inference(params: Any, x: jax.Array) -> jax.Array:
    for weights in params:
        x = layer(weights, x)
    return x


def training(accumulate: str) -> Plan:
    return Plan.pipeline([layer, layer], microbatches=2, loss=error, accumulate=accumulate, schedule="1f1b")


def by_hand(first: str, second: str) -> Plan:
    """The first rank sends what it makes of both microbatches in some order."""
    return Plan(
        takes=("params", "x"),
        ranks=[
            [
                Run(layer, ("params/0", "x[0/2]"), "h0"),
                Run(layer, ("params/0", "x[1/2]"), "h1"),
                Send(first, 1),
                Send(second, 1),
            ],
            [
                Receive("h0", 0),
                Receive("h1", 0),
                Run(layer, ("params/1", "h0"), "y0"),
                Run(layer, ("params/1", "h1"), "y1"),
                Join(["y0", "y1"], "y"),
            ],
        ],
        returns="y",
    )


def main() -> int:
    weights, x = jax.ShapeDtypeStruct((8, 8), jnp.float32), jax.ShapeDtypeStruct((4, 8), jnp.float32)
    params = [weights, weights]
    print(by_hand("h0", "h1"))
    reports = [
        hlo_verify.check(reference, training("mean"), params, x, x),
        hlo_verify.check(inference, by_hand("h0", "h1"), params, x),
        hlo_verify.check(reference, training("sum"), params, x, x),
        hlo_verify.check(inference, by_hand("h1", "h0"), params, x),
    ]
    for report in reports:
        print(report)
    return 0 if [str(report.verdict) for report in reports] == ["PROVED"] * 2 + ["REFUTED"] * 2 else 1


if __name__ == "__main__":
    sys.exit(main())
