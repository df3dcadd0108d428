"""What the conversion of HLO to StableHLO forgets: custom calls are told apart by it, and no other claim ignores it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hlo_verify import api, custom_calls
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jaxlib_hlo import hlo_text_to_proto
from hlo_verify.passes.load.load import load
from hlo_verify.passes.read import proto_edits
from hlo_verify.report import Verdict
from tools.fields.examples import EXAMPLES

PLAIN = 'custom-call(%x, %w), custom_call_target="kernel"'
NEW_FIELD = 200
"""A field of HloInstructionProto that no version of jaxlib has."""


@pytest.fixture(autouse=True)
def _kernel() -> Iterator[None]:
    custom_calls.register_custom_call("kernel")
    yield
    custom_calls.forget_custom_call("kernel")


def program(operation: str) -> str:
    return f"""HloModule m

ENTRY %main (x: f32[2,8,8,4], w: f32[3,3,4,4]) -> f32[2,8,8,4] {{
  %x = f32[2,8,8,4] parameter(0)
  %w = f32[3,3,4,4] parameter(1)
  ROOT %y = f32[2,8,8,4] {operation}
}}
"""


def verdict(logical: str | bytes, partitioned: str | bytes) -> Verdict:
    return api.verify(logical, partitioned, devices=1).verdict


@pytest.mark.parametrize(
    "said",
    [
        "window={size=3x3 pad=1_1x1_1}",
        "window={size=3x3 pad=2_0x1_1}",
        "dim_labels=b01f_01io->b01f",
        "dim_labels=b10f_01io->b01f",
        "feature_group_count=2",
        "batch_group_count=2",
        "padding_type=PADDING_VALID",
        "operand_precision={high,default}",
        'frontend_attributes={mode="fast"}',
        'backend_config="fast"',
        "api_version=API_VERSION_TYPED_FFI",
    ],
)
def test_calls_that_differ_in_a_field_are_told_apart(said: str) -> None:
    other = program(f"{PLAIN}, {said}")
    assert verdict(program(PLAIN), other) is Verdict.UNKNOWN
    assert verdict(other, hlo_text_to_proto(other)) is Verdict.PROVED


@pytest.mark.parametrize(
    "said",
    [
        "feature_group_count=1, batch_group_count=1",
        "operand_precision={default,default}",
        "api_version=API_VERSION_ORIGINAL",
        'frontend_attributes={_xla_compute_type="host"}',
        'frontend_attributes={xla.sdy.sharding_per_value="#sdy.sharding_per_value<[]>"}',
        'metadata={op_name="other"}',
    ],
)
def test_defaults_and_hints_tell_nothing_apart(said: str) -> None:
    assert verdict(program(PLAIN), program(f"{PLAIN}, {said}")) is Verdict.PROVED


def test_a_call_of_stablehlo_is_the_same_in_hlo() -> None:
    text = """module { func.func @main(%x: tensor<2x8x8x4xf32>, %w: tensor<3x3x4x4xf32>) -> tensor<2x8x8x4xf32> {
      %y = stablehlo.custom_call @kernel(%x, %w) : (tensor<2x8x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<2x8x8x4xf32>
      return %y : tensor<2x8x8x4xf32>
    } }
    """
    assert verdict(text, program(PLAIN)) is Verdict.PROVED
    assert verdict(text, program(f"{PLAIN}, feature_group_count=4")) is Verdict.UNKNOWN


def with_field(text: str, number: int, value: int) -> bytes:
    """The module with one more field in its last instruction."""
    added = proto_edits.varint(number << 3) + proto_edits.varint(value)

    def edit(instruction: bytes) -> bytes:
        return (
            instruction + added
            if any(raw[2:] == b"y" for *_, raw in proto_edits.fields_of(instruction))
            else instruction
        )

    return proto_edits.edit_instructions(hlo_text_to_proto(text), edit)


CONVOLUTION = "convolution(%x, %w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"


@pytest.mark.parametrize("operation", [CONVOLUTION, "add(%x, %x)", "copy(%x)", PLAIN])
def test_a_field_that_nobody_knows_is_not_overlooked(operation: str) -> None:
    text = program(operation)
    assert verdict(text, hlo_text_to_proto(text)) is Verdict.PROVED
    changed = with_field(text, NEW_FIELD, 1)
    assert verdict(text, changed) is Verdict.UNKNOWN
    if operation is not PLAIN:  # what it computes is not known, so that two of them need not be equal
        assert verdict(changed, changed) is Verdict.UNKNOWN


def test_what_an_instruction_cannot_carry_is_an_input_error() -> None:
    text = """HloModule m

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4] parameter(0)
  %t = (f32[4], f32[4]) tuple(%x, %x)
  ROOT %y = f32[4] get-tuple-element(%t), index=0
}
"""
    with pytest.raises(InputError, match="get-tuple-element has field 200 of HloInstructionProto"):
        api.verify(text, with_field(text, NEW_FIELD, 1), devices=1)


def test_a_kind_of_convolution_is_not_understood() -> None:
    assert verdict(program(CONVOLUTION), with_field(program(CONVOLUTION), 97, 2)) is Verdict.UNKNOWN


@pytest.mark.parametrize("opcode", ["reduce-window", "select-and-scatter"])
@pytest.mark.parametrize("said", ["rhs_reversal=1x0", "rhs_dilate=2x1", "lhs_dilate=1x2", "rhs_reversal=0x1"])
def test_windows_that_stablehlo_has_no_words_for(opcode: str, said: str) -> None:
    plain = EXAMPLES[opcode].text.replace("%c = f32[] parameter(2)", "%c = f32[] constant(0)")
    plain = plain.replace("direction=GT", "direction=GE")
    other = plain.replace("window={", f"window={{{said} ")
    assert verdict(plain, hlo_text_to_proto(plain)) is Verdict.PROVED
    assert other != plain
    try:
        assert verdict(plain, other) is not Verdict.PROVED
    except InputError:
        assert "dilate" in said, "its result has another shape"


def test_attributes_of_stablehlo_and_of_mhlo_both_count() -> None:
    text = """module { func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = stablehlo.custom_call @kernel(%x) {backend_config = "fast", mhlo.backend_config = {mode = 1}}
        : (tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    } }
    """
    assert verdict(text, text) is Verdict.PROVED
    assert verdict(text, text.replace("fast", "slow")) is Verdict.UNKNOWN
    assert verdict(text, text.replace("mode = 1", "mode = 2")) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    "operation",
    [
        "reduce(), dimensions={3}, to_apply=sum",
        "all-reduce(), replica_groups={}, to_apply=sum",
        "sort(), dimensions={0}, to_apply=sum",
        "concatenate(), dimensions={0}",
    ],
)
def test_an_operation_without_operands_is_damaged(operation: str) -> None:
    """What checks its types in jaxlib looks at operands that are not there, which may end the process."""
    text = f"""HloModule m, num_partitions=2

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY main {{
  p = f32[4] parameter(0)
  ROOT r = f32[4] {operation}
}}
"""
    with pytest.raises(InputError, match=f"an instruction {operation.partition('(')[0]} has no operands"):
        load(text)
