"""Every operation with two values of each of its attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from hlo_verify.ops import RULES
from hlo_verify.passes.canonicalize.defaults import RULES as LEGACY

F = "tensor<4x4xf32>"


@dataclass(frozen=True)
class Example:
    """An operation: the types of its operands (or constants) and of its results, two values for each attribute (or one,
    where another one needs other shapes), and its regions."""

    operands: str
    results: str
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    regions: str = ""

    def text(self, name: str, changed: str = "") -> str:
        """A module with the operation, the first value for each attribute but for the changed one."""
        kinds, operands = self.results.split("; "), [each for each in self.operands.split("; ") if each]
        given = [each.rpartition(" : ")[2] for each in operands]
        numbers = "".join(f"%a{n} = stablehlo.constant {each}\n" for n, each in enumerate(operands) if " : " in each)
        values = {each: self.attributes[each][each == changed] for each in self.attributes if is_known(name, each)}
        attributes = ", ".join(f"{each} = {value}" for each, value in values.items() if value)
        taken = ", ".join(f"%a{n}: {each}" for n, each in enumerate(operands) if " : " not in each)
        used = ", ".join(f"%a{n}" for n in range(len(given)))
        made = ", ".join(f"%r#{n}" for n in range(len(kinds)))
        full = name if "." in name else f"stablehlo.{name}"
        return (
            "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
            f"func.func public @main({taken}) -> ({', '.join(kinds)}) {{\n{numbers}"
            f'%r:{len(kinds)} = "{full}"({used}) {self.regions} {{{attributes}}} : '
            f"({', '.join(given)}) -> ({', '.join(kinds)})\n"
            f"return {made} : {', '.join(kinds)}\n}}\n"
            f"func.func private @called(%x: {F}) -> {F} {{\nreturn %x : {F}\n}}\n}}\n"
        )


def _body(name: str, kind: str = "f32", count: int = 1) -> str:
    """A region that combines two scalars."""
    s = f"tensor<{kind}>"
    return (
        f'({{\n^bb0(%p: {s}, %q: {s}):\n%s = "stablehlo.{name}"(%p, %q) : ({s}, {s}) -> {s}\n'
        f'"stablehlo.return"(%s) : ({s}) -> ()\n}})'
    )


LESS = (
    "({\n^bb0(%p: tensor<f32>, %q: tensor<f32>):\n"
    '%s = "stablehlo.compare"(%p, %q) {comparison_direction = #stablehlo<comparison_direction LT>} : '
    "(tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    '"stablehlo.return"(%s) : (tensor<i1>) -> ()\n})'
)
SELECT_AND_SCATTER = f"{LESS[:-1].replace('LT', 'GE')}, {_body('add')[1:]}"


def _i64(*values: int) -> str:
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def _each(kind: str, first: str, second: str) -> tuple[str, str]:
    return f"#stablehlo<{kind} {first}>", f"#stablehlo<{kind} {second}>"


BOTH = "false", "true"
GROUPS = "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>", "dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>"
PAIRS = "dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>", "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
CHANNEL = tuple(f"#stablehlo.channel_handle<handle = {n}, type = 1>" for n in (1, 2))
OF_ONE_ARRAY = ("split_dimension", "concat_dimension", "split_count")
"""What an all_to_all of a tuple does not have."""
MHLO_CHANNEL = tuple(each.replace("#stablehlo.", "#mhlo.") for each in CHANNEL)
COMMUNICATES = {"channel_handle": CHANNEL, "replica_groups": GROUPS}
TWO_DEVICES = {**COMMUNICATES, "use_global_device_ids": ("unit",)}
"""Without the last, groups are of replicas, of which there is one."""
PRECISION = tuple(f"[#stablehlo<precision {name}>, #stablehlo<precision DEFAULT>]" for name in ("DEFAULT", "HIGHEST"))
ACCURACY = {
    "result_accuracy": tuple(
        f"#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<{name}>>" for name in ("DEFAULT", "HIGHEST")
    )
}
ALGORITHM = (
    "#stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, "
    "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, "
    "allow_imprecise_accumulation = false>"
)
WINDOW_PADDING = "dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>", "dense<[[2, 0], [0, 0]]> : tensor<2x2xi64>"
CONVOLUTION = {
    "dimension_numbers": tuple(f"#stablehlo.conv<[b, f, 0]x[{each}, 0]->[b, f, 0]>" for each in ("i, o", "o, i")),
    "feature_group_count": ("1 : i64",),
    "batch_group_count": ("1 : i64",),
    "window_strides": (_i64(1),),
    "lhs_dilation": (_i64(1),),
    "rhs_dilation": (_i64(1),),
    "window_reversal": ("array<i1: false>", "array<i1: true>"),
    "precision_config": PRECISION,
}
BATCH_NORM = {"epsilon": ("0.001 : f32", "0.01 : f32"), "feature_index": ("0 : i64", "1 : i64")}
V = "tensor<4xf32>"
GATHER = tuple(
    f"#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [{n}], start_index_map = [{m}], index_vector_dim = 1>"
    for n, m in ((0, 0), (0, 1))
)
SCATTER = tuple(
    f"#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [{n}], "
    f"scatter_dims_to_operand_dims = [{m}], index_vector_dim = 1>"
    for n, m in ((0, 0), (1, 1))
)
AT = "tensor<4x1xi32>"
DOT = tuple(f"#stablehlo.dot<lhs_contracting_dimensions = [{n}], rhs_contracting_dimensions = [0]>" for n in (1, 0))
SCAN_BODY = (
    "({\n^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>):\n"
    '%s = "stablehlo.subtract"(%p, %q) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n'
    '"mhlo.return"(%s, %s) : (tensor<4xf32>, tensor<4xf32>) -> ()\n})'
)
SYMMETRIC = "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh".split()

EXAMPLES: dict[str, Example] = {
    **{name: Example(F, F, ACCURACY) for name in SYMMETRIC},
    "all_gather": Example(F, "tensor<8x4xf32>", {"all_gather_dim": ("0 : i64",), **TWO_DEVICES}),
    "all_reduce": Example(F, F, TWO_DEVICES, _body("add")),
    "all_to_all": Example(
        F,
        F,
        {
            "split_dimension": ("0 : i64",),
            "concat_dimension": ("0 : i64",),
            "split_count": ("2 : i64",),
            **COMMUNICATES,
        },
    ),
    "collective_broadcast": Example(F, F, {**COMMUNICATES, "has_dynamic_root": ("",)}),
    "collective_permute": Example(F, F, {"channel_handle": CHANNEL, "source_target_pairs": PAIRS}),
    "reduce_scatter": Example(F, "tensor<2x4xf32>", {"scatter_dimension": ("0 : i64",), **TWO_DEVICES}, _body("add")),
    "batch_norm_inference": Example(f"{F}; {V}; {V}; {V}; {V}", F, BATCH_NORM),
    "batch_norm_training": Example(f"{F}; {V}; {V}", f"{F}; {V}; {V}", BATCH_NORM),
    "batch_norm_grad": Example(f"{F}; {V}; {V}; {V}; {F}", f"{F}; {V}; {V}", BATCH_NORM),
    "broadcast_in_dim": Example(V, F, {"broadcast_dimensions": (_i64(0), _i64(1))}),
    "broadcast": Example(V, F, {"broadcast_sizes": (_i64(4),)}),
    "cholesky": Example(F, F, {"lower": BOTH}),
    "compare": Example(
        f"{F}; {F}",
        "tensor<4x4xi1>",
        {
            "comparison_direction": _each("comparison_direction", "LT", "LE"),
            "compare_type": _each("comparison_type", "FLOAT", "TOTALORDER"),
        },
    ),
    "concatenate": Example(f"{F}; {F}", "tensor<8x4xf32>", {"dimension": ("0 : i64",)}),
    "constant": Example("", V, {"value": tuple(f"dense<[{n}.0, 0.0, 0.0, 0.0]> : {V}" for n in (1, 2))}),
    "convolution": Example(
        f"{'tensor<4x4x4xf32>'}; tensor<4x4x3xf32>",
        "tensor<4x4x4xf32>",
        {**CONVOLUTION, "padding": ("dense<[[1, 1]]> : tensor<1x2xi64>", "dense<[[2, 0]]> : tensor<1x2xi64>")},
    ),
    "custom_call": Example(
        F,
        F,
        {
            "call_target_name": ('"triton_kernel_call"', '"tpu_custom_call"'),
            "result_tilings": ("",),
            "backend_config": ('"a"', '"b"'),
            "has_side_effect": BOTH,
            "api_version": ("1 : i32", "2 : i32"),
            "called_computations": ("[]", "[@called]"),
            "operand_layouts": ("[dense<[1, 0]> : tensor<2xindex>]", "[dense<[0, 1]> : tensor<2xindex>]"),
            "result_layouts": ("[dense<[1, 0]> : tensor<2xindex>]", "[dense<[0, 1]> : tensor<2xindex>]"),
            "output_operand_aliases": (
                "[]",
                "[#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, "
                "operand_tuple_indices = []>]",
            ),
        },
    ),
    "dot_general": Example(
        f"{F}; {F}",
        F,
        {"dot_dimension_numbers": DOT, "precision_config": ("", PRECISION[1]), "algorithm": ("", ALGORITHM)},
    ),
    "dot": Example(f"{F}; {F}", F, {"precision_config": PRECISION}),
    "dynamic_broadcast_in_dim": Example(
        f"{V}; dense<[4, 4]> : tensor<2xi32>",
        F,
        {
            "broadcast_dimensions": (_i64(0), _i64(1)),
            "known_expanding_dimensions": (_i64(),),
            "known_nonexpanding_dimensions": (_i64(), _i64(0)),
        },
    ),
    "dynamic_conv": Example(
        "tensor<4x4x4xf32>; tensor<4x4x3xf32>; dense<[[1, 1]]> : tensor<1x2xi64>", "tensor<4x4x4xf32>", CONVOLUTION
    ),
    "dynamic_gather": Example(
        f"{F}; {AT}; dense<[1, 4]> : tensor<2xi32>", F, {"dimension_numbers": GATHER, "indices_are_sorted": BOTH}
    ),
    "dynamic_iota": Example("dense<[4, 4]> : tensor<2xi32>", F, {"iota_dimension": ("0 : i64", "1 : i64")}),
    "dynamic_slice": Example(f"{F}; tensor<i32>; tensor<i32>", F, {"slice_sizes": (_i64(4, 4),)}),
    "fft": Example(
        "tensor<4x4xcomplex<f32>>",
        "tensor<4x4xcomplex<f32>>",
        {"fft_type": _each("fft_type", "FFT", "IFFT"), "fft_length": (_i64(4), _i64(4, 4))},
    ),
    "gather": Example(
        f"{F}; {AT}", F, {"dimension_numbers": GATHER, "slice_sizes": (_i64(1, 4),), "indices_are_sorted": BOTH}
    ),
    "get_dimension_size": Example("tensor<4x3xf32>", "tensor<i32>", {"dimension": ("0 : i64", "1 : i64")}),
    "iota": Example("", F, {"iota_dimension": ("0 : i64", "1 : i64")}),
    "map": Example(f"{F}; {F}", F, {"dimensions": (_i64(0, 1),)}, _body("add")),
    "pad": Example(
        f"{F}; tensor<f32>",
        "tensor<5x5xf32>",
        {
            "edge_padding_low": (_i64(1, 1),),
            "edge_padding_high": (_i64(0, 0),),
            "interior_padding": (_i64(0, 0),),
        },
    ),
    "reduce": Example(f"{F}; tensor<f32>", V, {"dimensions": (_i64(0), _i64(1))}, _body("add")),
    "reduce_precision": Example(
        F, F, {"exponent_bits": ("5 : i32", "8 : i32"), "mantissa_bits": ("10 : i32", "7 : i32")}
    ),
    "reduce_window": Example(
        f"{F}; tensor<f32>",
        F,
        {
            "window_dimensions": (_i64(3, 1),),
            "window_strides": (_i64(1, 1),),
            "base_dilations": (_i64(1, 1),),
            "window_dilations": (_i64(1, 1),),
            "padding": WINDOW_PADDING,
        },
        _body("add"),
    ),
    "reverse": Example(F, F, {"dimensions": (_i64(0), _i64(1))}),
    "rng_bit_generator": Example(
        "tensor<2xui64>",
        "tensor<2xui64>; tensor<4xui32>",
        {"rng_algorithm": _each("rng_algorithm", "THREE_FRY", "PHILOX")},
    ),
    "scatter": Example(
        f"{F}; {AT}; {F}",
        F,
        {"scatter_dimension_numbers": SCATTER, "indices_are_sorted": BOTH, "unique_indices": BOTH},
        _body("add"),
    ),
    "select_and_scatter": Example(
        f"{F}; tensor<2x4xf32>; dense<0.0> : tensor<f32>",
        F,
        {
            "window_dimensions": (_i64(2, 1),),
            "window_strides": (_i64(2, 1),),
            "padding": tuple(f"dense<[[{n}, {1 - n}], [0, 0]]> : tensor<2x2xi64>" for n in (0, 1)),
        },
        SELECT_AND_SCATTER,
    ),
    "slice": Example(
        F,
        "tensor<2x2xf32>",
        {
            "start_indices": (_i64(0, 0),),
            "limit_indices": (_i64(2, 2),),
            "strides": (_i64(1, 1),),
        },
    ),
    "sort": Example(F, F, {"dimension": ("0 : i64", "1 : i64"), "is_stable": BOTH}, LESS),
    "transpose": Example(F, F, {"permutation": (_i64(1, 0), _i64(0, 1))}),
    "triangular_solve": Example(
        f"{F}; {F}",
        F,
        {
            "left_side": ("true", "false"),
            "lower": BOTH,
            "unit_diagonal": BOTH,
            "transpose_a": _each("transpose", "NO_TRANSPOSE", "TRANSPOSE"),
        },
    ),
    "chlo.top_k": Example(F, "tensor<4x2xf32>; tensor<4x2xi32>", {"k": ("2 : i64",), "is_stable": BOTH}),
    "mhlo.all_to_all": Example(
        f"{F}; {F}",
        f"{F}; {F}",
        {"replica_groups": GROUPS, "channel_handle": MHLO_CHANNEL, **dict.fromkeys(OF_ONE_ARRAY, ("",))},
    ),
    "mhlo.scan": Example(
        f"{F}; {V}",
        f"{F}; {V}",
        {
            "dimension": ("0 : i64", "1 : i64"),
            "is_reverse": BOTH,
            "is_associative": BOTH,
            "scan_dim_size": ("4 : i64",),
            "operandSegmentSizes": ("array<i32: 1, 1>",),
            "resultSegmentSizes": ("array<i32: 1, 1>",),
        },
        SCAN_BODY,
    ),
    "mhlo.tan": Example(
        F, F, {"result_accuracy": tuple(each.replace("#stablehlo.", "#mhlo.") for each in ACCURACY["result_accuracy"])}
    ),
    "mhlo.topk": Example(
        F, "tensor<4x2xf32>; tensor<4x2xi32>", {"k": ("2 : i64",), "largest": ("true", "false"), "is_stable": BOTH}
    ),
}
"""By operation. What is left with one value would need other shapes, or operands, which say it too."""

SAME = {
    "sort is_stable": "of a single operand equal elements are one as good as the other",
    "top_k is_stable": "equal elements are taken in order, whether that is demanded or not",
    "topk is_stable": "equal elements are taken in order, whether that is demanded or not",
    "algorithm": "how products are rounded",
    "channel_handle": "a number by which the devices' instructions find each other; that there is one counts",
    "known_nonexpanding_dimensions": "shapes say it, as they are static",
    "precision_config": "how far products may be rounded",
    "result_accuracy": "how far a result may be rounded",
}
"""Attributes that may be otherwise, and why that is the same function."""

EXPANDED = ("batch_norm_inference", "batch_norm_training", "batch_norm_grad")
"""What is written as other operations when it is read."""

NEVER_EQUAL = {"infeed", "outfeed", "recv", "send", "rng"}
"""Each execution of these is another: with equal attributes too."""


def _registered(dialect: str) -> dict[str, set[str]]:
    """The attributes of a dialect's operations, as the classes say that jaxlib has of them."""
    module = import_module(f"jaxlib.mlir.dialects._{dialect}_ops_gen")
    found: dict[str, set[str]] = {}
    for each in ast.parse(Path(str(module.__file__)).read_text()).body:
        if isinstance(each, ast.ClassDef):
            named = (n.value for n in each.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant))
            name = next((str(value.value) for value in named), "")
            found.setdefault(name, set()).update(_looked_up(each))
    return found


def _looked_up(class_: ast.ClassDef) -> Iterator[str]:
    """The keys by which a class looks into its operation's attributes."""
    for node in ast.walk(class_):
        is_key = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
        if is_key and ast.unparse(node.value).endswith("attributes"):
            yield str(node.slice.value)


def _understood() -> Iterator[tuple[str, set[str]]]:
    """The operations with attributes that a rule knows, or that are written as others that one knows."""
    for dialect in ("stablehlo", "mhlo", "chlo"):
        for name, attributes in _registered(dialect).items():
            short = name.removeprefix("stablehlo.")
            if short in RULES or short in LEGACY or short in EXPANDED:
                yield short, attributes - {"operandSegmentSizes", "resultSegmentSizes"}


UNDERSTOOD = dict(_understood())
EXAMPLES = {name: example for name, example in EXAMPLES.items() if name in UNDERSTOOD}  # another jaxlib has others


def is_known(name: str, attribute: str) -> bool:
    """Whether the jaxlib that is installed has that attribute."""
    return attribute in UNDERSTOOD[name] or attribute.endswith("SegmentSizes")
