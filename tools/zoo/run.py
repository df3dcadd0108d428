"""Child process: compute the cases on virtual CPU devices; the parent sets how many there are.

`python -m tools.zoo.run NAME...` prints a line a case: its name, and how far its right and its wrong program are from
the reference (the largest difference on any device, relative to the largest element of that result; of all results the
worst).
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh

from tools.zoo.case import Case, Tree, load, lower, placed


def draw(case: Case) -> Tree:
    """Random arguments: neither zeros nor large, and not so even that a bug cancels out."""
    generator = np.random.default_rng(7)

    def values(argument: Any) -> np.ndarray[Any, Any]:
        if jnp.issubdtype(argument.dtype, jnp.floating):
            drawn = generator.uniform(0.1, 1.0, argument.shape) * generator.choice([-1, 1], argument.shape)
            drawn /= np.sqrt(argument.shape[-2]) if len(argument.shape) > 1 else 1.0  # or softmax saturates
        else:
            drawn = generator.integers(0, argument.below, argument.shape)
        return np.asarray(drawn, argument.dtype)

    return jax.tree.map(values, case.arguments)


def make_mesh(case: Case) -> Mesh:
    return jax.make_mesh(tuple(case.mesh.values()), tuple(case.mesh), axis_types=(AxisType.Auto,) * len(case.mesh))


def distance(want: Any, have: jax.Array) -> float:
    """The largest difference on any device, relative to the largest element; infinite where one is NaN."""
    whole = np.asarray(want, np.float64)
    scale = max(float(np.max(np.abs(whole), initial=0.0)), 1e-12)
    far = [np.abs(whole[shard.index] - np.asarray(shard.data, np.float64)) for shard in have.addressable_shards]
    worst = max(float(np.max(each, initial=0.0)) for each in far)
    return worst / scale if np.isfinite(worst) else float("inf")


def compute_text(case: Case, text: str, mesh: Mesh) -> list[jax.Array]:
    """The results of a module given as text. Its results are placed as `right` places its own."""
    from jax.extend.backend import get_backend
    from jaxlib import _jax

    like = jax.tree.leaves(case.mapped(case.right, mesh)(*draw(case)))
    options = _jax.CompileOptions()
    options.num_replicas, options.num_partitions = 1, case.devices
    devices = list(mesh.devices.flat)
    options.device_assignment = _jax.DeviceAssignment.create(np.array([[device.id for device in devices]]))
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = True
    executable = get_backend().compile_and_load(text, _jax.DeviceList(tuple(devices)), options)
    arguments = jax.tree.leaves(jax.device_put(draw(case), placed(case.in_specs, mesh)))
    shards = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    return [
        jax.make_array_from_single_device_arrays(each.shape, each.sharding, parts)
        for each, parts in zip(like, shards, strict=True)
    ]


def distances(case: Case) -> tuple[float, float]:
    """How far the right and the wrong program are from the reference."""
    mesh = make_mesh(case)
    want = jax.tree.leaves(jax.jit(case.reference)(*draw(case)))
    right = jax.tree.leaves(case.mapped(case.right, mesh)(*draw(case)))
    if case.wrong is None:
        wrong = compute_text(case, lower(case).wrong, mesh)
    else:
        wrong = jax.tree.leaves(case.mapped(case.wrong, mesh)(*draw(case)))
    near, far = (max(map(distance, want, have)) for have in (right, wrong))
    return near, far


def main() -> None:
    for name in sys.argv[1:]:
        near, far = distances(load(name))
        print(name, near, far, flush=True)


if __name__ == "__main__":
    main()
