"""What `hlo_verify.jit` costs beside `jax.jit`, in one run: `python -m benchmarks.decorator [--layers N]`.

A train step of a transformer on 2 x 4 devices of the CPU, with a reference. Times are processor time of this process,
after a warm-up of each that imports what there is to import. Later calls are of a function that does next to nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

DEVICES = 8
CALLS = 400
"""Calls of one function in a row; both take turns, and the median of their turns counts."""
TURNS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=4, help="layers of the network (default: 4)")
    arguments = parser.parse_args()
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    with TemporaryDirectory() as folder:
        _measure(arguments.layers, Path(folder))


def _measure(layers: int, folder: Path) -> None:
    import jax
    import jax.numpy as jnp

    import hlo_verify

    hlo_verify.jit(lambda x: x + 1, reference=lambda x: 1 + x, cache=folder)(1.0)
    made, step, given, where = _program(layers)
    found: dict[str, float] = {}
    wraps: dict[str, Callable[[Any], Any]] = {
        "": lambda f: jax.jit(f, **where),  # JAX's own warm-up
        "jax.jit, first call": lambda f: jax.jit(f, **where),
        "hlo_verify.jit, first call": lambda f: hlo_verify.jit(f, reference=step, cache=folder, **where),
        "the same, its verdict kept": lambda f: hlo_verify.jit(f, reference=step, cache=folder, **where),
    }
    for name, wrap in wraps.items():
        function = wrap(made())
        found[name] = _milliseconds(lambda function=function: jax.block_until_ready(function(*given)))  # type: ignore
        if hasattr(function, "verification"):
            print(f"{function.verification.reports[0]!r}")
    for name, milliseconds in list(found.items())[1:]:
        print(f"{name:30} {milliseconds:10.1f} ms")
    x = jnp.ones(8)
    later = {
        "jax.jit": jax.jit(lambda x: x + 1),
        "hlo_verify.jit": hlo_verify.jit(lambda x: x + 1, cache=folder),
        "jax.jit once more": jax.jit(lambda x: x + 1),
    }
    turns: dict[str, list[float]] = {name: [] for name in later}
    for function in later.values():
        function(x)
    for _ in range(TURNS):
        for name, function in later.items():
            turns[name].append(_milliseconds(lambda function=function: [function(x) for _ in range(CALLS)]) / CALLS)  # type: ignore
    for name, each in turns.items():
        print(
            f"{name + ', a later call':30} {statistics.median(each) * 1000:10.2f} us, at least {min(each) * 1000:.2f}"
        )


def _program(layers: int) -> tuple[Callable[[], Any], Any, Any, dict[str, Any]]:
    """A function that makes the step anew, the step, its arguments, and where they lie."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding

    P: Any = jax.sharding.PartitionSpec
    mesh = jax.make_mesh((2, DEVICES // 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    width, heads = 64, 4

    def block(x: Any, w: dict[str, Any]) -> Any:
        q, k, v = (jnp.einsum("bsd,dhe->bshe", x, w[name]) for name in "qkv")
        scores = jax.nn.softmax(jnp.einsum("bshe,bthe->bhst", q, k) / 4, axis=-1)
        x = x + jnp.einsum("bhst,bthe,hed->bsd", scores, v, w["o"])
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"]

    def loss(state: list[dict[str, Any]], x: Any) -> Any:
        for w in state:
            x = block(x, w)
        return jnp.mean(x**2)

    def step(state: list[dict[str, Any]], x: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(state, x)
        return jax.tree.map(lambda w, g: w - g / 8, state, gradients), value

    specs = {name: P(None, "model") for name in ("q", "k", "v", "up")} | {"o": P("model"), "down": P("model")}
    sizes: dict[str, tuple[int, ...]] = {**dict.fromkeys("qkv", (width, heads, 16)), "o": (heads, 16, width)}
    sizes |= {"up": (width, 256), "down": (256, width)}
    state = [{name: NamedSharding(mesh, spec) for name, spec in specs.items()} for _ in range(layers)]
    batch = NamedSharding(mesh, P("data"))
    arrays = [{name: jnp.full(sizes[name], 0.01) for name in specs} for _ in range(layers)]
    where = {"in_shardings": (state, batch), "out_shardings": (state, NamedSharding(mesh, P()))}

    def made() -> Any:
        return lambda state, x: step(state, x)

    return made, step, (arrays, jnp.ones((8, 16, width))), where


def _milliseconds(what: Callable[[], object]) -> float:
    began = time.process_time()
    what()
    return (time.process_time() - began) * 1000


if __name__ == "__main__":
    main()
