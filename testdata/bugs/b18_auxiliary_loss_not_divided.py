"""An auxiliary loss, a mean over this device's tokens, is not divided by the axis size before gradients are summed.

A router with the loss of its task and a penalty of its logits (z-loss); data parallelism whose gradients are scattered
over data, and the update of this device's shard of the weights (ZeRO).
Origin: https://github.com/NVIDIA/Megatron-LM/pull/2217, https://github.com/NVIDIA/Megatron-LM/pull/5047 and
https://github.com/NVIDIA-NeMo/Automodel/pull/1412 (scales of auxiliary losses under other parallel layouts).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 4}
IN = (P("data"), P(), P("data"), P("data"))
OUT = P("data")
ARGUMENTS = (("f32", (16, 8)), ("f32", (8, 16, 4)), ("f32", (16, 16)), ("f32", (16, 4)))
CODE = "HV006"


def outputs(router: jax.Array, experts: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The mixture of all experts, and the penalty of each token's logits."""
    logits = x @ router
    gates = jax.nn.softmax(logits, axis=-1)
    mixed = jnp.einsum("te,eth->th", gates, jnp.tanh(jnp.einsum("tm,emh->eth", x, experts)))
    return mixed, jax.nn.logsumexp(logits, axis=-1) ** 2


def reference(router: jax.Array, experts: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    def loss(router: jax.Array) -> jax.Array:
        mixed, penalty = outputs(router, experts, x)
        return jnp.mean((mixed - y) ** 2) + 0.1 * jnp.mean(penalty)

    return router - 0.5 * jax.grad(loss)(router)


def update(shard: jax.Array, gradient: jax.Array) -> jax.Array:
    return shard - 0.5 * lax.psum_scatter(gradient, "data", scatter_dimension=0, tiled=True)


def right(shard: jax.Array, experts: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    def loss(router: jax.Array) -> jax.Array:
        mixed, penalty = outputs(router, experts, x)
        task = jnp.mean((mixed - y) ** 2) / lax.axis_size("data")
        return task + 0.1 * jnp.mean(penalty) / lax.axis_size("data")

    return update(shard, jax.grad(loss)(lax.all_gather(shard, "data", tiled=True)))


def wrong(shard: jax.Array, experts: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    def loss(router: jax.Array) -> jax.Array:
        mixed, penalty = outputs(router, experts, x)
        task = jnp.mean((mixed - y) ** 2) / lax.axis_size("data")
        return task + 0.1 * jnp.mean(penalty)  # BUG

    return update(shard, jax.grad(loss)(lax.all_gather(shard, "data", tiled=True)))
