"""The upper half of a product of integers: HLO has an opcode for it, which jaxlib's conversion does not know."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from hlo_verify.passes.chain.pair_programs import pair_of_wholes
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load import conversion
from hlo_verify.passes.load.load import load
from hlo_verify.passes.read import proto_edits
from hlo_verify.report import Verdict

DTYPES = {"u32": np.uint32, "s32": np.int32, "u8": np.uint8}
"""How numpy calls what HLO calls so."""


def module(product: str, dtype: str = "u32", *, fused: bool = False) -> str:
    body = f"""(x: {dtype}[4], y: {dtype}[4]) -> {dtype}[4] {{
  %x = {dtype}[4] parameter(0)
  %y = {dtype}[4] parameter(1)
  ROOT %m = {dtype}[4] {product}
}}
"""
    called = body.replace(product, "fusion(%x, %y), kind=kLoop, calls=%inside")
    return f"HloModule m\n\n%inside {body}\nENTRY %main {called}" if fused else f"HloModule m\n\nENTRY %main {body}"


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_it_is_read_as_the_operation_that_jax_makes(dtype: str, fused: bool) -> None:
    found = load(module("mulhi(%x, %y)", dtype, fused=fused))
    (product,) = (op for op in found.main.ops if op.name != "return")
    assert (product.name, str(product.types[0])) == ("chlo.mulhi", str(found.main.argument_types[0]))
    assert prove(*pair_of_wholes(found, load(module("mulhi(%x, %y)", dtype)))).verdict is Verdict.PROVED
    for other in ("multiply(%x, %y)", "mulhi(%x, %x)"):
        assert prove(*pair_of_wholes(found, load(module(other, dtype)))).verdict is not Verdict.PROVED


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_is_what_xla_makes_of_that_operation(dtype: str) -> None:
    argument = jax.ShapeDtypeStruct((4,), DTYPES[dtype])
    lowered = jax.jit(jax.lax.mulhi).lower(argument, argument)
    proto = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    assert b"mulhi" in proto
    assert prove(*pair_of_wholes(load(lowered.as_text()), load(proto))).verdict is Verdict.PROVED


def test_what_is_said_of_it_stays() -> None:
    found = load(module("mulhi(%x, %y), sharding={devices=[2]<=[2]}"), devices=2)
    assert "devices=[2]<=[2]" in str(found.main.ops[0].attributes)


def test_with_a_field_that_nobody_knows_it_equals_nothing() -> None:
    proto = conversion.text_to_proto(module("mulhi(%x, %y)"))

    def with_a_field(instruction: bytes) -> bytes:
        return instruction + proto_edits.field_bytes(200, b"x") if b"mulhi" in instruction else instruction

    unknown = load(proto_edits.edit_instructions(proto, with_a_field))
    assert prove(*pair_of_wholes(load(proto), unknown)).verdict is Verdict.UNKNOWN


def test_a_call_of_a_function_of_that_name_is_no_product() -> None:
    called = load(module('custom-call(%x, %y), custom_call_target="hlo_verify.mulhi"'))
    assert called.main.ops[0].name == "custom_call"
