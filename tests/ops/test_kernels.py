"""Kernels that nobody said anything of are functions of their operands and of nothing else, and reports say so."""

from __future__ import annotations

import re

import pytest

import hlo_verify
from hlo_verify import Verdict, custom_calls
from hlo_verify.ops.values import Value, function_of, functions_of, positions
from hlo_verify.program.ir import TensorType
from hlo_verify.terms import algebra
from hlo_verify.terms.term import tensor

MOSAIC = '{\\"custom_call_config\\": {\\"body\\": \\"QUJD\\"MORE}}'


KIND = "tensor<8x6xf32>"


def program(body: str, result: str = "%y", devices: int = 4) -> str:
    """A module that makes its result of `%x`; every device has all of both."""
    return (
        f"module @m attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
        f'func.func public @main(%x: {KIND} {{mhlo.sharding = "{{replicated}}"}}) -> '
        f'({KIND} {{mhlo.sharding = "{{replicated}}"}}) {{\n'
        f"{body}\nreturn {result} : {KIND}\n}}\n}}\n"
    )


def module(call: str, before: str = "", devices: int = 4) -> str:
    """A call on `%x`."""
    return program(f"{before}\n%y = stablehlo.custom_call {call} : ({KIND}) -> {KIND}", devices=devices)


def pallas(more: str = "", operand: str = "%x", attributes: str = "") -> str:
    config = MOSAIC.replace("MORE", more.replace('"', '\\"'))
    return f'@tpu_custom_call({operand}) {{backend_config = "{config}"{attributes}}}'


def report(logical: str, partitioned: str) -> hlo_verify.Report:
    return hlo_verify.verify(logical, partitioned, refute=False)


NEGATED = "%n = stablehlo.negate %x : tensor<8x6xf32>"


def test_a_kernel_is_a_function_of_its_operands() -> None:
    found = report(module(pallas()), module(pallas()))
    assert found.verdict is Verdict.PROVED
    assert "Pallas TPU kernels (custom_call to tpu_custom_call) are functions of their operands" in found.assumptions


@pytest.mark.parametrize(
    ("logical", "partitioned"),
    [
        (module(pallas()), module(pallas(operand="%n"), NEGATED)),
        (module(pallas()), module(pallas(', "vmem_limit_bytes": 7'))),
        (module(pallas()), module(pallas().replace("QUJD", "QUJE"))),
        (module(pallas()), module(pallas().replace("tpu_custom_call", "triton_kernel_call"))),
        (module(pallas(', "has_communication": true')),) * 2,
        (module(pallas(', "collective_id": 0')),) * 2,
        (module(pallas(attributes=", has_side_effect = true")),) * 2,
        (module("@my.kernel(%x)"),) * 2,
    ],
    ids=["operand", "options", "body", "target", "communicates", "collective", "side effect", "unknown target"],
)
def test_and_of_nothing_else(logical: str, partitioned: str) -> None:
    assert report(logical, partitioned).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("target", ["__gpu$xla.gpu.triton", "triton_kernel_call", "AwsNeuronCustomNativeKernel"])
def test_other_compilers_of_kernels(target: str) -> None:
    text = module(f'@"{target}"(%x)')
    found = report(text, text)
    assert found.verdict is Verdict.PROVED
    assert any(target in said for said in found.assumptions)


def test_how_operands_lie_in_memory_is_a_part_of_the_call() -> None:
    def laid_out(operand: str, result: str = "1, 0") -> str:
        layouts = (
            f", operand_layouts = [dense<[{operand}]> : tensor<2xindex>], "
            f"result_layouts = [dense<[{result}]> : tensor<2xindex>]"
        )
        return module(pallas(attributes=layouts))

    assert report(module(pallas()), laid_out("1, 0")).verdict is Verdict.PROVED
    assert report(laid_out("0, 1"), laid_out("0, 1")).verdict is Verdict.PROVED
    assert report(laid_out("1, 0"), laid_out("0, 1")).verdict is Verdict.UNKNOWN
    assert report(laid_out("1, 0"), laid_out("1, 0", "0, 1")).verdict is Verdict.UNKNOWN


