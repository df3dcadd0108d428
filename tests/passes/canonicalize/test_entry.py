# ruff: noqa: E501 (modules as MLIR prints them)
"""Calls, tuples, regions, attributes and locations of canonical modules."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Module, Op
from hlo_verify.program.mesh import Mesh
from hlo_verify.program.sharding import Sharding


def main(body: str, arguments: str = "", results: str = "", outside: str = "") -> Module:
    return load(f"module {{\n{outside}\nfunc.func public @main({arguments}) -> ({results}) {{\n{body}\n}}\n}}\n")


def op_of(text: str, arguments: str = "", results: str = "") -> Op:
    """The one operation of a function that returns nothing."""
    (op,) = main(f"{text}\nreturn", arguments).main.ops
    return op


# Structure


def test_calls_are_inlined_each_with_values_of_its_own() -> None:
    module = main(
        "%0 = call @twice(%a) : (tensor<f32>) -> tensor<f32>\n"
        "%1 = call @twice(%0) : (tensor<f32>) -> tensor<f32>\nreturn %1 : tensor<f32>",
        "%a: tensor<f32>",
        "tensor<f32>",
        "func.func private @twice(%x: tensor<f32>) -> tensor<f32> {\n"
        "%0 = stablehlo.add %x, %x : tensor<f32>\nreturn %0 : tensor<f32>\n}",
    )
    first, second = module.main.ops
    (a,) = module.main.arguments
    assert (first.operands, second.operands) == ((a, a), first.results * 2)
    assert module.main.results == second.results != first.results


def test_names_inside_a_call_begin_with_the_calls() -> None:
    module = main(
        '%0 = call @f(%a) : (tensor<f32>) -> tensor<f32> loc("jit(g)/closed_call"("g.py":3:0))\nreturn %0 : tensor<f32>',
        "%a: tensor<f32>",
        "tensor<f32>",
        "func.func private @f(%x: tensor<f32>) -> tensor<f32> {\n"
        '%0 = stablehlo.tanh %x : tensor<f32> loc("tanh"(callsite("f"("f.py":5:2) at callsite("g"("g.py":3:0) at "h"("h.py":9:0)))))\n'
        '%1 = stablehlo.sine %0 : tensor<f32> loc("jit(g)/sin")\n'
        "%2 = stablehlo.cosine %1 : tensor<f32>\nreturn %2 : tensor<f32>\n}",
    )
    tanh, sine, cosine = module.main.ops
    assert tanh.location.name == "jit(g)/closed_call/tanh"
    assert tanh.location.frames == (("f.py", 5), ("g.py", 3), ("h.py", 9))
    assert sine.location.name == "jit(g)/sin"
    assert cosine.location.name == "jit(g)/closed_call"
    assert str(cosine.location) == "<text>:5"


def test_composites_are_their_decomposition() -> None:
    module = main(
        '%0 = stablehlo.composite "my.op" %a {composite_attributes = {n = 1 : i64}, decomposition = @f} '
        ": (tensor<f32>) -> tensor<f32>\nreturn %0 : tensor<f32>",
        "%a: tensor<f32>",
        "tensor<f32>",
        "func.func private @f(%x: tensor<f32>) -> tensor<f32> {\n"
        "%0 = stablehlo.tanh %x : tensor<f32>\nreturn %0 : tensor<f32>\n}",
    )
    assert [op.name for op in module.main.ops] == ["tanh"]


@pytest.mark.parametrize(
    ("callee", "message"),
    [("f", "@f calls itself"), ("g", "not valid StableHLO")],
)
def test_calls_that_cannot_be_inlined(callee: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        main(
            f"%0 = call @{callee}(%a) : (tensor<f32>) -> tensor<f32>\nreturn %0 : tensor<f32>",
            "%a: tensor<f32>",
            "tensor<f32>",
            "func.func private @f(%x: tensor<f32>) -> tensor<f32> {\n"
            "%0 = call @f(%x) : (tensor<f32>) -> tensor<f32>\nreturn %0 : tensor<f32>\n}",
        )


def test_tuples_are_flattened_everywhere() -> None:
    pair = "tuple<tensor<f32>, tuple<tensor<2xf32>, tensor<3xi32>>>"
    module = main(
        f"%0 = stablehlo.get_tuple_element %t[1] : ({pair}) -> tuple<tensor<2xf32>, tensor<3xi32>>\n"
        "%1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<2xf32>, tensor<3xi32>>) -> tensor<3xi32>\n"
        f'%2 = "stablehlo.custom_call"(%t) {{call_target_name = "f"}} : ({pair}) -> {pair}\n'
        f"%3 = stablehlo.tuple %1, %2 : tuple<tensor<3xi32>, {pair}>\n"
        f"return %3 : tuple<tensor<3xi32>, {pair}>",
        f'%t: {pair} {{mhlo.sharding = "{{{{replicated}}, {{devices=[2]<=[2]}}, {{replicated}}}}"}} loc("t")',
        f"tuple<tensor<3xi32>, {pair}>",
    )
    (op,) = module.main.ops
    assert len(module.main.arguments) == len(op.operands) == len(op.results) == 3
    assert module.main.results == (module.main.arguments[2], *op.results)
    assert module.argument_names == ("t[0]", "t[1]", "t[2]")
    assert [s and s.tiles for s in module.argument_shardings] == [(), (2,), (1,)]
    assert [str(t) for t in module.result_types] == ["i32[3]", "f32[]", "f32[2]", "i32[3]"]


def test_regions_see_the_values_around_them() -> None:
    loop = op_of(
        "%0:2 = stablehlo.while(%i = %n, %x = %a) : tensor<i32>, tensor<f32>\n"
        "cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "stablehlo.return %c : tensor<i1> }\n"
        "do { %y = stablehlo.add %x, %a : tensor<f32>\nstablehlo.return %i, %y : tensor<i32>, tensor<f32> }",
        "%n: tensor<i32>, %a: tensor<f32>",
    )
    condition, body = loop.regions
    assert condition.ops[0].operands == (condition.arguments[0], loop.operands[0])
    assert condition.ops[0].attributes["compare_type"] == "SIGNED"
    assert body.ops[0].operands == (body.arguments[1], loop.operands[1])
    assert body.results == (body.arguments[0], body.ops[0].results[0])
    assert [str(t) for t in body.argument_types] == ["i32[]", "f32[]"]


def test_functions_that_a_custom_call_names_are_regions() -> None:
    module = main(
        '%0 = "stablehlo.custom_call"(%a) {call_target_name = "f", called_computations = [@g]} '
        ": (tensor<f32>) -> tensor<f32>\nreturn",
        "%a: tensor<f32>",
        "",
        "func.func private @g(%x: tensor<f32>) -> tensor<f32> {\n"
        "%0 = stablehlo.tanh %x : tensor<f32>\nreturn %0 : tensor<f32>\n}",
    )
    (call,) = module.main.ops
    assert [op.name for op in call.regions[0].ops] == ["tanh"]


def test_what_changes_no_value_is_dropped() -> None:
    module = main(
        "%0 = mhlo.copy %a : tensor<f32>\n"
        "%1 = sdy.propagation_barrier %0 allowed_direction=NONE : tensor<f32>\n"
        "sdy.sharding_group %1 group_id=0 : tensor<f32>\n"
        '%2 = sdy.named_computation<"f">(%1) (%x: tensor<f32>) { sdy.return %x : tensor<f32> } : (tensor<f32>) -> tensor<f32>\n'
        "return %2 : tensor<f32>",
        "%a: tensor<f32>",
        "tensor<f32>",
    )
    assert module.main.ops == () and module.main.results == module.main.arguments


def test_an_asynchronous_collective_runs_where_it_starts() -> None:
    text = """HloModule m, num_partitions=2
