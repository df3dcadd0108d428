"""Whole programs: against JAX, in lockstep on devices that go different ways, and past the limits."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from hlo_verify.evaluate import Blocks, Limits, dense, evaluate, of_dense
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Module
from tests.support.compare import Array


def module_of(body: str, arguments: str = "", results: str = "tensor<i32>", devices: int = 1) -> Module:
    module = load(
        f"module @m {{\n func.func public @main({arguments}) -> ({results}) {{\n{body}\n }}\n}}", devices=devices
    )
    return replace(module, partitions=devices)


def on_devices(a: Blocks | None) -> list[int]:
    assert a is not None
    return [int(dense(a, d)) for d in range(a.devices)]


ID = """%id = "stablehlo.partition_id"() : () -> tensor<ui32>
    %n = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>"""


def test_program_agrees_with_jax() -> None:
    def attend(x: jax.Array, w: jax.Array, ids: jax.Array) -> jax.Array:
        y = w[ids] + x
        scores = jnp.einsum("bid,bjd->bij", y, y)
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool)), scores, -1e30)
        mixed = jnp.einsum("bij,bjd->bid", jax.nn.softmax(scores), y)
        return jnp.sum(jnp.tanh(mixed.reshape(-1, 2)) ** 2)

    function = jax.value_and_grad(attend, argnums=(0, 1))
    generator = np.random.default_rng(0)
    x, w = generator.normal(size=(2, 4, 6)).astype(np.float32), generator.normal(size=(8, 6)).astype(np.float32)
    ids = np.array([[3, 1, 3, 7], [0, 0, 5, 2]], np.int32)
    wanted = jax.tree.leaves(function(x, w, ids))
    found = evaluate(load(jax.jit(function).lower(x, w, ids).as_text()), [of_dense(a) for a in (x, w, ids)], 1)
    assert not found.unknown
    for blocks, array in zip(found.results, wanted, strict=True):
        assert blocks is not None
        np.testing.assert_allclose(dense(blocks, 0), np.asarray(array), rtol=2e-4, atol=2e-5)


def test_blocks_are_their_dense_elements() -> None:
    def program(x: jax.Array, w: jax.Array) -> jax.Array:
        y = (x @ w).reshape(3, 4, 2, 2).transpose(0, 2, 1, 3)
        return jnp.concatenate([jnp.flip(y, 1) * jnp.arange(4.0)[:, None], y[:, :, ::-1]], axis=3).max(axis=1)

    text = jax.jit(program).lower(np.zeros((12, 6), np.float32), np.zeros((6, 4), np.float32)).as_text()
    module, generator = load(text), np.random.default_rng(1)
    zero = np.zeros(1, np.int64)
    x = Blocks((zero, np.repeat([0, 1, 0], 4), np.array([0, 1, 1, 2, 0, 0])), generator.normal(size=(1, 2, 3)))
    w = Blocks((zero, np.array([0, 0, 1, 1, 0, 1]), np.array([0, 1, 0, 1])), generator.normal(size=(1, 2, 2)))
    arrays: list[Array] = [dense(a, 0) for a in (x, w)]
    (compact,), (full,) = evaluate(module, [x, w], 1).results, evaluate(module, list(map(of_dense, arrays)), 1).results
    assert compact is not None and full is not None
    np.testing.assert_allclose(dense(compact, 0), dense(full, 0), rtol=1e-12)
    assert compact.values.size <= full.values.size


def test_devices_end_a_loop_one_by_one() -> None:
    body = f"""{ID}
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r:2 = stablehlo.while(%k = %zero, %s = %one) : tensor<i32>, tensor<i32>
     cond {{
      %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      %k1 = stablehlo.add %k, %one : tensor<i32>
      %s1 = stablehlo.add %s, %s : tensor<i32>
      stablehlo.return %k1, %s1 : tensor<i32>, tensor<i32>
    }}
    return %r#1 : tensor<i32>"""
    assert on_devices(evaluate(module_of(body, devices=4), [], 4).results[0]) == [1, 2, 4, 8]


def test_devices_take_different_branches() -> None:
    body = f"""{ID}
    %a = "stablehlo.case"(%n) ({{
      %x = stablehlo.constant dense<5> : tensor<i32>
      stablehlo.return %x : tensor<i32>
    }}, {{
      %x = stablehlo.add %n, %n : tensor<i32>
      stablehlo.return %x : tensor<i32>
    }}) : (tensor<i32>) -> tensor<i32>
    return %a : tensor<i32>"""
    assert on_devices(evaluate(module_of(body, devices=3), [], 3).results[0]) == [5, 2, 4]


COSTLY = """%a = "stablehlo.dot_general"(%x, %x) {dot_dimension_numbers = #stablehlo.dot<>} :
      (tensor<8xi32>, tensor<8xi32>) -> tensor<8x8xi32>
    %b = stablehlo.add %a, %a : tensor<8x8xi32>
    %c = stablehlo.constant dense<7> : tensor<i32>
    return %b, %c : tensor<8x8xi32>, tensor<i32>"""


