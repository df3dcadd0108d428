"""`hlo_verify.check` on programs of flax, optax and equinox, as their users write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import InputError, Verdict, check
from hlo_verify.diagnostics import Input

equinox = pytest.importorskip("equinox")
linen = pytest.importorskip("flax.linen")
nnx = pytest.importorskip("flax.nnx")
optax = pytest.importorskip("optax")

MESH = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
SPLIT, WHOLE = NamedSharding(MESH, P("d")), NamedSharding(MESH, P())
X = jax.ShapeDtypeStruct((16, 6), jnp.float32)
SPLIT_X = jax.ShapeDtypeStruct((16, 6), jnp.float32, sharding=SPLIT)


# equinox


def network() -> Any:
    return equinox.nn.MLP(6, 3, 4, 1, key=jax.random.key(0))


def step(model: Any, x: Any, join: Callable[[Any], Any] = lambda both: both) -> Any:
    """A step of gradient descent: the loss, and the model."""
    loss, gradients = join(equinox.filter_value_and_grad(lambda model, x: (jax.vmap(model)(x) ** 2).mean())(model, x))
    return loss, equinox.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradients))


def step_on_devices(model: Any, x: Any, reduce: Callable[..., Any] = lax.pmean) -> Any:
    arrays, others = equinox.partition(model, equinox.is_array)

    def local(arrays: Any, x: Any) -> Any:
        def join(both: Any) -> Any:
            return jax.tree.map(lambda leaf: reduce(leaf, "d"), both)

        loss, model = step(equinox.combine(arrays, others), x, join)
        return loss, equinox.filter(model, equinox.is_array)

    where = {"mesh": MESH, "in_specs": (P(), P("d")), "out_specs": P(), "check_vma": False}
    loss, arrays = jax.shard_map(local, **where)(arrays, x)
    return loss, equinox.combine(arrays, others)


@pytest.mark.parametrize("reference", [step, equinox.filter_jit(step)])
@pytest.mark.parametrize("distributed", [step_on_devices, equinox.filter_jit(step_on_devices)])
def test_a_step_of_equinox(reference: Any, distributed: Any) -> None:
    report = check(reference, distributed, network(), X)
    assert report.verdict is Verdict.PROVED, str(report)
    assert report.results["1/layers/0/weight"].name == "result[1].layers[0].weight"


def test_a_wrong_step_of_equinox() -> None:
    report = check(step, lambda model, x: step_on_devices(model, x, lax.psum), network(), X)
    assert report.verdict is Verdict.REFUTED


def test_xla_distributes_a_model_of_equinox() -> None:
    apply = equinox.filter_jit(lambda model, x: jax.vmap(model)(x))
    for report in (check(apply, network(), SPLIT_X), check(apply, apply, network(), SPLIT_X)):
        assert (report.verdict, report.devices) == (Verdict.PROVED, 4)


def test_what_equinox_lowered() -> None:
    apply = equinox.filter_jit(lambda model, x: jax.vmap(model)(x))
    lowered = apply.lower(network(), jnp.ones((16, 6)))
    with pytest.raises(InputError, match="so there is nothing to partition") as raised:
        hlo_verify.verify(lowered)
    assert raised.value.code is Input.NOTHING_TO_PARTITION
    with pytest.raises(InputError, match=r"the second function was lowered by equinox.*pass the function itself"):
        check(apply, lowered, network(), X)


def test_a_model_under_jax_jit_is_no_argument() -> None:
    with pytest.raises(InputError, match=r"the first function cannot be traced: TypeError: .*static_argnums") as raised:
        check(jax.jit(lambda model, x: jax.vmap(model)(x)), step_on_devices, network(), X)
    assert raised.value.code is Input.NOT_TRACED


# flax and optax


class Layer(nnx.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        self.linear = nnx.Linear(6, 4, rngs=nnx.Rngs(0))

    def __call__(self, x: Any) -> Any:
        return jnp.tanh(self.linear(x))


def apply(model: Any, x: Any) -> Any:
    return model(x)


def train(model: Any, optimizer: Any, x: Any) -> Any:
    loss, gradients = nnx.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
    optimizer.update(model, gradients)
    return loss


def annotated(*groups: Any) -> Any:
    sharding = nnx.StateSharding(dict.fromkeys(groups, WHOLE))
    return nnx.jit(apply, in_shardings=(sharding, SPLIT), out_shardings=SPLIT)


@pytest.mark.parametrize("reference", [apply, jax.jit(apply), nnx.jit(apply)])
def test_a_module_of_nnx(reference: Any) -> None:
    report = check(reference, annotated(nnx.Param), Layer(), X)
    assert (report.verdict, len(report.results)) == (Verdict.PROVED, 3), str(report)


def test_a_wrong_module_of_nnx() -> None:
    report = check(lambda model, x: -model(x), annotated(nnx.Param), Layer(), X)
    assert [result.verdict for result in report.results] == [Verdict.PROVED, Verdict.PROVED, Verdict.REFUTED]


def test_groups_of_a_module_are_those_of_the_distributed_function() -> None:
    """The kernel's group first, and then all the rest: another order than that of a module as a whole."""
    kernels = nnx.jit(
        apply,
        in_shardings=(nnx.StateSharding({nnx.PathContains("kernel"): WHOLE, ...: WHOLE}), SPLIT),
        out_shardings=SPLIT,
    )
    assert check(apply, kernels, Layer(), X).verdict is Verdict.PROVED
    assert check(kernels, nnx.jit(apply), Layer(), SPLIT_X).verdict is Verdict.PROVED


