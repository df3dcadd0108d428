"""Constants that stand apart from a module's text are known by what they hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hlo_verify import api, custom_calls
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Module
from hlo_verify.report import Verdict

ONE_TO_FOUR = "0x040000000000803F000000400000404000008040"
ONE_TO_EIGHT = "0x040000000000803F000000400000404000000041"


def program(body: str, kind: str, blobs: str) -> str:
    return f"""module {{
  func.func @main(%x: tensor<4x{kind}>) -> tensor<4x{kind}> {{
    {body}
  }}
}}
{{-#
  dialect_resources: {{ builtin: {{ {blobs} }} }}
#-}}
"""


def constant(digits: str, kind: str = "f32", name: str = "blob") -> str:
    body = f"""%c = stablehlo.constant dense_resource<{name}> : tensor<4x{kind}>
    return %c : tensor<4x{kind}>"""
    return program(body, kind, f'{name}: "{digits}"')


def call(digits: str, name: str = "blob") -> str:
    body = f"""%y = stablehlo.custom_call @kernel(%x) {{weights = dense_resource<{name}> : tensor<4xf32>,
      nested = {{more = [dense_resource<{name}> : tensor<4xf32>]}}}} : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>"""
    return program(body, "f32", f'{name}: "{digits}"')


@pytest.fixture
def kernel() -> Iterator[None]:
    custom_calls.register_custom_call("kernel")
    yield
    custom_calls.forget_custom_call("kernel")


@pytest.mark.parametrize(
    ("kind", "digits", "elements"),
    [
        ("f32", ONE_TO_FOUR, [1, 2, 3, 4]),
        ("bf16", "0x04000000803F004040408040", [1, 2, 3, 4]),
        ("i1", "0x0400000001000100", [True, False, True, False]),
        ("ui8", "0x04000000010203FF", [1, 2, 3, 255]),
        ("complex<f32>", "0x04000000" + "0000803F00000040" * 4, [1 + 2j] * 4),
    ],
)
@pytest.mark.parametrize("form", ["text", "bytecode"])
def test_elements_of_a_blob(kind: str, digits: str, elements: list[complex], form: str) -> None:
    module = load(constant(digits, kind))
    if form == "bytecode":
        module = load(module.bytecode())
    value = module.main.ops[0].attributes["value"]
    assert np.array_equal(value.astype(complex), np.array(elements, complex))


@pytest.mark.parametrize("make", [constant, call])
@pytest.mark.usefixtures("kernel")
def test_a_blob_is_known_by_what_it_holds(make: type[str]) -> None:
    given = make(ONE_TO_FOUR)
    assert _verdict(given, make(ONE_TO_FOUR, name="other")) is Verdict.PROVED
    assert _verdict(given, make(ONE_TO_EIGHT)) is not Verdict.PROVED
    assert _verdict(load(given).bytecode(), load(make(ONE_TO_EIGHT)).bytecode()) is not Verdict.PROVED


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (constant(ONE_TO_FOUR).replace("blob:", "else:"), "HV405"),  # the module leaves it out
        (constant(ONE_TO_FOUR[:-8]), "HV404"),
        (constant("0x0400000002000100", "i1"), "HV404"),
        (constant("0x0400000001020304", "i4"), "HV406"),
    ],
)
def test_blobs_without_a_value_are_input_errors(text: str, code: str) -> None:
    with pytest.raises(InputError) as error:
        load(text)
    assert error.value.code == code


def _verdict(logical: str | bytes | Module, partitioned: str | bytes | Module) -> Verdict:
    return api.verify(logical, partitioned, devices=1).verdict
