"""The loss is scaled by the size of context parallelism, and then averaged by the number of tokens of all ranks.

Where each rank averages over its own tokens and gradients are averaged over ranks, the scale makes up for one division
too many. Where losses are divided by the number of tokens of the whole sequence, there is none to make up for.

Origin: NVIDIA/Megatron-LM issues 673 and 906 (loss scaled by `cp_size` together with `calculate_per_token_loss`).
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "context": 4}
IN = (P(), P("data", "context", None), P("data", "context", None), P("data", "context"))
OUT = (P(), P())
ARGUMENTS = (("f32", (8, 8)), ("f32", (2, 16, 8)), ("f32", (2, 16, 8)), ("f32", (2, 16)))
CODE = "HV006"


def token_losses(w: jax.Array, x: jax.Array, y: jax.Array, mask: jax.Array) -> jax.Array:
    """The sum of the losses of the tokens that count."""
    errors = jnp.mean((jnp.tanh(x @ w) - y) ** 2, axis=-1)
    return jnp.sum(errors * mask)


def reference(w: jax.Array, x: jax.Array, y: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.value_and_grad(lambda w: token_losses(w, x, y, mask) / jnp.sum(mask))(w)


def right(w: jax.Array, x: jax.Array, y: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    tokens = lax.psum(jnp.sum(mask), ("data", "context"))

    def loss(w: jax.Array) -> jax.Array:
        return token_losses(w, x, y, mask) / tokens

    value, gradient = jax.value_and_grad(loss)(w)
    return lax.psum(value, ("data", "context")), lax.psum(gradient, ("data", "context"))


def wrong(w: jax.Array, x: jax.Array, y: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    tokens = lax.psum(jnp.sum(mask), ("data", "context"))

    def loss(w: jax.Array) -> jax.Array:
        scaled = token_losses(w, x, y, mask) * lax.axis_size("context")  # BUG
        return scaled / tokens

    value, gradient = jax.value_and_grad(loss)(w)
    return lax.psum(value, ("data", "context")), lax.psum(gradient, ("data", "context"))
