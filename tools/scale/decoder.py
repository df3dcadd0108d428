"""A decoder's train step, twice: plain, and as each device of a mesh `fsdp` x `tp` computes it.

Nothing is computed and no device has to be there: both are lowered for an `AbstractMesh` of up to 2^17 devices. The
step of a device is written as people write it (Megatron's tensor parallelism, weights gathered along `fsdp` where they
are used and their gradients scattered, Adam on what a device holds), and lowered by JAX, with the transposes of its
collectives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

Tree = Any

DATA, MODEL = "fsdp", "tp"
EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class Size:
    """How large a decoder is, and its mesh."""

    layers: int
    data: int
    """Devices along `fsdp`."""
    model: int
    """Devices along `tp`."""
    width: int = 16384
    inner: int = 53248
    heads: int = 128
    head: int = 128
    vocabulary: int = 128256
    sequence: int = 4096

    @property
    def devices(self) -> int:
        return self.data * self.model

    @property
    def mesh(self) -> AbstractMesh:
        return AbstractMesh((self.data, self.model), (DATA, MODEL), axis_types=(AxisType.Auto,) * 2)

    @property
    def batch(self) -> int:
        return self.data


def of(layers: int, devices: int) -> Size:
    """Llama 3.1 405B's sizes (with as many keys as queries) on so many devices, at most 8 of them along `tp`."""
    model = min(8, max(1, devices // 2))
    return Size(layers, devices // model, model)


def weights(size: Size) -> dict[str, tuple[tuple[int, ...], P]]:
    """The weights of one layer: sizes, and how they lie."""
    across = size.heads * size.head
    return {
        "norm": ((size.width,), P(None)),
        "qkv": ((size.width, 3, across), P(DATA, None, MODEL)),
        "out": ((across, size.width), P(MODEL, DATA)),
        "second_norm": ((size.width,), P(None)),
        "gate": ((size.width, size.inner), P(DATA, MODEL)),
        "up": ((size.width, size.inner), P(DATA, MODEL)),
        "down": ((size.inner, size.width), P(MODEL, DATA)),
    }


def _both(size: Size, which: int) -> Tree:
    """A tree of all weights' sizes (0) or places (1)."""
    ends = {
        "embedding": ((size.vocabulary, size.width), P(MODEL, DATA)),
        "final_norm": ((size.width,), P(None)),
        "unembedding": ((size.width, size.vocabulary), P(DATA, MODEL)),
    }
    layers = [{name: both[which] for name, both in weights(size).items()} for _ in range(size.layers)]
    return {**{name: both[which] for name, both in ends.items()}, "layers": layers}


def places(size: Size) -> Tree:
    """How all weights lie."""
    return _both(size, 1)


def shapes(size: Size) -> Tree:
    """All weights, as arguments to lower with."""
    is_size = lambda leaf: isinstance(leaf, tuple)  # noqa: E731
    return jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, jnp.float32), _both(size, 0), is_leaf=is_size)


def norm(x: jax.Array, weight: jax.Array) -> jax.Array:
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + EPSILON) * weight


