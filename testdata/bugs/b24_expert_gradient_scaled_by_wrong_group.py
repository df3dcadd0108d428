"""The gradients of experts are averaged over the ranks that hold a copy of them, as if each rank had seen all tokens.

An expert lives on the data ranks of one expert rank, but it has seen the tokens of all of them, sent by all_to_all: its
gradient is the sum over data, divided by the number of all ranks, as for every other weight.

Origin: pytorch/pytorch issue 160285 (gradients doubled by expert parallelism), deepspeedai/DeepSpeed pull request
6546 (divided by the expert-data-parallel size), NVIDIA/Megatron-LM pull request 5956.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "expert": 4}
RANKS = ("data", "expert")
IN = (P(), P("expert"), P(RANKS), P(RANKS))
OUT = (P(), P("expert"))
ARGUMENTS = (("f32", (8, 4)), ("f32", (4, 8, 8)), ("f32", (32, 8)), ("f32", (32, 8)))
CODE = "HV006"

Move = Callable[[jax.Array], jax.Array]


def exchange(x: jax.Array, split: int, concat: int) -> jax.Array:
    return lax.all_to_all(x, "expert", split, concat, tiled=True)


def loss(router: jax.Array, experts: jax.Array, x: jax.Array, y: jax.Array, dispatch: Move, combine: Move) -> jax.Array:
    """The mean squared error of a mixture of experts; each token goes to all, in the proportions of its router."""
    weights = jax.nn.softmax(x @ router)
    sent = dispatch(jnp.einsum("te,td->etd", weights, x))
    answers = combine(jnp.tanh(jnp.einsum("etd,edf->etf", sent, experts)))
    return jnp.mean((x + jnp.einsum("te,etd->td", weights, answers) - y) ** 2)


def gradients(router: jax.Array, experts: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Those of the mean over this rank's tokens; an expert's have the tokens of all expert ranks."""
    return jax.grad(loss, argnums=(0, 1))(
        router, experts, x, y, lambda x: exchange(x, 0, 1), lambda x: exchange(x, 1, 0)
    )


def reference(router: jax.Array, experts: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.grad(loss, argnums=(0, 1))(router, experts, x, y, lambda x: x, lambda x: x)


def right(router: jax.Array, experts: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    dense, sparse = gradients(router, experts, x, y)
    return lax.pmean(dense, RANKS), lax.psum(sparse, "data") / lax.axis_size(RANKS)


def wrong(router: jax.Array, experts: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    dense, sparse = gradients(router, experts, x, y)
    return lax.pmean(dense, RANKS), lax.psum(sparse, "data") / lax.axis_size("data")  # BUG