def test_a_step_of_nnx_with_optax() -> None:
    model = Layer()
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
    report = check(train, nnx.jit(train), model, optimizer, SPLIT_X)
    assert report.verdict is Verdict.PROVED, str(report)


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adamw": lambda: optax.adamw(1e-3),
    "lion": lambda: optax.lion(1e-3),
    "momentum": lambda: optax.sgd(1e-2, momentum=0.9),
    "muon": lambda: optax.contrib.muon(1e-3, ns_steps=2),
    "adafactor": lambda: optax.adafactor(1e-3, min_dim_size_to_factor=2),
    "schedule": lambda: optax.sgd(optax.warmup_cosine_decay_schedule(0, 1e-2, 10, 100)),
    "clipping": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3)),
    "MultiSteps": lambda: optax.MultiSteps(optax.sgd(1e-2), 4),
    "EMA": lambda: optax.chain(optax.sgd(1e-2), optax.ema(0.9)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_of_linen_with_optax(name: str) -> None:
    optimizer, dense = OPTIMIZERS[name](), linen.Dense(4)

    def step(parameters: Any, state: Any, x: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda p: (dense.apply(p, x) ** 2).mean())(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return loss, optax.apply_updates(parameters, updates), state

    parameters = jax.eval_shape(dense.init, jax.random.key(0), X)
    state = jax.eval_shape(optimizer.init, parameters)
    report = check(step, jax.jit(step, in_shardings=(WHOLE, WHOLE, SPLIT)), parameters, state, X)
    assert report.verdict is Verdict.PROVED, str(report)
    assert report.results["1/params/kernel"].verdict is Verdict.PROVED


def test_a_norm_of_each_device_s_own_gradients_clips_otherwise() -> None:
    """Gradients are clipped before they are brought together, so that every device has a norm of its own."""
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(1e-2))
    parameters = jax.ShapeDtypeStruct((6, 4), jnp.float32)

    def step(w: Any, x: Any, clipped_early: bool = False, reduce: Any = lambda g: g) -> Any:
        gradient = jax.grad(lambda w: ((x @ w) ** 2).mean())(w)
        if clipped_early:
            update, _ = optimizer.update(gradient, optimizer.init(w), w)
            return optax.apply_updates(w, reduce(update))
        update, _ = optimizer.update(reduce(gradient), optimizer.init(w), w)
        return optax.apply_updates(w, update)

    for early, expected in ((False, Verdict.PROVED), (True, Verdict.REFUTED)):

        def local(w: Any, x: Any, early: bool = early) -> Any:
            return step(w, x, early, lambda g: lax.pmean(g, "d"))

        distributed = jax.shard_map(local, mesh=MESH, in_specs=(P(), P("d")), out_specs=P(), check_vma=False)
        assert check(lambda w, x: step(w, x), distributed, parameters, X).verdict is expected
