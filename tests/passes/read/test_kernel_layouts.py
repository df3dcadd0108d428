"""A kernel on one matrix laid out in two ways is called in two ways."""

from __future__ import annotations

import pytest

from hlo_verify.passes.chain.pair_programs import pair_of_wholes
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.same_program import Programs
from hlo_verify.report import Verdict


def program(operand: str, result: str = "{1,0}", more: str = "", target: str = "triton_kernel_call") -> str:
    return f"""HloModule m

ENTRY %main (x: f32[4,4], y: f32[3]) -> f32[4,4] {{
  %x = f32[4,4]{{1,0}} parameter(0)
  %y = f32[3]{{0}} parameter(1)
  %a = f32[4,4]{operand} copy(%x)
  %b = f32[4,4]{result} custom-call(%a, %y), custom_call_target="{target}"{more}
  ROOT %c = f32[4,4]{{1,0}} copy(%b)
}}
"""


ROWS = program("{1,0}")


@pytest.mark.parametrize(
    "other",
    [
        program("{0,1}"),
        program("{1,0}", "{0,1}"),
        program("{0,1}", "{0,1}"),
        program("{1,0:T(8,128)}"),
        program("{0,1:T(8,128)}"),
        program("{1,0}", "{1,0:T(2,1)}"),
        program("{0,1}", more=", operand_layout_constraints={f32[4,4]{0,1}, f32[3]{0}}"),
    ],
)
def test_other_layouts(other: str) -> None:
    rows, columns = load(ROWS), load(other)
    programs = Programs()
    assert programs.of(rows) != programs.of(columns)
    assert prove(*pair_of_wholes(rows, columns)).verdict is Verdict.UNKNOWN
    assert prove(*pair_of_wholes(columns, load(other))).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    "same",
    [
        (ROWS, program("{1,0}", more=", operand_layout_constraints={f32[4,4]{1,0}, f32[3]{0}}")),
        (program("{0,1}"), program("{0,1}", more=", operand_layout_constraints={f32[4,4]{0,1}, f32[3]{0}}")),
    ],
)
def test_a_layout_that_is_demanded_is_the_one_that_there_is(same: tuple[str, str]) -> None:
    assert prove(*pair_of_wholes(*map(load, same))).verdict is Verdict.PROVED


def test_of_several_results() -> None:
    def two(layout: str) -> str:
        text = ROWS.replace("%b = f32[4,4]{1,0} custom", f"%t = (f32[3]{{0}}, f32[4,4]{layout}) custom")
        return text.replace("  ROOT", f"  %b = f32[4,4]{layout} get-tuple-element(%t), index=1\n  ROOT")

    rows, columns = load(two("{1,0}")), load(two("{0,1}"))
    assert prove(*pair_of_wholes(rows, load(two("{1,0}")))).verdict is Verdict.PROVED
    assert prove(*pair_of_wholes(rows, columns)).verdict is Verdict.UNKNOWN


def test_other_tiles() -> None:
    found = [load(program(layout)) for layout in ("{1,0:T(8,128)}", "{1,0:T(4,128)}", "{1,0:T(8,128)S(1)}")]
    assert prove(*pair_of_wholes(found[0], found[1])).verdict is Verdict.UNKNOWN
    assert prove(*pair_of_wholes(found[0], load(program("{1,0:T(8,128)}")))).verdict is Verdict.PROVED
