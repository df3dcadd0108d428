"""The all_to_all that brings the experts' answers home is the one that sent the tokens out: split and concat exchanged.

Sixteen experts on four ranks: a rank holds as many experts as there are ranks, so the exchanged axes fit as well, and
the reshape after them hides that tokens and experts are mixed up.

Origin: seen in hand-written expert parallelism, where one helper does both exchanges; the shapes of GShard's
(Lepikhin et al. 2020) dispatch and combine differ only in the order of two axes.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

MESH = {"expert": 4}
IN = (P("expert", None), P(), P("expert", None, None))
OUT = P("expert", None)
ARGUMENTS = (("f32", (16, 8)), ("f32", (8, 16)), ("f32", (16, 8, 8)))
CODE = "HV005"


def dispatched(x: jax.Array, gates: jax.Array) -> jax.Array:
    """What each expert gets of the tokens that are here, [expert, token, width]: its best ones' rows, scaled."""
    best = gates == jnp.max(gates, axis=-1, keepdims=True)
    return jnp.einsum("te,td->etd", best * gates, x)


def reference(x: jax.Array, router: jax.Array, experts: jax.Array) -> jax.Array:
    sent = dispatched(x, jax.nn.softmax(x @ router))
    answers = jnp.einsum("etd,edf->etf", jnp.tanh(sent), experts)
    return x + jnp.sum(answers, axis=0)


def right(x: jax.Array, router: jax.Array, experts: jax.Array) -> jax.Array:
    sent = dispatched(x, jax.nn.softmax(x @ router))
    received = lax.all_to_all(sent, "expert", split_axis=0, concat_axis=1, tiled=True)
    answers = jnp.einsum("etd,edf->etf", jnp.tanh(received), experts)
    home = lax.all_to_all(answers, "expert", split_axis=1, concat_axis=0, tiled=True)
    return x + jnp.sum(home.reshape(sent.shape), axis=0)


def wrong(x: jax.Array, router: jax.Array, experts: jax.Array) -> jax.Array:
    sent = dispatched(x, jax.nn.softmax(x @ router))
    received = lax.all_to_all(sent, "expert", split_axis=0, concat_axis=1, tiled=True)
    answers = jnp.einsum("etd,edf->etf", jnp.tanh(received), experts)
    home = lax.all_to_all(answers, "expert", split_axis=0, concat_axis=1, tiled=True)  # BUG
    return x + jnp.sum(home.reshape(sent.shape), axis=0)
