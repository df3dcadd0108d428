"""Fully sharded training with optax, each step verified as it is compiled: `python examples/fsdp_optax.py`.

Every device holds a quarter of each weight and of the optimizer's state. It gathers the weights where it needs them,
scatters the gradients, and updates its own part. The reference is the textbook's step on one device. The second version
forgets that the gradient of a mean over the batch is the mean of the devices' gradients: it trains, at another rate.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_verify

MESH = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
OPTIMIZER = optax.chain(optax.add_decayed_weights(1e-2), optax.sgd(0.5, momentum=0.9))


def loss(weights: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((jax.nn.gelu(x @ weights["up"]) @ weights["down"] - y) ** 2)


def updated(state: Any, gradients: Any) -> Any:
    weights, memory = state
    updates, memory = OPTIMIZER.update(gradients, memory, weights)
    return optax.apply_updates(weights, updates), memory


def reference(state: Any, x: jax.Array, y: jax.Array) -> Any:
    value, gradients = jax.value_and_grad(loss)(state[0], x, y)
    return updated(state, gradients), value


def sharded(devices: int, state: Any, x: jax.Array, y: jax.Array) -> Any:
    """The step on each device, of its part of the state and of the batch; gradients are divided by so many devices."""
    weights = jax.tree.map(lambda part: lax.all_gather(part, "data", tiled=True), state[0])
    value, gradients = jax.value_and_grad(loss)(weights, x, y)
    gradients = jax.tree.map(lambda g: lax.psum_scatter(g, "data", tiled=True) / devices, gradients)
    return updated(state, gradients), lax.pmean(value, "data")


def main() -> int:
    generator = np.random.default_rng(0)
    weights = {"up": generator.normal(size=(16, 32)) / 4, "down": generator.normal(size=(32, 16)) / 8}
    weights = jax.tree.map(np.float32, weights)
    state = weights, OPTIMIZER.init(weights)
    specs = jax.tree.map(lambda leaf: P("data") if np.ndim(leaf) else P(), state)
    state = jax.device_put(state, jax.tree.map(partial(NamedSharding, MESH), specs))
    x, y = (np.float32(generator.normal(size=(16, 16))) for _ in range(2))
    verdicts = []
    for devices in (4, 1):
        places = {"in_specs": (specs, P("data"), P("data")), "out_specs": (specs, P())}
        on_devices = jax.shard_map(partial(sharded, devices), mesh=MESH, check_vma=False, **places)
        step = hlo_verify.jit(on_devices, reference=reference)
        try:
            for number in range(3):
                state, value = step(state, x, y)
                print(f"step {number}: loss {value:.4f}")
        except hlo_verify.NotProvedError as error:
            print(error)
        verdicts.append(str(step.verification.reports[0].verdict))
    print(*verdicts)
    return 0 if verdicts == ["PROVED", "REFUTED"] else 1


if __name__ == "__main__":
    sys.exit(main())