def test_how_many_results_a_call_has_is_a_part_of_it() -> None:
    kind = "tensor<8x6xf32>"
    two = module(pallas()).replace(
        f"%y = stablehlo.custom_call {pallas()} : ({kind}) -> {kind}",
        f"%y, %z = stablehlo.custom_call {pallas()} : ({kind}) -> ({kind}, {kind})",
    )
    assert report(two, two).verdict is Verdict.PROVED
    assert report(two, module(pallas())).verdict is Verdict.UNKNOWN


def test_memory_that_nobody_wrote_to() -> None:
    def allocated(scale: str) -> str:
        buffer = "%b = stablehlo.custom_call @AllocateBuffer() : () -> tensor<8x6xf32>"
        before = f"{buffer}\n%s = stablehlo.add %b, %x : tensor<8x6xf32>\n{NEGATED}"
        return module(f"@tpu_custom_call({scale})", before, devices=1)

    two = module(
        "@tpu_custom_call(%s)",
        "%b = stablehlo.custom_call @AllocateBuffer() : () -> tensor<8x6xf32>\n"
        "%c = stablehlo.custom_call @AllocateBuffer() : () -> tensor<8x6xf32>\n"
        "%d = stablehlo.subtract %b, %c : tensor<8x6xf32>\n%s = stablehlo.add %d, %x : tensor<8x6xf32>",
    )
    assert report(module("@tpu_custom_call(%x)"), two).verdict is Verdict.UNKNOWN
    found = report(allocated("%s"), allocated("%s"))
    assert found.verdict is Verdict.PROVED
    assert any("memory that nobody wrote to" in said for said in found.assumptions)
    assert report(allocated("%s"), allocated("%n")).verdict is Verdict.UNKNOWN


def test_who_knows_more_says_so() -> None:
    hlo_verify.register_custom_call("tpu_custom_call", lambda x: 2 * x)
    try:
        double = "%y = stablehlo.add %x, %x : tensor<8x6xf32>"
        call = f"%y = stablehlo.custom_call {pallas()} : (tensor<8x6xf32>) -> tensor<8x6xf32>"
        found = report(module(pallas()).replace(call, double), module(pallas()))
        assert found.verdict is Verdict.PROVED
        assert not any("Pallas" in said for said in found.assumptions)
    finally:
        custom_calls.forget_custom_call("tpu_custom_call")
    assert report(module(pallas()), module(pallas())).verdict is Verdict.PROVED


def test_halves_of_wide_numbers_are_put_together_element_by_element() -> None:
    def combined(size: int, order: str = "%x, %x") -> str:
        kind = f"tensor<{size}xui32>"
        wide = kind.replace("32", "64")
        place = ' {mhlo.sharding = "{devices=[4]<=[4]}"}' if size == 8 else ""
        return (
            "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
            f"func.func public @main(%x: {kind}{place}) -> ({wide}{place}) {{\n%n = stablehlo.not %x : {kind}\n"
            f"%y = stablehlo.custom_call @X64Combine({order}) : ({kind}, {kind}) -> {wide}\n"
            f"return %y : {wide}\n}}\n}}\n"
        )

    assert report(combined(8), combined(2)).verdict is Verdict.PROVED
    assert report(combined(8, "%x, %n"), combined(2, "%n, %x")).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("triangle", ["Lower", "Upper"])
def test_triangular_matrices_are_inverted_one_by_one(triangle: str) -> None:
    """What XLA for TPUs makes of a triangular solve: an inverse of each matrix of a batch, and nothing across them."""

    def inverted(batch: int, size: int, split: str, order: str = "0, 1, 2") -> str:
        kind = f"tensor<{batch}x{size}x{size}xf32>"
        place = f' {{mhlo.sharding = "{split}"}}' if batch * size == 64 else ""
        return (
            "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
            f"func.func public @main(%x: {kind}{place}) -> ({kind}{place}) {{\n"
            f"%t = stablehlo.transpose %x, dims = [{order}] : ({kind}) -> {kind}\n"
            f"%y = stablehlo.custom_call @InvertDiagBlocks{triangle}Triangular(%t) : ({kind}) -> {kind}\n"
            f"return %y : {kind}\n}}\n}}\n"
        )

    split = "{devices=[4,1,1]<=[4]}"
    assert report(inverted(8, 8, split), inverted(2, 8, split)).verdict is Verdict.PROVED
    assert report(inverted(8, 8, split), inverted(2, 8, split, "0, 2, 1")).verdict is Verdict.UNKNOWN
    across = report(inverted(8, 8, "{devices=[1,4,1]<=[4]}"), inverted(8, 2, "").replace("8x2x2", "8x2x8"))
    assert across.verdict is Verdict.UNKNOWN


