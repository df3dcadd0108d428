"""A small training loop on all devices, as ordinary JAX: what `dump_folder.sh` has XLA dump and then verifies."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
EVERYWHERE, SPLIT = NamedSharding(MESH, P()), NamedSharding(MESH, P("data"))


def loss(weights: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((jnp.tanh(x @ weights) - y) ** 2)


@jax.jit(in_shardings=(SPLIT, SPLIT, SPLIT), out_shardings=(SPLIT, EVERYWHERE))
def step(weights: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    value, gradient = jax.value_and_grad(loss)(weights, x, y)
    return weights - 0.1 * gradient, value


def main() -> None:
    generator = np.random.default_rng(0)
    weights = generator.normal(size=(64, 32)).astype(np.float32) / 8
    x = generator.normal(size=(128, 64)).astype(np.float32)
    y = np.tanh(x @ generator.normal(size=(64, 32)).astype(np.float32) / 8)
    state = jax.device_put(weights, SPLIT)
    for number in range(20):
        state, value = step(state, jax.device_put(x, SPLIT), jax.device_put(y, SPLIT))
        if number % 5 == 0:
            print(f"step {number}: loss {float(value):.4f}")


if __name__ == "__main__":
    main()
