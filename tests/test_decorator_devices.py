"""`hlo_verify.jit` on several devices, in a process that has them: what the backend made, and where it put arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PROGRAM = """
import sys
from functools import partial
import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
import hlo_verify

MESH = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
compilations = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: compilations.append(event) if event.endswith("backend_compile_duration") else None
)


def place(*spec):
    return NamedSharding(MESH, P(*spec))


SPECS = {"up": P(None, "model"), "down": P("model")}
STATE = {name: place(*spec) for name, spec in SPECS.items()}


def loss(state, x):
    return jnp.mean((jnp.tanh(x @ state["up"]) @ state["down"]) ** 2)


def update(loss, state, x):
    value, gradients = jax.value_and_grad(loss)(state, x)
    return jax.tree.map(lambda w, g: w - g / 8, state, gradients), value


def by_hand(state, x, reduce=lax.pmean):
    y = lax.psum(jnp.tanh(x @ state["up"]) @ state["down"], "model")
    return reduce(jnp.mean(y ** 2), "data")


def shard_map(**options):
    return jax.shard_map(partial(by_hand, **options), mesh=MESH, in_specs=(SPECS, P("data")), out_specs=P())


def arguments():
    generator = np.random.default_rng(0)
    state = {"up": generator.normal(size=(6, 8)), "down": generator.normal(size=(8, 4))}
    x = generator.normal(size=(4, 6))
    state = jax.tree.map(lambda w, sharding: jax.device_put(np.float32(w), sharding), state, STATE)
    return state, jax.device_put(np.float32(x), place("data"))


def say(name, function, *args, times=1):
    try:
        for _ in range(times):
            args = (function(*args)[0], *args[1:])
        jax.block_until_ready(args)
        found = "ran"
    except hlo_verify.NotProvedError:
        found = "stopped"
    (report,) = function.verification.reports
    print(name, found, report.headline or report.verdict, "|", report.compared)


plain = partial(update, loss)
before = len(compilations)
stated = {"in_shardings": (STATE, place("data")), "out_shardings": (STATE, place()), "donate_argnums": 0}
given = arguments()
say("annotated", hlo_verify.jit(plain, reference=plain, **stated), *given, times=3)
print("donated", all(leaf.is_deleted() for leaf in jax.tree.leaves(given[0])), len(compilations) - before)
say("alone", hlo_verify.jit(plain), *arguments())
say("by hand", hlo_verify.jit(partial(update, shard_map()), reference=plain), *arguments(), times=2)
wrong = {"f": partial(update, shard_map(reduce=lax.psum)), "reference": plain}
say("wrong", hlo_verify.jit(wrong["f"], reference=plain), *arguments())


def order(x, by=1):  # which the partitioner makes something of that is followed, and the passes behind it are not
    return (jnp.sort(x, axis=by),)


x = arguments()[1]
say("sorted", hlo_verify.jit(order, reference=order, in_shardings=place("data"), out_shardings=(place("data"),)), x)


def scaled(scope, factor, x):
    with jax.named_scope(scope):
        top = jnp.abs(x).max()
    return (factor * x / top,)


for factor in (1, 2):  # the largest of a device's own part in the place of that of all
    spread = {"mesh": MESH, "in_specs": P("data"), "out_specs": (P("data"),), "check_vma": False}
    own = jax.shard_map(partial(scaled, "own", factor), **spread)
    declared = {"reference": partial(scaled, "all", 1), "approximations": {"own": "all"}}
    say(f"{factor} times", hlo_verify.jit(own, **declared), arguments()[1])

say("key", hlo_verify.jit(lambda key, x: (key, x + 1), in_shardings=(place(), place("data"))), jax.random.key(0), x)
"""

RUNS = "the reference with the module that the backend made and runs"
SAID = f"""\
annotated ran PROVED | {RUNS}
donated True 1
alone ran PROVED | the function as it was lowered with the module that the backend made and runs
by hand ran PROVED | {RUNS}
wrong stopped REFUTED | the reference with what the backend's partitioner made, compiled once more
sorted ran PROVED | the reference with what the backend's partitioner made, compiled once more; what the backend made of
1 times ran PROVED with 1 declared approximation: own (f32[], <string>:87) stands for all (f32[], <string>:87)
2 times stopped REFUTED with 1 declared approximation: own (f32[], <string>:87) stands for all (f32[], <string>:87)
key ran PROVED | the function as it was lowered
"""


def test_functions_on_devices_that_are_there() -> None:
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "HLO_VERIFY_CACHE_DIR": "",
    }
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(SAID.splitlines()), done.stdout
    for line, start in zip(lines, SAID.splitlines(), strict=True):
        assert line.startswith(start)