ENTRY e {
  p = f32[2,2] parameter(0)
  s = (f32[2,2], f32[2,4]) all-gather-start(p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={1}
  ROOT r = f32[2,4] all-gather-done(s)
}
"""
    module = load(text)
    (gather,) = module.main.ops
    assert gather.name == "all_gather" and module.main.results == gather.results


# Attributes


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("dense<[1.5, -2.0]> : tensor<2xf32>", np.array([1.5, -2], np.float32)),
        ("dense<[true, false]> : tensor<2xi1>", np.array([True, False])),
        ("dense<[1.5, -2.0]> : tensor<2xbf16>", np.array([1.5, -2], ml_dtypes.bfloat16)),
        ('dense<"0x803F0040"> : tensor<2xbf16>', np.array([1, 2], ml_dtypes.bfloat16)),
        ("dense<[[0.5], [2.0]]> : tensor<2x1xf8E4M3FN>", np.array([[0.5], [2]], ml_dtypes.float8_e4m3fn)),
        ("dense<[1, -2]> : tensor<2xi4>", np.array([1, -2], ml_dtypes.int4)),
        ("dense<[1, 255]> : tensor<2xui8>", np.array([1, 255], np.uint8)),
        ("dense<18446744073709551615> : tensor<ui64>", np.array(2**64 - 1, np.uint64)),
        ("dense<0xFF800000> : tensor<f32>", np.array(-np.inf, np.float32)),
        ("dense<[(1.0,2.0), (3.0,-4.0)]> : tensor<2xcomplex<f32>>", np.array([1 + 2j, 3 - 4j], np.complex64)),
        ("dense<(0.0,1.0)> : tensor<complex<f64>>", np.array(1j, np.complex128)),
        ("dense<> : tensor<0x3xbf16>", np.zeros((0, 3), ml_dtypes.bfloat16)),
    ],
)
def test_constants_have_their_exact_type(literal: str, expected: np.ndarray[Any, Any]) -> None:
    value = op_of(f"%0 = stablehlo.constant {literal}").attributes["value"]
    assert value.dtype == expected.dtype and value.shape == expected.shape
    assert value.tobytes() == expected.tobytes()


@pytest.mark.parametrize("type_", ["f32", "bf16", "i1", "i4", "f8E5M2"])
def test_a_splat_takes_no_memory(type_: str) -> None:
    literal = "true" if type_ == "i1" else "1" if type_.startswith("i") else "1.0"
    value = op_of(f"%0 = stablehlo.constant dense<{literal}> : tensor<4096x4096x{type_}>").attributes["value"]
    assert value.shape == (4096, 4096) and value.strides == (0, 0) and value[1, 2] == 1


def test_dimension_numbers_are_dictionaries() -> None:
    gather = op_of(
        '%0 = "stablehlo.gather"(%w, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], '
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>} "
        ": (tensor<8x4xf32>, tensor<3xi32>) -> tensor<3x4xf32>",
        "%w: tensor<8x4xf32>, %i: tensor<3xi32>",
    )
    assert gather.attributes == {
        "dimension_numbers": {
            "offset_dims": (1,),
            "collapsed_slice_dims": (0,),
            "operand_batching_dims": (),
            "start_indices_batching_dims": (),
            "start_index_map": (0,),
            "index_vector_dim": 1,
        },
        "slice_sizes": (1, 4),
        "indices_are_sorted": False,
    }


def test_defaults_are_filled_in() -> None:
    window = op_of(
        '%0 = "stablehlo.reduce_window"(%x, %z) ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
        "%s = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %s : tensor<f32> }) "
        "{window_dimensions = array<i64: 1, 2>} : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x3xf32>",
        "%x: tensor<4x4xf32>, %z: tensor<f32>",
    )
    assert window.attributes["window_strides"] == window.attributes["base_dilations"] == (1, 1)
    assert window.attributes["window_dilations"] == (1, 1)
    assert window.attributes["padding"].tolist() == [[0, 0], [0, 0]]
    assert [op.name for op in window.regions[0].ops] == ["add"]
    unsigned = op_of("%0 = stablehlo.compare GT, %x, %x : (tensor<ui8>, tensor<ui8>) -> tensor<i1>", "%x: tensor<ui8>")
    assert unsigned.attributes == {"comparison_direction": "GT", "compare_type": "UNSIGNED"}
    permute = op_of(
        '%0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} '
        ": (tensor<2xf32>) -> tensor<2xf32>",
        "%x: tensor<2xf32>",
    )
    assert permute.attributes["channel_id"] == 0
    assert permute.attributes["source_target_pairs"].tolist() == [[0, 1], [1, 0]]


def test_dot_is_dot_general() -> None:
    dot = op_of(
        "%0 = stablehlo.dot %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>",
        "%x: tensor<2x3xf32>, %y: tensor<3xf32>",
    )
    assert dot.name == "dot_general"
    assert dot.attributes["dot_dimension_numbers"] == {
        "lhs_batching_dimensions": (),
        "rhs_batching_dimensions": (),
        "lhs_contracting_dimensions": (1,),
        "rhs_contracting_dimensions": (0,),
    }


def test_other_dialects_keep_their_name() -> None:
    top = op_of("%0:2 = chlo.top_k(%x, k = 2) : tensor<8xf32> -> (tensor<2xf32>, tensor<2xi32>)", "%x: tensor<8xf32>")
    assert (top.name, top.attributes) == ("chlo.top_k", {"k": 2})


# Shardy

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=4]>'


def test_shardings_of_operations_are_text_with_their_mesh_in_place() -> None:
    module = main(
        '%0 = sdy.sharding_constraint %x <@mesh, [{"a"}]> : tensor<8xf32>\n'
        '%1 = stablehlo.tanh %0 {mhlo.sharding = "{devices=[8]<=[8]}"} : tensor<8xf32>\nreturn',
        "%x: tensor<8xf32>",
        outside=MESH,
    )
    constraint, tanh = module.main.ops
    assert constraint.name == "sdy.sharding_constraint"
    assert constraint.attributes["sharding"] == '#sdy.sharding<mesh<["a"=2, "b"=4]>, [{"a"}]>'
    assert tanh.attributes["sharding"] == "{devices=[8]<=[8]}"


def test_a_manual_computation_says_how_its_operands_are_placed() -> None:
    module = main(
        '%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"b"}, {"a"}]>] out_shardings=[<@mesh, [{}, {"a"}]>] '
        'manual_axes={"b"} (%y: tensor<2x8xf32>) {\n'
        '%1 = "stablehlo.all_gather"(%y) {all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, '
        "replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids} : (tensor<2x8xf32>) -> tensor<8x8xf32>\n"
        "sdy.return %1 : tensor<8x8xf32>\n} : (tensor<8x8xf32>) -> tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>",
        "%x: tensor<8x8xf32>",
        "tensor<8x8xf32>",
        MESH,
    )
    (manual,) = module.main.ops
    assert manual.name == "sdy.manual_computation"
    assert manual.attributes["manual_axes"] == ("b",)
    assert manual.attributes["mesh"] == Mesh((("a", 2), ("b", 4)))
    (inside,), (outside,) = manual.attributes["in_shardings"], manual.attributes["out_shardings"]
    assert isinstance(inside, Sharding) and inside.tiles == (4, 1)  # the axis "a" stays with the body
    assert inside.coordinates[:, 0].tolist() == [0, 1, 2, 3] * 2
    assert outside.tiles == (1, 1)
    gather = manual.regions[0].ops[0]
    assert (gather.attributes["channel_id"], gather.attributes["use_global_device_ids"]) == (1, True)


def test_replica_groups_along_mesh_axes() -> None:
    module = main(
        '%0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, '
        'replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "b", sub_axis_info = (1)2>]>, '
        "use_global_device_ids} : (tensor<2xf32>) -> tensor<4xf32>\nreturn",
        "%x: tensor<2xf32>",
        outside=MESH,
    )
    assert module.main.ops[0].attributes["replica_groups"].tolist() == [[0, 2], [1, 3], [4, 6], [5, 7]]
