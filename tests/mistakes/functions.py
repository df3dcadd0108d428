"""Mistakes in calls of `hlo_verify.check`."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from hlo_verify import check
from tests.mistakes.common import MESH, Program, W, X, loss, over_batch, parallel


class Config:
    """Settings of a model, which JAX knows nothing of."""

    scale = 2.0


def early(x: Any, w: Any) -> Any:
    if loss(x, w) > 0:
        return loss(x, w)
    return -loss(x, w)


def by_numpy(x: Any, w: Any) -> Any:
    return jnp.tanh(np.dot(x, w)).sum()


def asserts(x: Any, w: Any) -> Any:
    raise ValueError("the batch has to have 32 rows")


def yields(x: Any, w: Any) -> Any:
    yield loss(x, w)


def in_doubles(x: Any, w: Any) -> Any:
    return loss(x.astype("float64"), w)


def calls_back(x: Any, w: Any) -> Any:
    y = jax.pure_callback(np.tanh, jax.ShapeDtypeStruct((16, 8), jnp.float32), x @ w)
    return y.sum()


def calls_back_in_parts(x: Any, w: Any) -> Any:
    y = jax.pure_callback(np.tanh, jax.ShapeDtypeStruct((4, 8), jnp.float32), x @ w)
    return lax.psum(y.sum(), "d")


def prints(x: Any, w: Any) -> Any:
    y = lax.psum(loss(x, w), "d")
    jax.debug.print("loss {}", y)
    return y


def masked(x: Any, w: Any) -> Any:
    kept = x[:, 0] > 0
    return (kept[:, None] * (x @ w)).sum() / kept.sum()


def explicit(x: Any, w: Any) -> Any:
    """Over a mesh as `jax.make_mesh` makes them."""
    mesh = AbstractMesh((4,), ("d",), axis_types=(AxisType.Explicit,))
    local = jax.shard_map(lambda x, w: lax.psum(loss(x, w), "d"), mesh=mesh, in_specs=(P("d"), P()), out_specs=P())
    return local(x, w)


def without_mesh(x: Any, w: Any) -> Any:
    return jax.shard_map(lambda x, w: lax.psum(loss(x, w), "d"), in_specs=(P("d"), P()), out_specs=P())(x, w)


MISTAKES: dict[str, Program] = {
    # what is passed
    "arguments_forgotten": lambda _: check(loss, parallel),
    "argument_too_many": lambda _: check(loss, parallel, X, W, X),
    "argument_called_otherwise": lambda _: check(loss, parallel, X, weights=W),
    "result_for_a_function": lambda _: check(loss, jnp.zeros(()), X, W),
    "function_called_at_once": lambda _: check(3.0, parallel, X, W),
    "class_for_a_function": lambda _: check(Config, X),
    "string_for_an_array": lambda _: check(loss, parallel, "x", W),
    "shape_for_an_array": lambda _: check(loss, parallel, (16, 6), (6, 8)),
    "generator_for_arguments": lambda _: check(loss, parallel, (each for each in (X, W))),
    "object_for_an_array": lambda _: check(lambda x, c: x.sum() * c.scale, lambda x, c: x.sum() * c.scale, X, Config()),
    "lowered_for_other_shapes": lambda _: check(loss, jax.jit(parallel).trace(X, W), X, X),
    "none_for_an_array": lambda _: check(loss, parallel, X, None),
    "lowered_with_other_arguments": lambda _: check(jax.jit(loss).trace(X, W), jax.jit(parallel).trace(X, W), X, X),
    "option_misspelt": lambda _: check(loss, parallel, X, W, asume={"x": (0, 1)}),
    "name_of_one_side_alone": lambda _: check(loss, lambda batch, w: parallel(batch, w), x=X, w=W),
    # meshes and specs
    "mesh_beside_its_own": lambda _: check(loss, parallel, X, W, mesh={"data": 2}),
    "mesh_of_a_tuple": lambda _: check(loss, without_mesh, X, W, mesh=("d", 4)),
    "mesh_of_texts": lambda _: check(loss, without_mesh, X, W, mesh={"d": "4"}),
    "mesh_without_devices": lambda _: check(loss, without_mesh, X, W, mesh={"d": 0}),
    "mesh_of_one_device": lambda _: check(loss, without_mesh, X, W, mesh={"d": 1}),
    "mesh_with_explicit_axes": lambda _: check(loss, explicit, X, W),
    "mesh_with_another_axis": lambda _: check(loss, without_mesh, X, W, mesh={"data": 4}),
    "axis_unknown_to_a_spec": lambda _: check(
        loss, lambda x, w: jax.shard_map(loss, mesh=MESH, in_specs=(P("data"), P()), out_specs=P())(x, w), X, W
    ),
    "axis_unknown_to_a_sum": lambda _: check(loss, over_batch(lambda x, w: lax.psum(loss(x, w), "data")), X, W),
    "rows_that_do_not_divide": lambda _: check(loss, parallel, jax.ShapeDtypeStruct((15, 6), jnp.float32), W),
    "spec_for_too_many_dimensions": lambda _: check(
        loss,
        lambda x, w: jax.shard_map(loss, mesh=MESH, in_specs=(P("d"), P(None, None, "d")), out_specs=P())(x, w),
        X,
        W,
    ),
    "spec_for_another_tree": lambda _: check(
        loss, lambda x, w: jax.shard_map(loss, mesh=MESH, in_specs=(P("d"),), out_specs=P())(x, w), X, W
    ),
    "result_that_devices_disagree_on": lambda _: check(loss, over_batch(loss), X, W),
    "results_side_by_side": lambda _: check(
        loss, over_batch(lambda x, w: lax.psum(loss(x, w), "d")[None], P("d")), X, W
    ),
    "specs_for_other_results": lambda _: check(
        lambda x, w: {"loss": loss(x, w)},
        over_batch(lambda x, w: {"loss": lax.psum(loss(x, w), "d")}, (P(), P())),
        X,
        W,
    ),
    "pmap_without_its_axis": lambda _: check(
        loss, jax.pmap(lambda x, w: lax.psum(loss(x, w), "d"), "d", in_axes=(0, None)), X, W
    ),
    # functions that cannot be traced, or do more than compute
    "a_choice_by_a_value": lambda _: check(early, parallel, X, W),
    "numpy_in_a_function": lambda _: check(loss, over_batch(by_numpy), X, W),
    "an_error_of_its_own": lambda _: check(loss, asserts, X, W),
    "a_generator_function": lambda _: check(loss, yields, X, W),
    "a_text_as_a_result": lambda _: check(lambda x, w: ("loss", loss(x, w)), parallel, X, W),
    "nothing_returned": lambda _: check(loss, lambda x, w: None, X, W),
    "nothing_returned_by_both": lambda _: check(lambda x, w: None, over_batch(lambda x, w: None, None), X, W),
    "callback_to_the_host": lambda _: check(calls_back, over_batch(calls_back_in_parts, check=False), X, W),
    "a_print_on_each_device": lambda _: check(loss, over_batch(prints, check=False), X, W),
    "static_argument_that_is_an_array": lambda _: check(loss, jax.jit(parallel, static_argnums=1), X, np.ones((6, 8))),
    "partial_by_a_wrong_name": lambda _: check(loss, partial(parallel, depth=2), X, W),
    # results
    "tuple_for_a_value": lambda _: check(loss, lambda x, w: (parallel(x, w),), X, W),
    "doubles_on_one_side": lambda _: _with_doubles(),
    "half_precision_on_one_side": lambda _: check(loss, lambda x, w: parallel(x, w).astype("bfloat16"), X, W),
    "integer_for_a_float": lambda _: check(loss, lambda x, w: parallel(x, w).astype(int), X, W),
    # what is asked
    "precondition_of_no_argument": lambda _: check(loss, parallel, X, W, assume={"tokens": (0, 32)}),
    "precondition_misspelt": lambda _: check(loss, parallel, X, W, assume={"x": "postive"}),
    "precondition_that_nothing_fulfills": lambda _: check(loss, parallel, X, W, assume={"x": (3, 3)}),
    "precondition_of_one_number": lambda _: check(loss, parallel, X, W, assume={"x": 32}),
    "precondition_that_is_a_number": lambda _: check(loss, parallel, X, W, assume=32),
    "approximation_that_is_a_number": lambda _: check(loss, parallel, X, W, approximations=0.1),
    "approximation_of_no_scope": lambda _: check(loss, parallel, X, W, approximations={"batch/mean": "mean"}),
    "approximation_of_a_line_elsewhere": lambda _: check(loss, parallel, X, W, approximations={"step.py:3": "f.py:1"}),
    "approximation_without_another_side": lambda _: check(loss, parallel, X, W, approximations="mean"),
    "effort_that_there_is_not": lambda _: check(loss, parallel, X, W, effort="max"),
    "progress_that_is_a_flag": lambda _: check(loss, parallel, X, W, progress=True),
    "folder_that_is_a_flag": lambda _: check(loss, parallel, X, W, keep=True),
    "time_limit_before_now": lambda _: check(loss, parallel, X, W, time_limit=-1),
    "time_limit_in_words": lambda _: check(loss, parallel, X, W, time_limit="10s"),
    # what is wrong, and told by a report
    "mean_of_means": lambda _: check(masked, over_batch(lambda x, w: lax.pmean(masked(x, w), "d")), X, W),
    "sum_of_means": lambda _: check(
        lambda x, w: jnp.tanh(x @ w).mean(), over_batch(lambda x, w: lax.psum(jnp.tanh(x @ w).mean(), "d")), X, W
    ),
}


def _with_doubles() -> object:
    with jax.enable_x64(True):
        return check(loss, lambda x, w: parallel(x, w).astype("float64"), X, W)
