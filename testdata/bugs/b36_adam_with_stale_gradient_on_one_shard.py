"""One shard of a ZeRO-sharded Adam takes its step before the last microbatch's gradient has been added.

Gradients are accumulated over microbatches in a buffer that is sharded like the optimizer's state. On rank 2 the step
reads the buffer as it was: the reduce_scatter of the last microbatch arrives too late.

Origin: seen in overlapped ZeRO implementations, where a missing wait on one bucket's reduce_scatter leaves that shard
with the gradient of the step before.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 4}
STATE = {"w": P("data"), "mu": P("data"), "nu": P("data"), "sum": P("data")}
IN = (STATE, P("data"), P("data"))
OUT = {"w": P("data"), "mu": P("data"), "nu": P("data")}
MATRIX = ("f32", (16, 8))
ARGUMENTS = ({"w": MATRIX, "mu": MATRIX, "nu": MATRIX, "sum": MATRIX}, ("f32", (8, 16)), ("f32", (8, 8)))
CODE = "HV007"


def loss(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)


def adam(state: dict[str, jax.Array], gradient: jax.Array) -> dict[str, jax.Array]:
    mu = 0.9 * state["mu"] + 0.1 * gradient
    nu = 0.99 * state["nu"] + 0.01 * gradient**2
    return {"w": state["w"] - 0.001 * mu / (jnp.sqrt(jnp.abs(nu)) + 1e-8), "mu": mu, "nu": nu}


def reference(state: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> dict[str, jax.Array]:
    gradient = state["sum"] + jax.grad(loss)(state["w"], x, y)
    return adam(state, gradient)


def last_gradient(state: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    """This rank's shard of the last microbatch's gradient."""
    w = lax.all_gather(state["w"], "data", tiled=True)
    gradient = jax.grad(loss)(w, x, y)
    return lax.psum_scatter(gradient, "data", tiled=True) / lax.axis_size("data")


def right(state: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> dict[str, jax.Array]:
    gradient = state["sum"] + last_gradient(state, x, y)
    return adam(state, gradient)


def wrong(state: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> dict[str, jax.Array]:
    gradient = state["sum"] + last_gradient(state, x, y)
    used = jnp.where(lax.axis_index("data") == 2, state["sum"], gradient)  # BUG
    return adam(state, used)
