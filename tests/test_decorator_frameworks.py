"""`hlo_verify.jit` on train steps of flax, optax and equinox, in a process that has several devices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

for each in ("equinox", "flax", "optax"):
    pytest.importorskip(each)

PROGRAM = """
import equinox
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen, nnx
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import hlo_verify

mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
SPLIT, WHOLE = NamedSharding(mesh, P("d")), NamedSharding(mesh, P())
x = np.random.default_rng(0).normal(size=(16, 6)).astype(np.float32)


def runs(name, step, *state, factor=None):
    wrong = None if factor is None else lambda *given: (step(*given)[0] * factor, *step(*given)[1:])
    function = hlo_verify.jit(step, reference=wrong, in_shardings=(*[WHOLE] * len(state), SPLIT))
    try:
        loss = function(*state, x)[0]
    except hlo_verify.NotProvedError as error:
        print(name, error.report.verdict)
    else:
        np.testing.assert_allclose(loss, jax.jit(step)(*state, x)[0], rtol=1e-5)
        print(name, function.verification.reports[0].verdict)


def linen_step(optimizer):
    def step(parameters, state, x):
        loss, gradients = jax.value_and_grad(lambda p: (dense.apply(p, x) ** 2).mean())(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return loss, optax.apply_updates(parameters, updates), state

    return step, parameters, optimizer.init(parameters)


dense = linen.Dense(4)
parameters = dense.init(jax.random.key(0), x)
runs("linen", *linen_step(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))))
runs("linen, another loss", *linen_step(optax.sgd(1e-2)), factor=2)

graph, weights = nnx.split(nnx.Linear(6, 4, rngs=nnx.Rngs(0)))


def nnx_step(weights, x):
    loss, gradients = jax.value_and_grad(lambda w: (nnx.merge(graph, w)(x) ** 2).mean())(weights)
    return loss, jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


runs("nnx", nnx_step, weights)

arrays, others = equinox.partition(equinox.nn.MLP(6, 3, 4, 1, key=jax.random.key(0)), equinox.is_array)


def equinox_step(arrays, x):
    def loss(arrays):
        return (jax.vmap(equinox.combine(arrays, others))(x) ** 2).mean()

    value, gradients = jax.value_and_grad(loss)(arrays)
    return value, equinox.apply_updates(arrays, jax.tree.map(lambda g: -0.1 * g, gradients))


runs("equinox", equinox_step, arrays)
"""


def test_train_steps_run_once_they_are_proved() -> None:
    environment = os.environ | {
        "HLO_VERIFY_CACHE_DIR": "",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "linen PROVED",
        "linen, another loss REFUTED",
        "nnx PROVED",
        "equinox PROVED",
    ]
