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


def rotate(x: jax.Array, cosine: jax.Array, sine: jax.Array) -> jax.Array:
    """Turn the pairs (x[i], x[i + half]) of the last dimension, those of position p by the angles of row p."""
    one, other = jnp.split(x, 2, axis=-1)
    cosine, sine = cosine[:, None, :], sine[:, None, :]
    return jnp.concatenate([one * cosine - other * sine, other * cosine + one * sine], axis=-1)


def table(length: int, half: int) -> Pair:
    """The cosines and sines of positions 0 to length."""
    angles = jnp.arange(length)[:, None] * 100.0 ** (-jnp.arange(half) / half)
    return jnp.cos(angles), jnp.sin(angles)


def both(query: jax.Array, key: jax.Array, cosine: jax.Array, sine: jax.Array) -> Pair:
    return rotate(query, cosine, sine), rotate(key, cosine, sine)


def turn(query: jax.Array, key: jax.Array) -> Pair:
    """Query and key turned by their positions."""
    return both(query, key, *table(query.shape[1], query.shape[-1] // 2))


def turning(backward: Callable[[Pair, Pair], Pair]) -> Callable[[jax.Array, jax.Array], Pair]:
    """`turn` with a backward pass of the table and the gradients of both."""

    def forward(query: jax.Array, key: jax.Array) -> tuple[Pair, Pair]:
        by = table(query.shape[1], query.shape[-1] // 2)
        return both(query, key, *by), by

    function = jax.custom_vjp(turn)
    function.defvjp(forward, backward)
    return function


def attend(turn: Callable[[jax.Array, jax.Array], Pair], params: Params, x: jax.Array) -> jax.Array:
    query, key, value = (jnp.einsum("bsm,mhd->bshd", x, params[name]) for name in SPECS)
    query, key = turn(query, key)
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", query, key) / 2.0, axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, value)


def gradients(turn: Callable[[jax.Array, jax.Array], Pair], params: Params, x: jax.Array) -> Params:
    return jax.grad(lambda params: jnp.sum(attend(turn, params, x) ** 2))(params)


def reference(params: Params, x: jax.Array) -> Params:
    return gradients(turn, params, x)


def right(params: Params, x: jax.Array) -> Params:
    def backward(by: Pair, given: Pair) -> Pair:
        query, key = both(*given, by[0], -by[1])
        return query, key

    return lax.psum(gradients(turning(backward), params, x), "data")


def wrong(params: Params, x: jax.Array) -> Params:
    def backward(by: Pair, given: Pair) -> Pair:
        query, key = both(*given, by[0], -by[1])
        swap = lax.axis_index("model") == 1
        return jnp.where(swap, key, query), jnp.where(swap, query, key)

    return lax.psum(gradients(turning(backward), params, x), "data")  # BUG
