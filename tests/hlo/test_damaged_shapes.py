"""What stands in the place of a shape in a damaged module is an input error, wherever it is asked for."""

from __future__ import annotations

import pytest

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.module import Computation, HloModule, Instruction


@pytest.mark.parametrize("text", ["f32[]add(%a, %b)", "f32[8", "(f32[8]", "b(f32[8]"])
def test_what_is_no_shape_is_an_input_error(text: str) -> None:
    instruction = Instruction("x", text, "add", "%a, %b", "", 7, 0, Computation("c", HloModule("m", {})))
    with pytest.raises(InputError, match="line 7: x has no shape"):
        _ = instruction.shape