def attend(size: Size, qkv: jax.Array, heads: int) -> jax.Array:
    """Causal attention of so many heads."""
    batch, sequence = qkv.shape[:2]
    query, key, value = (qkv[:, :, n].reshape(batch, sequence, heads, size.head) for n in range(3))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * size.head**-0.5
    causal = jnp.arange(sequence)[:, None] >= jnp.arange(sequence)[None, :]
    shares = jax.nn.softmax(jnp.where(causal, scores, -1e30), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", shares, value).reshape(batch, sequence, heads * size.head)


def loss(size: Size, params: Tree, tokens: jax.Array, targets: jax.Array) -> jax.Array:
    """The loss of a whole batch."""
    x = _rows(params["embedding"], tokens, 0)
    for layer in params["layers"]:
        qkv = jnp.einsum("bsm,mnf->bsnf", norm(x, layer["norm"]), layer["qkv"])
        x = x + attend(size, qkv, size.heads) @ layer["out"]
        y = norm(x, layer["second_norm"])
        x = x + (jax.nn.silu(y @ layer["gate"]) * (y @ layer["up"])) @ layer["down"]
    logits = norm(x, params["final_norm"]) @ params["unembedding"]
    most = lax.stop_gradient(jnp.max(logits, axis=-1))
    total = jnp.sum(jnp.exp(logits - most[..., None]), axis=-1)
    return jnp.mean(jnp.log(total) + most - _chosen(logits, targets, 0))


def device_loss(size: Size, dropped: int | None, params: Tree, tokens: jax.Array, targets: jax.Array) -> jax.Array:
    """The loss as each device computes it; layer `dropped` keeps the partial sums of its feed-forward block."""
    gather = partial(lax.all_gather, axis_name=DATA, tiled=True)

    def across(x: jax.Array) -> jax.Array:
        return lax.psum(x, MODEL)

    first = lax.axis_index(MODEL) * (size.vocabulary // size.model)
    x = across(_rows(gather(params["embedding"], axis=1), tokens, first))
    for n, layer in enumerate(params["layers"]):
        y = norm(x, layer["norm"])
        qkv = jnp.einsum("bsm,mnf->bsnf", y, gather(layer["qkv"], axis=0))
        x = x + across(attend(size, qkv, size.heads // size.model) @ gather(layer["out"], axis=1))
        y = norm(x, layer["second_norm"])
        inner = jax.nn.silu(y @ gather(layer["gate"], axis=0)) * (y @ gather(layer["up"], axis=0))
        partial_sum = inner @ gather(layer["down"], axis=1)
        x = x + (partial_sum if n == dropped else across(partial_sum))
    logits = norm(x, params["final_norm"]) @ gather(params["unembedding"], axis=0)
    most = lax.pmax(lax.stop_gradient(jnp.max(logits, axis=-1)), MODEL)
    total = across(jnp.sum(jnp.exp(logits - most[..., None]), axis=-1))
    chosen = across(_chosen(logits, targets, first))
    return lax.pmean(jnp.mean(jnp.log(total) + most - chosen), DATA)


def _rows(table: jax.Array, tokens: jax.Array, first: Any) -> jax.Array:
    """The rows of an embedding that are in a part of it from row `first` on; zeros for the others."""
    here = tokens - first
    inside = (here >= 0) & (here < len(table))
    return jnp.where(inside[..., None], table.at[here].get(mode="clip"), 0.0)


def _chosen(logits: jax.Array, targets: jax.Array, first: Any) -> jax.Array:
    """The logits of the targets that are in a part of the vocabulary from `first` on; zeros for the others."""
    here = targets - first
    inside = (here >= 0) & (here < logits.shape[-1])
    found = jnp.take_along_axis(logits, jnp.clip(here, 0, logits.shape[-1] - 1)[..., None], axis=-1)[..., 0]
    return jnp.where(inside, found, 0.0)


def adam(params: Tree, gradients: Tree, mu: Tree, nu: Tree) -> tuple[Tree, Tree, Tree]:
    """One step of Adam, element by element."""
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mu, gradients)
    nu = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, nu, gradients)
    return jax.tree.map(lambda p, m, v: p - 3e-4 * m / (jnp.sqrt(v) + 1e-8), params, mu, nu), mu, nu


def step(size: Size, state: Tree, tokens: jax.Array, targets: jax.Array) -> tuple[Tree, jax.Array]:
    """The next parameters and moments, and the loss."""
    value, gradients = jax.value_and_grad(partial(loss, size))(state[0], tokens, targets)
    return adam(state[0], gradients, *state[1:]), value


def device_step(
    size: Size, dropped: int | None, state: Tree, tokens: jax.Array, targets: jax.Array
) -> tuple[Tree, jax.Array]:
    """The same on each device."""
    value, gradients = jax.value_and_grad(partial(device_loss, size, dropped))(state[0], tokens, targets)
    return adam(state[0], gradients, *state[1:]), value
