"""Verify train steps of flax and optax pass by pass: `python -m tools.framework_chains [NAME...] [--dumps DIR]`.

XLA compiles each for four virtual CPU devices, with `--tpu v5e:2x2` for the chips of a TPU topology (`pip install
libtpu`), or with `--gpu` for four H100s (`pip install jax-cuda12-plugin jax-cuda12-pjrt`); no chip is needed. There is
a dump after every pass, in DIR/NAME (or a temporary folder); what is there already is not compiled again. Prints a line
for each step, with the pass at which the thread is lost.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hlo_verify import register_custom_call
from hlo_verify.passes.chain.each_pass import verify_passes
from hlo_verify.report import Verdict
from hlo_verify.sources.dump_chains import Chain, find_chains

DEVICES = 4
MARKS = ("AssumeGatherIndicesInBound", "GatherScatterIndicesBitpacked")
"""Custom calls of the TPU's compiler that say something of indices, and are taken to give back what they take."""


def optimizers() -> dict[str, tuple[str, Callable[[], Any]]]:
    """By the name of a step: the network, and what makes the optimizer."""
    import optax

    schedule = optax.warmup_cosine_decay_schedule(0, 1e-2, 10, 100)
    return {
        "adam": ("mlp", lambda: optax.adam(1e-3)),
        "adamw": ("mlp", lambda: optax.adamw(1e-3)),
        "adamw_clip_schedule": ("mlp", lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))),
        "lion": ("mlp", lambda: optax.lion(1e-3)),
        "sgd_momentum": ("mlp", lambda: optax.sgd(1e-2, momentum=0.9, nesterov=True)),
        "rmsprop": ("mlp", lambda: optax.rmsprop(1e-3)),
        "adafactor": ("mlp", lambda: optax.adafactor(1e-3, min_dim_size_to_factor=2)),
        "multisteps_adam": ("mlp", lambda: optax.MultiSteps(optax.adam(1e-3), 4)),
        "lamb": ("mlp", lambda: optax.lamb(1e-3)),
        "muon": ("mlp", lambda: optax.contrib.muon(1e-3, ns_steps=2)),
        "nadam": ("mlp", lambda: optax.nadam(1e-3)),
        "cnn_adam": ("cnn", lambda: optax.adam(1e-3)),
        "attention_adamw": ("attention", lambda: optax.adamw(1e-3)),
    }


def networks() -> dict[str, Callable[[Any, Any], Any]]:
    """What is done to the images of a batch, within a module of flax."""
    from flax import linen

    def mlp(module: Any, x: Any) -> Any:
        return linen.Dense(8)(linen.LayerNorm()(linen.gelu(linen.Dense(32)(x))))

    def cnn(module: Any, x: Any) -> Any:
        x = linen.relu(linen.Conv(4, (3, 3))(x.reshape(x.shape[0], 8, 8, 1)))
        return linen.Dense(8)(linen.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1))

    def attention(module: Any, x: Any) -> Any:
        x = x.reshape(x.shape[0], 8, 8)
        x = x + linen.SelfAttention(2)(linen.LayerNorm()(x))
        return linen.Dense(8)(x.reshape(x.shape[0], -1))

    return {"mlp": mlp, "cnn": cnn, "attention": attention}


def mesh_of(tpu: str | None, *, gpu: bool) -> Any:
    """Devices in a line: those of a TPU topology, H100s, or else the devices of this process."""
    import jax
    import numpy as np
    from jax.experimental import topologies
    from jax.sharding import AxisType, Mesh

    if not tpu and not gpu:
        return jax.make_mesh((DEVICES,), ("d",), axis_types=(AxisType.Auto,))
    if tpu:
        described = topologies.get_topology_desc(platform="tpu", topology_name=tpu)
    else:
        chip = Path(__file__).with_name("h100.txtpb").read_text()
        described = topologies.get_topology_desc("h100", "cuda", target_config=chip, topology=f"1x1x{DEVICES}")
    return Mesh(np.array(described.devices), ("d",), axis_types=(AxisType.Auto,))


def compile_step(name: str, folder: Path, tpu: str | None, *, gpu: bool) -> None:
    """Compile a step, in a process that has the devices."""
    import jax
    import jax.numpy as jnp
    import optax
    from flax import linen
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    network, make = optimizers()[name]
    call = linen.compact(networks()[network])
    net, optimizer = type("Net", (linen.Module,), {"__call__": call})(), make()
    mesh = mesh_of(tpu, gpu=gpu)
    whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("d"))

    def step(parameters: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(parameters: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(net.apply(parameters, x), y).mean()

        value, gradients = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, value

    x, y = jax.ShapeDtypeStruct((16, 64), jnp.float32), jax.ShapeDtypeStruct((16,), jnp.int32)
    parameters = jax.eval_shape(net.init, jax.random.key(0), x)
    state = jax.eval_shape(optimizer.init, parameters)
    jitted = jax.jit(step, in_shardings=(whole, whole, split, split), out_shardings=whole)
    dumping = {
        "xla_dump_to": str(folder), "xla_dump_hlo_as_text": True, "xla_dump_hlo_pass_re": ".*",
        "xla_dump_large_constants": True, **({"xla_gpu_autotune_level": 0} if gpu else {}),
    }  # fmt: skip
    jitted.lower(parameters, state, x, y).compile(compiler_options=dumping)


def dumped(name: str, folder: Path, tpu: str | None, *, gpu: bool) -> Chain:
    """The chain of a step."""
    if not folder.exists():
        flags = f"--xla_force_host_platform_device_count={DEVICES}"
        alone = {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}  # no chip is asked for, nor locked
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags} | alone
        command = [sys.executable, "-m", "tools.framework_chains", name, "--compile", str(folder)]
        command += ["--tpu", tpu] if tpu else ["--gpu"] if gpu else []
        subprocess.run(command, env=environment, check=True)
    return max(find_chains(folder), key=lambda chain: chain.dumps[0].path.stat().st_size)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.framework_chains", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"steps ({' '.join(optimizers())})")
    parser.add_argument("--dumps", type=Path, metavar="DIR", help="where dumps are kept")
    chips = parser.add_mutually_exclusive_group()
    chips.add_argument("--tpu", metavar="TOPOLOGY", help="for the chips of a topology, such as v5e:2x2")
    chips.add_argument("--gpu", action="store_true", help="for H100s")
    parser.add_argument("--compile", type=Path, metavar="DIR", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compile is not None:
        compile_step(arguments.names[0], arguments.compile, arguments.tpu, gpu=arguments.gpu)
        return 0
    for mark in MARKS if arguments.tpu else ():
        register_custom_call(mark, lambda x: x)
    proved = True
    with contextlib.ExitStack() as stack:
        dumps = arguments.dumps or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in arguments.names or optimizers():
            chain = dumped(name, dumps / name, arguments.tpu, gpu=arguments.gpu)
            started = time.process_time()
            steps = verify_passes(chain, refute=False).steps
            lost = next((step for step in steps if step.verdict is not Verdict.PROVED), None)
            said = f"; lost at {lost.after} (step {lost.number}): {lost.reason}" if lost else ""
            count = sum(step.verdict is Verdict.PROVED for step in steps)
            seconds = time.process_time() - started
            print(f"{name}: {count} of {len(steps)} dumps PROVED, {seconds:.0f} s of a processor{said}", flush=True)
            proved = proved and lost is None
    return 0 if proved else 1


if __name__ == "__main__":
    sys.exit(main())
