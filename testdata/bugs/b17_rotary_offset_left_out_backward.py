"""The backward pass of a rotary embedding takes the angles of the first positions on every sequence shard.

Attention with queries over the sequence and gathered keys; a rotary embedding with a backward pass of its own. Forward,
the positions are right, so the loss is.
Origin: angles of positions under context parallelism (https://github.com/NVIDIA/Megatron-LM/issues/560); fused rotary
kernels take the start of a shard in the forward and in the backward pass (https://github.com/NVIDIA/TransformerEngine/pull/2188).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"sequence": 4}
IN = (P(), P(), P(), P(None, "sequence"))
OUT = (P(), P(), P())
WEIGHT = ("f32", (16, 2, 4))
ARGUMENTS = (WEIGHT, WEIGHT, WEIGHT, ("f32", (2, 8, 16)))
CODE = "HV005"

Gradients = tuple[jax.Array, jax.Array, jax.Array]
Turn = Callable[[jax.Array], jax.Array]


def rotate(x: jax.Array, cosine: jax.Array, sine: jax.Array) -> jax.Array:
    """Turn the pairs (x[i], x[i + half]) of the last dimension, those of position p by the angles of row p."""
    one, other = jnp.split(x, 2, axis=-1)
    cosine, sine = cosine[:, None, :], sine[:, None, :]
    return jnp.concatenate([one * cosine - other * sine, other * cosine + one * sine], axis=-1)


def table(positions: jax.Array, half: int) -> tuple[jax.Array, jax.Array]:
    """The cosines and sines of some positions."""
    angles = positions[:, None] * 100.0 ** (-jnp.arange(half) / half)
    return jnp.cos(angles), jnp.sin(angles)


def held(length: int) -> jax.Array:
    """The positions that this device holds."""
    return lax.axis_index("sequence") * length + jnp.arange(length)


def turning(backward: Callable[[None, jax.Array], tuple[jax.Array]]) -> Turn:
    """A rotation by the positions of this device's shard."""

    def forward(x: jax.Array) -> tuple[jax.Array, None]:
        return rotate(x, *table(held(x.shape[1]), x.shape[-1] // 2)), None

    turn = jax.custom_vjp(lambda x: forward(x)[0])
    turn.defvjp(forward, backward)
    return turn


def loss(turn: Turn, gather: Turn, wq: jax.Array, wk: jax.Array, wv: jax.Array, x: jax.Array) -> jax.Array:
    """The squared outputs of attention from the positions that x holds to all that `gather` gives."""
    query, key, value = (jnp.einsum("bsm,mhd->bshd", x, weight) for weight in (wq, wk, wv))
    query, key, value = turn(query), gather(turn(key)), gather(value)
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", query, key) / 2.0, axis=-1)
    return jnp.sum(jnp.einsum("bhqk,bkhd->bqhd", weights, value) ** 2)


def gather(x: jax.Array) -> jax.Array:
    return lax.all_gather(x, "sequence", axis=1, tiled=True)


def reference(wq: jax.Array, wk: jax.Array, wv: jax.Array, x: jax.Array) -> Gradients:
    def turn(x: jax.Array) -> jax.Array:
        return rotate(x, *table(jnp.arange(x.shape[1]), x.shape[-1] // 2))

    return jax.grad(lambda *weights: loss(turn, lambda each: each, *weights, x), argnums=(0, 1, 2))(wq, wk, wv)


def right(wq: jax.Array, wk: jax.Array, wv: jax.Array, x: jax.Array) -> Gradients:
    def backward(_: None, given: jax.Array) -> tuple[jax.Array]:
        positions = held(given.shape[1])
        cosine, sine = table(positions, given.shape[-1] // 2)
        return (rotate(given, cosine, -sine),)

    turn = turning(backward)
    found = jax.grad(lambda *weights: loss(turn, gather, *weights, x), argnums=(0, 1, 2))(wq, wk, wv)
    return lax.psum(found, "sequence")


def wrong(wq: jax.Array, wk: jax.Array, wv: jax.Array, x: jax.Array) -> Gradients:
    def backward(_: None, given: jax.Array) -> tuple[jax.Array]:
        positions = jnp.arange(given.shape[1])
        cosine, sine = table(positions, given.shape[-1] // 2)
        return (rotate(given, cosine, -sine),)

    turn = turning(backward)
    found = jax.grad(lambda *weights: loss(turn, gather, *weights, x), argnums=(0, 1, 2))(wq, wk, wv)  # BUG
    return lax.psum(found, "sequence")
