"""Questions whether numbers are infinite say through which narrower types these went."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import NARROWED, operations
from tests.support.places import MESH

Change = Callable[[jax.Array], jax.Array]


def through(*types: jnp.dtype) -> Change:
    def changed(x: jax.Array) -> jax.Array:
        for dtype in types:
            x = x.astype(dtype)
        return x.astype(jnp.float32)

    return changed


def in_turns(x: jax.Array) -> jax.Array:
    """What one turn made narrow another one hands on."""
    return lax.fori_loop(0, 2, lambda _, pair: (pair[1], through(jnp.float16)(pair[0])), (x, x))[0]


def in_later_turns(x: jax.Array) -> jax.Array:
    """Three values that a loop carries, the first of which is narrowed when it becomes the last one."""
    return lax.fori_loop(0, 3, lambda _, v: (v[1], v[2], through(jnp.float16)(v[0])), (x, x, x))[0]


def in_no_turn(x: jax.Array) -> jax.Array:
    """What a loop is handed, if it has no turn."""
    return lax.fori_loop(0, (x[0, 0] > 0).astype(int), lambda _, y: x, through(jnp.float16)(x))


def in_a_region(x: jax.Array) -> jax.Array:
    return lax.cond(x[0, 0] > 0, through(jnp.float16), lambda y: y, x)


NARROW: dict[str, tuple[Change, str]] = {
    "f16": (through(jnp.float16), "f16"),
    "f16, moved and joined": (lambda x: jnp.concatenate([x[:1], through(jnp.float16)(x)[1:]]), "f16"),
    "f8": (through(jnp.float8_e5m2), "f8E5M2"),
    "bf16, f16": (through(jnp.bfloat16, jnp.float16, jnp.bfloat16), "f16"),
    "bf16": (through(jnp.bfloat16), "bf16"),
    "complex": (lambda x: lax.complex(through(jnp.float16)(x), x).real, "f16"),
    "loop": (in_turns, "f16"),
    "later turns": (in_later_turns, "f16"),
    "no turn": (in_no_turn, "f16"),
    "branch": (in_a_region, "f16"),
}


def asked(change: Change, ask: Change) -> Callable[[jax.Array, jax.Array], jax.Array]:
    return lambda x, m: ask(jnp.where(m, change(x), -jnp.inf).max(1)).astype(jnp.float32)


def is_above(y: jax.Array) -> jax.Array:
    return y > -jnp.inf


@pytest.mark.parametrize("ask", [jnp.isfinite, is_above])
@pytest.mark.parametrize(("change", "least"), NARROW.values(), ids=NARROW)
def test_what_went_through_a_narrower_type(change: Change, least: str, ask: Change) -> None:
    """-1e5 is a number of 32 bits, and minus infinity behind one of 16."""
    x, m = jax.ShapeDtypeStruct((8, 4), jnp.float32), jax.ShapeDtypeStruct((8, 4), jnp.bool_)
    module = load(jax.jit(asked(change, ask)).lower(x, m).as_text())
    assert least in {op.attributes.get(NARROWED) for op in operations(module.main)}

    def counted(x: jax.Array, m: jax.Array) -> jax.Array:
        return m.any(1).astype(jnp.float32)

    mapped = jax.shard_map(asked(change, ask), mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    assert hlo_verify.check(counted, mapped, x, m, refute=False).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("ask", [jnp.isfinite, is_above])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_what_went_through_no_narrower_type(dtype: jnp.dtype, ask: Change) -> None:
    """It does not count what the mask is made of, nor that a type is widened."""
    x, m = jax.ShapeDtypeStruct((8, 4), dtype), jax.ShapeDtypeStruct((8, 4), jnp.float32)

    def masked(x: jax.Array, m: jax.Array) -> jax.Array:
        return asked(lambda y: y.astype(jnp.float32), ask)(x, m.astype(jnp.float16) > 0)

    def counted(x: jax.Array, m: jax.Array) -> jax.Array:
        return (m.astype(jnp.float16) > 0).any(1).astype(jnp.float32)

    mapped = jax.shard_map(masked, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check_vma=False)
    assert hlo_verify.check(counted, mapped, x, m, refute=False).verdict is Verdict.PROVED