def test_past_a_limit_is_unknown_and_the_rest_is_not() -> None:
    module = module_of(COSTLY, "%x: tensor<8xi32>", "tensor<8x8xi32>, tensor<i32>")
    x = of_dense(np.arange(8, dtype=np.int32))
    found = evaluate(module, [x], 1, limits=Limits(elements=63))
    assert found.results[0] is None and on_devices(found.results[1]) == [7]
    assert len(found.unknown) == 1 and "dot_general" in found.unknown[0]
    whole = evaluate(module, [x], 1).results[0]
    assert whole is not None and dense(whole, 0)[3, 5] == 30
    assert evaluate(module, [None], 1).results[0] is None


def test_what_is_not_known_is_unknown() -> None:
    body = """%a = stablehlo.custom_call @mystery(%x) : (tensor<i32>) -> tensor<i32>
    %b = stablehlo.add %a, %x : tensor<i32>
    return %b : tensor<i32>"""
    found = evaluate(module_of(body, "%x: tensor<i32>"), [of_dense(np.int32(1))], 1)
    assert found.results == (None,) and "mystery" in found.unknown[0]


def test_loops_that_do_not_end_are_unknown() -> None:
    body = """%r = stablehlo.while(%k = %x) : tensor<i32>
     cond {
      %c = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      stablehlo.return %k : tensor<i32>
    }
    return %r : tensor<i32>"""
    found = evaluate(module_of(body, "%x: tensor<i32>"), [of_dense(np.int32(1))], 1, limits=Limits(turns=10))
    assert found.results == (None,) and "turns" in found.unknown[0]


def counting_down_from(start: str) -> str:
    """A loop that goes round as often as the sum of `%a` says, which is made of `%x`."""
    return f"""{start}
    %z = stablehlo.constant dense<0> : tensor<i32>
    %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0, 1] :
      (tensor<8x8xi32>, tensor<i32>) -> tensor<i32>
    %r = stablehlo.while(%k = %s) : tensor<i32>
     cond {{
      %c = stablehlo.compare GT, %k, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      %o = stablehlo.constant dense<1> : tensor<i32>
      %n = stablehlo.subtract %k, %o : tensor<i32>
      stablehlo.return %n : tensor<i32>
    }}
    return %r : tensor<i32>"""


def test_a_loop_that_hangs_on_what_is_too_large_has_a_meaning() -> None:
    """How often it goes round is not known for a size, or as nobody knows what the number is made of."""
    product = COSTLY.partition("%b")[0]
    mystery = "%a = stablehlo.custom_call @mystery(%x) : (tensor<8xi32>) -> tensor<8x8xi32>"
    x = of_dense(np.arange(8, dtype=np.int32))
    for start, lacks in ((product, False), (mystery, True)):
        module = module_of(counting_down_from(start), "%x: tensor<8xi32>")
        found = evaluate(module, [x], 1, limits=Limits(elements=63))
        assert found.results == (None,) and found.lacks_meanings is lacks
        assert any("what decides is unknown" in said for said in found.unknown)


def test_components_of_start_indices_may_be_of_one_class() -> None:
    body = """%a = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [],
      collapsed_slice_dims = [0, 1, 2], start_index_map = [0, 1, 2], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 1, 1>, indices_are_sorted = false} :
      (tensor<3x3x3xi32>, tensor<2x3xi32>) -> tensor<2xi32>
    return %a : tensor<2xi32>"""
    module = module_of(body, "%x: tensor<3x3x3xi32>, %i: tensor<2x3xi32>", "tensor<2xi32>")
    x = np.arange(27, dtype=np.int32).reshape(3, 3, 3)
    indices = Blocks((np.zeros(1, np.int64), np.arange(2), np.array([0, 0, 1])), np.array([[[1, 2], [2, 0]]], np.int32))
    (found,) = evaluate(module, [of_dense(x), indices], 1).results
    assert found is not None
    np.testing.assert_array_equal(dense(found, 0), [x[1, 1, 2], x[2, 2, 0]])


def test_watched_values_are_kept() -> None:
    module = module_of(COSTLY, "%x: tensor<8xi32>", "tensor<8x8xi32>, tensor<i32>")
    wanted = module.main.ops[0].results[0]
    found = evaluate(module, [of_dense(np.arange(8, dtype=np.int32))], 1, watch=[wanted])
    kept = found.watched[wanted]
    assert kept is not None and dense(kept, 0)[2, 3] == 6


def test_padding_between_elements_may_leave_the_size_as_it_is() -> None:
    body = """%z = stablehlo.constant dense<0> : tensor<i32>
    %a = stablehlo.pad %x, %z, low = [0], high = [-3], interior = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
    return %a : tensor<4xi32>"""
    module = module_of(body, "%x: tensor<4xi32>", "tensor<4xi32>")
    (found,) = evaluate(module, [of_dense(np.array([5, 6, 7, 8], np.int32))], 1).results
    assert found is not None
    assert dense(found, 0).tolist() == [5, 0, 6, 0]


def test_arguments_are_held_like_all_other_reals() -> None:
    """The total order of floats is that of their bits."""
    body = """%one = stablehlo.constant dense<1.0> : tensor<4xf32>
    %a = stablehlo.compare LT, %one, %x, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    return %a : tensor<4xi1>"""
    module = module_of(body, "%x: tensor<4xf32>", "tensor<4xi1>")
    for held in (np.float32, np.float64):
        for real in (np.float32, np.float64):
            (found,) = evaluate(module, [of_dense(np.array([-2, 0.5, 1, 2], held))], 1, real=real).results
            assert found is not None
            assert dense(found, 0).tolist() == [False, False, False, True]
