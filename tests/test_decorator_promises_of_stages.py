"""What `jax.jit` promises of donation, transformations and stages: `hlo_verify.jit` answers alike."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from tests.support.promises import Jit, Promises, X, check_alike, into, said

PROMISES: Promises = {}
promise = into(PROMISES)
pytestmark = pytest.mark.usefixtures("all_is_proved")


# Donation, and what is kept


@promise
def donated_arguments_are_gone(jit: Jit) -> Any:
    x, y = jnp.array(X), jnp.array(X)
    jit(lambda x, y: x + y, donate_argnums=0)(x, y)
    return x.is_deleted(), y.is_deleted()


@promise
def donated_by_name_and_in_trees(jit: Jit) -> Any:
    state = {"w": jnp.array(X), "b": jnp.array(X[0])}
    g = jit(lambda state, x: jax.tree.map(lambda v: v + x, state), donate_argnames="state")
    out = g(state=state, x=1.0)
    return [each.is_deleted() for each in jax.tree.leaves(state)], out


@promise
def donation_in_vain_is_warned_of(jit: Jit) -> Any:
    return jit(lambda x: x.sum(), donate_argnums=0)(jnp.array(X))


@promise
def donated_again_and_again(jit: Jit) -> Any:
    g = jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.array(X)
    for _ in range(4):
        x = g(x)
    return x


@promise
def one_array_given_twice(jit: Jit) -> Any:
    x = jnp.array(X)
    g = jit(lambda x, y: x + y, donate_argnums=0)
    return said(lambda: g(x, x)).split("\n")[0].split("(")[0]


@promise
def unused_arguments_may_be_kept(jit: Jit) -> Any:
    kept = jit(lambda x, y: x, keep_unused=True).lower(X, X).as_text().split("@main")[1].split("->")[0]
    return kept.count("tensor"), jit(lambda x, y: x).lower(X, X).as_text().split("@main")[1].split("->")[0]


@promise
def an_argument_that_is_returned(jit: Jit) -> Any:
    x = jnp.array(X)
    out = jit(lambda x: x)(x)
    return out, out is x, x.is_deleted()


# Transformations


@promise
def gradients(jit: Jit) -> Any:
    g = jit(lambda x, y: jnp.sin(x * y).sum())
    return (
        jax.grad(g, (0, 1))(X, X),
        jax.value_and_grad(g)(X, X),
        jax.jacfwd(g)(X, X),
        jax.vjp(g, X, X)[1](jnp.float32(1)),
        jax.linearize(g, X, X)[0],
    )


@promise
def jit_of_gradients(jit: Jit) -> Any:
    return jit(jax.grad(lambda x: jnp.tanh(x).sum()))(X), jit(jax.hessian(lambda x: jnp.tanh(x).sum()))(X[0])


@promise
def vmap_of_jit_and_jit_of_vmap(jit: Jit) -> Any:
    f = lambda x, y: x * y + 1  # noqa: E731
    return jax.vmap(jit(f), (0, None))(X, 2.0), jit(jax.vmap(f, (0, None)))(X, 2.0)


@promise
def custom_rules(jit: Jit) -> Any:
    @jax.custom_vjp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (3 * g,))
    return jax.grad(lambda x: jit(f)(x).sum())(X), jit(jax.grad(lambda x: f(x).sum()))(X)


@promise
def jit_of_jit(jit: Jit) -> Any:
    return jit(jit(lambda x: x + 1))(X), jit(jax.jit(lambda x: x + 1))(X), jax.jit(jit(lambda x: x + 1))(X)


@promise
def jit_in_jit(jit: Jit) -> Any:
    traced = []

    @jit
    def inner(x: Any) -> Any:
        traced.append(1)
        return jnp.tanh(x)

    @jit
    def outer(x: Any) -> Any:
        return inner(x) + inner(x + 1)

    return outer(X), len(traced), inner(X), len(traced)


@promise
def inlined(jit: Jit) -> Any:
    inner = jit(lambda x: x + 1, inline=True)
    return "pjit" in str(jax.make_jaxpr(lambda x: inner(x))(X)), "jit" in str(jax.make_jaxpr(inner)(X))


@promise
def loops_and_branches(jit: Jit) -> Any:
    @jit
    def f(x: Any, n: Any) -> Any:
        y = jax.lax.fori_loop(0, n, lambda _, y: y * 2, x)
        return jax.lax.cond(n > 2, lambda: y, lambda: -y)

    return f(X, 2), f(X, 3)


@promise
def jaxprs(jit: Jit) -> Any:
    g = jit(lambda x, n: jnp.sin(x) * n, static_argnums=1)
    return str(g.trace(X, 2).jaxpr), str(jax.make_jaxpr(g, static_argnums=1)(X, 2))


@promise
def a_checkpoint_around_it(jit: Jit) -> Any:
    return jax.grad(lambda x: jax.checkpoint(jit(lambda x: jnp.sin(jnp.sin(x))))(x).sum())(X)


@promise
def a_shard_map_in_it_and_around_it(jit: Jit) -> Any:
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    mapped = functools.partial(jax.shard_map, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    return jit(mapped(lambda x: x * 2))(X), mapped(jit(lambda x: x * 2))(X)


@promise
def settings_around_a_call(jit: Jit) -> Any:
    g = jit(lambda x: x * 2.5)
    with jax.enable_x64(True):
        wide = g(np.float64(1.5))
    return wide, g(np.float64(1.5)), g._cache_size()


@promise
def without_jit(jit: Jit) -> Any:
    ran = []
    g = jit(lambda x: (ran.append(1), x if x.sum() > 0 else -x)[1])
    with jax.disable_jit():
        return g(X), g(X), len(ran)


# The way to an executable


@promise
def stages(jit: Jit) -> Any:
    g = jit(lambda x, n: {"y": x * n}, static_argnames="n")
    traced = g.trace(X, n=2)
    lowered, compiled = g.lower(X, n=2), traced.lower().compile()
    return (
        [type(each).__name__ for each in (traced, lowered, compiled)],
        str(traced.out_info),
        str(lowered.in_tree),
        str(lowered.out_info),
        lowered.as_text(),
        compiled(X),
        said(lambda: compiled(X[0])),
        str(compiled.in_tree),
        str(compiled.input_shardings),
        traced.fun_name,
    )


@promise
def shapes_alone(jit: Jit) -> Any:
    g = jit(lambda x, y: x @ y)
    s = jax.ShapeDtypeStruct
    out = g.eval_shape(s((2, 3), jnp.float32), s((3, 5), jnp.float32))
    return out.shape, str(out.dtype), jax.eval_shape(g, X, X.T).shape, str(g.lower(X, X.T).out_info)


@promise
def where_it_runs(jit: Jit) -> Any:
    on = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    out = jit(lambda x: x + 1, in_shardings=on, out_shardings=on)(X)
    return str(out.sharding), out, str(jit(lambda x: x)(jax.device_put(X, jax.devices()[0])).sharding)


@promise
def options_of_the_compiler(jit: Jit) -> Any:
    fine = jit(lambda x: x + 1, compiler_options={"xla_embed_ir_in_executable": True})(X)
    return fine, said(lambda: jit(lambda x: x, compiler_options={"no_such_option": 1})(X)).split("\n")[0]


@promise
def constants_that_it_closes_over(jit: Jit) -> Any:
    table = np.arange(2000.0, dtype=np.float32)
    return jit(lambda x: x + table[:3])(X), jit(lambda i: jnp.asarray(table)[i])(np.arange(2))


@promise
def effects(jit: Jit) -> Any:
    seen: list[float] = []

    @jit
    def f(x: Any) -> Any:
        jax.debug.callback(lambda s: seen.append(float(s)), x.sum())
        return jax.pure_callback(lambda x: np.asarray(x) + 1, jax.ShapeDtypeStruct(X.shape, X.dtype), x)

    out = f(X), f(X + 1)
    jax.effects_barrier()
    return out, sorted(seen)


@promise
def an_error_in_a_callback(jit: Jit) -> Any:
    def fail(_: Any) -> Any:
        raise ValueError("in the callback")

    f = jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((), jnp.float32), x))
    return "in the callback" in said(lambda: f(X).block_until_ready())


@pytest.mark.drawn(10)
@pytest.mark.parametrize("name", PROMISES)
def test_both_answer_alike(name: str) -> None:
    check_alike(PROMISES[name])
