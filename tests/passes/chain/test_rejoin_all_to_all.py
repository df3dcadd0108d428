"""What comes of an all-to-all that was taken apart is what was before, on every device; and of nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.evaluate import dense, evaluate
from hlo_verify.evaluate.blocks import of_devices
from hlo_verify.passes.chain.rejoin_all_to_all import rejoined
from hlo_verify.passes.load.load import load

GROUPS = "channel_id=3, replica_groups={{0,2},{3,1}}"


def program(first: str = "[0:2]", second: str = "[2:4]", results: tuple[int, int] = (0, 1), dimension: int = 1) -> str:
    shape = "f32[3,4]" if dimension == 1 else "f32[6,2]"
    return f"""HloModule m, num_partitions=4

ENTRY %main (x: f32[3,4]) -> {shape} {{
  %x = f32[3,4] parameter(0)
  %a = f32[3,2] slice(%x), slice={{[0:3], {first}}}
  %b = f32[3,2] slice(%x), slice={{[0:3], {second}}}
  %t = (f32[3,2], f32[3,2]) all-to-all(%a, %b), {GROUPS}
  %c = f32[3,2] get-tuple-element(%t), index={results[0]}
  %d = f32[3,2] get-tuple-element(%t), index={results[1]}
  ROOT %y = {shape} concatenate(%c, %d), dimensions={{{dimension}}}
}}
"""


def converted(text: str, back: str = "f32") -> str:
    """With slices that are of another type while they are under way."""
    text = text.replace("%t = (f32[3,2], f32[3,2]) all-to-all(%a, %b)", "%t = (T[3,2], T[3,2]) all-to-all(%e, %f)")
    text = text.replace("  %t =", "  %e = T[3,2] convert(%a)\n  %f = T[3,2] convert(%b)\n  %t =")
    for name, other in (("c", "g"), ("d", "h")):
        text = text.replace(f"%{name} = f32[3,2] get", f"%{other} = T[3,2] get")
        text = text.replace("  ROOT", f"  %{name} = {back}[3,2] convert(%{other})\n  ROOT")
    return text.replace("f32[3,4] {", f"{back}[3,4] {{").replace("ROOT %y = f32", f"ROOT %y = {back}")


@pytest.mark.parametrize(
    "text",
    [
        program(),
        converted(program()).replace("T[", "f64["),
        converted(program(), "f64").replace("T[", "f64["),
    ],
    ids=["as it is", "there and back", "of another type in the end"],
)
def test_on_every_device(text: str) -> None:
    module = load(text)
    whole = rejoined(module)
    assert any(op.name == "all_to_all" for op in whole.main.ops)
    shards = np.arange(48, dtype=np.float64).reshape(4, 3, 4)
    wanted = np.zeros_like(shards)
    for group in ((0, 2), (3, 1)):
        for r, member in enumerate(group):
            wanted[member] = np.concatenate([shards[sender][:, 2 * r : 2 * r + 2] for sender in group], axis=1)
    for each in (module, whole):
        found = evaluate(each, [of_devices(shards)], 4)
        assert not found.unknown
        [blocks] = found.results
        assert blocks is not None
        for device in range(4):
            np.testing.assert_array_equal(dense(blocks, device), wanted[device])


@pytest.mark.parametrize(
    "text",
    [
        program("[2:4]", "[0:2]"),
        program("[0:2]", "[0:2]"),
        program("[0:4:2]", "[1:4:2]"),
        program(results=(1, 0)),
        program(results=(0, 0)),
        program(dimension=0),
        program().replace("f32[3,4] parameter", "f32[3,6] parameter").replace("x: f32[3,4]", "x: f32[3,6]"),
        converted(program()).replace("T[", "s32["),
        program().replace("f32[3,4] parameter", "f32[5,4] parameter").replace("x: f32[3,4]", "x: f32[5,4]"),
    ],
)
def test_nothing_else(text: str) -> None:
    module = load(text)
    assert rejoined(module) is module
