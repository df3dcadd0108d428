"""The backward pass of a rotary embedding returns the gradients of query and key in the wrong order, on one rank.

Attention with its heads over model; a rotary embedding of query and key with a backward pass of its own; gradients of
the three projections.
Origin: seen in hand-written backward passes of fused kernels for both tensors, where equal shapes hide it.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"data": 2, "model": 4}
SPECS = {"wq": P(None, "model"), "wk": P(None, "model"), "wv": P(None, "model")}
IN = (SPECS, P("data"))
OUT = SPECS
ARGUMENTS = (dict.fromkeys(SPECS, ("f32", (16, 8, 4))), ("f32", (4, 6, 16)))
CODE = "HV007"

Params = dict[str, jax.Array]
Pair = tuple[jax.Array, jax.Array]


def rotate(x: jax.Array, angles: jax.Array) -> jax.Array:
    """Turn the pairs (x[i], x[i + half]) of the last dimension, those of position p by angles[p]."""
    one, other = jnp.split(x, 2, axis=-1)
    cosine, sine = jnp.cos(angles)[:, None, :], jnp.sin(angles)[:, None, :]
    return jnp.concatenate([one * cosine - other * sine, other * cosine + one * sine], axis=-1)


def angles(length: int, half: int) -> jax.Array:
    return jnp.arange(length)[:, None] * 100.0 ** (-jnp.arange(half) / half)


def turning(backward: Callable[[jax.Array, Pair], Pair]) -> Callable[[jax.Array, jax.Array], Pair]:
    """Query and key turned by their positions; `backward` turns their gradients back."""

    def forward(query: jax.Array, key: jax.Array) -> tuple[Pair, jax.Array]:
        by = angles(query.shape[1], query.shape[-1] // 2)
        return (rotate(query, by), rotate(key, by)), by

    turn = jax.custom_vjp(lambda query, key: forward(query, key)[0])
    turn.defvjp(forward, lambda by, given: backward(-by, given))
    return turn


def attend(turn: Callable[[jax.Array, jax.Array], Pair], params: Params, x: jax.Array) -> jax.Array:
    query, key, value = (jnp.einsum("bsm,mhd->bshd", x, params[name]) for name in SPECS)
    query, key = turn(query, key)
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", query, key) / 2.0, axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, value)


def both(by: jax.Array, given: Pair) -> Pair:
    return rotate(given[0], by), rotate(given[1], by)


def gradients(backward: Callable[[jax.Array, Pair], Pair], params: Params, x: jax.Array) -> Params:
    return jax.grad(lambda params: jnp.sum(attend(turning(backward), params, x) ** 2))(params)


def reference(params: Params, x: jax.Array) -> Params:
    def turn(query: jax.Array, key: jax.Array) -> Pair:
        return both(angles(query.shape[1], query.shape[-1] // 2), (query, key))

    return jax.grad(lambda params: jnp.sum(attend(turn, params, x) ** 2))(params)


def right(params: Params, x: jax.Array) -> Params:
    return lax.psum(gradients(both, params, x), "data")


def wrong(params: Params, x: jax.Array) -> Params:
    def backward(by: jax.Array, given: Pair) -> Pair:
        query, key = both(by, given)
        swap = lax.axis_index("model") == 1
        return jnp.where(swap, key, query), jnp.where(swap, query, key)  # BUG

    return lax.psum(gradients(backward, params, x), "data")
