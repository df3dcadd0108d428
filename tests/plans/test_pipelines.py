"""Pipelines as plans: every published schedule trains as one device does, and wrong ones are caught."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_verify import InputError, Plan, Verdict, check
from hlo_verify.schedules import Schedule, dualpipe, interleaved_1f1b, one_f_one_b, with_transfers

F32 = jnp.float32
X = jax.ShapeDtypeStruct((4, 3), F32)
PARAMS = [{"w": jax.ShapeDtypeStruct((3, 3), F32)}] * 4


def stage(weights: Any, x: Any) -> Any:
    return jnp.tanh(x @ weights["w"])


def mse(y: Any, target: Any) -> Any:
    return jnp.mean((y - target) ** 2)


def forward(params: Any, x: Any) -> Any:
    for weights in params:
        x = stage(weights, x)
    return x


def loss(params: Any, x: Any, target: Any) -> Any:
    return mse(forward(params, x), target)


def step(params: Any, x: Any, target: Any) -> Any:
    value, gradients = jax.value_and_grad(loss)(params, x, target)
    return value, jax.tree.map(lambda w, g: w - 0.1 * g, params, gradients)


def training(stages: int = 4, **options: Any) -> Plan:
    return Plan.pipeline([stage] * stages, **{"microbatches": 4, "loss": mse, "accumulate": "mean", **options})


SCHEDULES = {
    "gpipe": "gpipe",
    "1f1b": "1f1b",
    "zb_h1": "zb_h1",
    "interleaved": interleaved_1f1b(2, 4, 2),
    "late receives": with_transfers(one_f_one_b(4, 3), late=True),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_train_as_one_device_does(name: str) -> None:
    plan = training(schedule=SCHEDULES[name], microbatches=4 if name == "interleaved" else 3)
    assert plan.schedule is not None and plan.schedule.has_transfers
    draw = np.random.default_rng(0)
    params = [{"w": np.float32(draw.normal(size=(3, 3)))} for _ in range(4)]
    x, target = (np.float32(draw.normal(size=(12, 3))) for _ in range(2))
    found, expected = jax.jit(plan)(params, x, target), jax.value_and_grad(loss)(params, x, target)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_training_is_proved(schedule: str) -> None:
    plan = training(2, schedule=schedule, microbatches=2)
    assert check(jax.value_and_grad(loss), plan, PARAMS[:2], X, X).verdict is Verdict.PROVED


def test_inference_is_proved() -> None:
    report = check(forward, Plan.pipeline([stage] * 3, microbatches=2), PARAMS[:3], X)
    assert report.verdict is Verdict.PROVED


def test_an_optimizer_is_a_part_of_it() -> None:
    def update(weights: Any, gradients: Any) -> Any:
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)

    plan = training(2, microbatches=2, update=update)
    assert check(step, plan, PARAMS[:2], X, X).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    "options", [{"accumulate": "sum"}, {"microbatches": (3, 1)}], ids=["a sum for a mean", "a mean of unequal parts"]
)
def test_what_is_accumulated_otherwise_is_no_proof(options: dict[str, Any]) -> None:
    plan = training(1, **{"microbatches": 2, **options})
    report = check(jax.value_and_grad(loss), plan, PARAMS[:1], X, X, refute=False)
    assert report.verdict is Verdict.UNKNOWN


def test_unequal_microbatches_with_a_sum_are_proved() -> None:
    def total(y: Any, target: Any) -> Any:
        return jnp.sum((y - target) ** 2)

    plan = Plan.pipeline([stage], microbatches=(3, 1), loss=total, accumulate="sum")
    reference = jax.value_and_grad(lambda params, x, target: total(forward(params, x), target))
    assert check(reference, plan, PARAMS[:1], X, X).verdict is Verdict.PROVED


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no accumulation": ({"accumulate": None}, "accumulate='sum' or 'mean'"),
    "another accumulation": ({"accumulate": "max"}, "by 'sum' or by 'mean'"),
    "no stages": ({"stages": 0}, "not 0 and 4"),
    "another size": ({"schedule": one_f_one_b(4, 3)}, "of 4 stages and 3 microbatches, and the pipeline of 4 and 4"),
    "no backward": ({"stages": 1, "schedule": "0F0 0F1 0F2 0F3"}, "it has no backward"),
    "a backward left out": (
        {"stages": 1, "schedule": "0F0 0F1 0F2 0F3 0B0 0B1 0B3"},
        "cannot be run: microbatch 2 has no backward on stage 0",
    ),
    "ranks that wait for each other": (
        {"stages": 2, "microbatches": 1, "schedule": "0F0 0RECV_B0 0SEND_F0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0"},
        "is one of a ring",
    ),
    "two ranks for a stage": ({"stages": 4, "microbatches": 8, "schedule": dualpipe(4, 8)}, "is on ranks"),
    "weights that were updated": (
        {"stages": 1, "microbatches": 2, "schedule": "0F0 0F1 0B0 0U 0B1"},
        "works with weights that were updated 1 time since",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_schedules_are_refused(case: str) -> None:
    options, message = BAD[case]
    with pytest.raises(InputError, match=message):
        training(**options)


def test_backwards_want_a_loss() -> None:
    with pytest.raises(InputError, match="there is no loss to differentiate"):
        Plan.pipeline([stage], microbatches=1, schedule=Schedule(one_f_one_b(1, 1).ranks))
