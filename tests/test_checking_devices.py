"""`hlo_verify.check` where devices are there, as for most users: what was compiled, pmap, arrays that lie on them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PROGRAM = """
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

from hlo_verify import InputError, check, verify

mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
explicit = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Explicit,))
X = jax.ShapeDtypeStruct((16, 6), jnp.float32)


def loss(x):
    return jnp.tanh(x).sum()


def other(x):
    return jnp.tanh(x).mean()


def said(name, *args, **options):
    try:
        print(name, check(*args, refute=False, **options).verdict)
    except InputError as error:
        print(name, error.code, error)


jitted = jax.jit(loss, in_shardings=NamedSharding(mesh, P("d")))
compiled = jitted.lower(X).compile()
said("compiled", loss, compiled, X)
said("compiled, other", other, compiled, X)
print("pair", verify(jax.jit(loss).lower(X), compiled).verdict)
said("compiled for one device", loss, jax.jit(loss).lower(X).compile(), X)
said("compiled alone", compiled)
summed = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
rows = jax.ShapeDtypeStruct((4, 6), jnp.float32)
said("pmap", lambda x: jnp.broadcast_to(x.sum(0), x.shape), summed, rows)
said("pmap, other", lambda x: jnp.broadcast_to(x.mean(0), x.shape), summed, rows)
for axes, name in ((mesh, "auto"), (explicit, "explicit")):
    said(name, loss, loss, jax.device_put(np.ones((16, 6), np.float32), NamedSharding(axes, P("d"))))
with jax.set_mesh(mesh):
    said("around", loss, jax.shard_map(lambda x: lax.psum(loss(x), "d"), in_specs=P("d"), out_specs=P()), X)
said("specs", loss, jax.jit(loss, in_shardings=P("d")), X, mesh=mesh)
"""

SAID = """compiled PROVED
compiled, other UNKNOWN
pair PROVED
compiled for one device HV414 the second function is not distributed
compiled alone HV400 a compiled function alone
pmap PROVED
pmap, other UNKNOWN
auto PROVED
explicit PROVED
around PROVED
specs PROVED
"""


def test_functions_on_devices_that_are_there() -> None:
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
    }
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(SAID.splitlines()), done.stdout
    for line, start in zip(lines, SAID.splitlines(), strict=True):
        assert line.startswith(start)