OF_X = """
%zero = stablehlo.constant dense<0.0> : tensor<8x6xf32>
%n = stablehlo.negate %x : tensor<8x6xf32>
%inside = stablehlo.compare GT, %x, %zero : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xi1>
"""


def computing(*lines: str) -> str:
    """A module whose devices compute `%r` by some lines, in which `kernel(%v)` is what a kernel makes of a value."""
    call = f"stablehlo.custom_call {pallas(operand='OPERAND')} : (TYPE) -> TYPE"
    body = re.sub(r"kernel\((%\w+)\)", lambda found: call.replace("OPERAND", found[1]), "\n".join(lines))
    return program(OF_X + body.replace("TYPE", KIND).replace("TRUTHS", "tensor<8x6xi1>"), "%r")


@pytest.mark.parametrize(
    ("both", "alone"),
    [
        (["%y = kernel(%x)"], ["%k = kernel(%zero)"]),
        (["%y = kernel(%x)"], ["%k = kernel(%n)"]),
        (["%y = kernel(%x)"], ["%k = stablehlo.reverse %y, dims = [0] : TYPE"]),
        (["%k = kernel(%n)", "%y = stablehlo.select %inside, %k, %x : TRUTHS, TYPE"], []),
        (["%k = kernel(%n)", "%y = kernel(%k)"], []),
    ],
    ids=["of zeros", "of other values", "at other places", "selected", "inside of another"],
)
def test_zero_times_what_a_kernel_gives_is_not_zero(both: list[str], alone: list[str]) -> None:
    """It may be no number: of padding, of what the logical module does not ask it for, or does not use."""
    masked = ["%0 = stablehlo.multiply %k, %zero : TYPE", "%r = stablehlo.add %y, %0 : TYPE"]
    logical = computing(*both, "%r = stablehlo.add %y, %zero : TYPE")
    assert report(logical, logical).verdict is Verdict.PROVED
    assert report(logical, computing(*both, *alone, *masked)).verdict is Verdict.UNKNOWN


def two_results(first: str, second: str) -> str:
    call = pallas().replace("(%x)", "(%x, %x)")
    made = f"%p:2 = stablehlo.custom_call {call} : ({KIND}, {KIND}) -> ({KIND}, {KIND})"
    return program(f"{made}\n%y = stablehlo.subtract {first}, {second} : {KIND}")


def test_results_of_a_call_are_told_apart() -> None:
    one, other = two_results("%p#0", "%p#1"), two_results("%p#1", "%p#0")
    assert report(one, one).verdict is Verdict.PROVED
    assert report(one, other).verdict is Verdict.UNKNOWN


def test_several_functions_of_the_same_operands_are_each_what_it_is_alone() -> None:
    sizes = [(2, 8, 6), (2, 6, 4)]
    operands = []
    for n, size in enumerate(sizes):
        source = tensor("argument", f"x{n}", "f32", size)
        operands.append((Value(TensorType(size, "f32"), algebra.read(source, positions(size))), (1, 2)))
    kinds = [((2, 8, 4), "f32", (1, 2)), ((2, 8), "f32", (1,)), ((8, 2, 4), "f32", (0, 2)), ((2, 8, 4), "i32", (1, 2))]
    results = [(n, TensorType(shape, dtype), own) for n, (shape, dtype, own) in enumerate(kinds)]
    together = functions_of("custom_call", operands, results)
    alone = [function_of("custom_call", attributes, operands, *said) for attributes, *said in results]
    assert together == alone
    assert len(set(together)) == len(results)
