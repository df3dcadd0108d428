"""Sums, weights and scales in few digits; and programs that lose nothing."""

from __future__ import annotations

import pytest

from hlo_verify.diagnostics import Severity
from hlo_verify.linter.finding import Finding
from hlo_verify.linter.lint import lint

HEADER = """HloModule m{said}
add {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT s = {dtype}[] add(a, b)
}}
max {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b)
}}
"""
BACKWARD = 'metadata={op_name="jit(step)/transpose(jvp())/mul"}'


def found(entry: str, dtype: str = "bf16", said: str = "", before: str = "") -> list[Finding]:
    text = f"{HEADER.format(dtype=dtype, said=said)}{before}ENTRY e {{\n{entry}}}\n"
    findings = [one for one in lint(text).findings if one.code.startswith("HV55")]
    assert all(one.severity is Severity.WARNING for one in findings)
    return findings


def names(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(one.name, one.instruction) for one in findings]


def summed(count: int, dtype: str) -> str:
    lines = f"x = {dtype}[2,{count}] parameter(0)\nz = {dtype}[] constant(0)\n"
    return f"{lines}ROOT r = {dtype}[2] reduce(x, z), dimensions={{1}}, to_apply=add\n"


@pytest.mark.parametrize(
    ("dtype", "terms"), [("bf16", 256), ("f16", 2048), ("f8e4m3fn", 16), ("f8e5m2", 8), ("f32", None)]
)
def test_a_sum_stands_still_behind_as_many_terms_as_its_digits_count(dtype: str, terms: int | None) -> None:
    if terms is None:
        assert not found(summed(1 << 20, dtype), dtype)
        return
    assert not found(summed(terms, dtype), dtype)
    assert names(found(summed(terms + 1, dtype), dtype)) == [("low_precision_sum", "r")]


def test_the_largest_of_many_loses_nothing() -> None:
    assert not found(summed(512, "f32").replace("f32", "bf16").replace("to_apply=add", "to_apply=max"))


def test_a_sum_in_f32_that_is_cast_behind_loses_nothing() -> None:
    lines = "x = bf16[2,512] parameter(0)\nc = f32[2,512] convert(x)\nz = f32[] constant(0)\n"
    lines += "r = f32[2] reduce(c, z), dimensions={1}, to_apply=add\nROOT b = bf16[2] convert(r)\n"
    assert not found(lines, dtype="f32")


def test_a_row_that_one_hot_picks_is_no_sum() -> None:
    lines = "x = bf16[2,512] parameter(0)\nn = s32[] parameter(1)\ni = s32[2,512] iota(), iota_dimension=1\n"
    lines += "m = s32[2,512] broadcast(n), dimensions={}\np = pred[2,512] compare(i, m), direction=EQ\n"
    lines += "h = bf16[2,512] convert(p)\nz = bf16[] constant(0)\ny = bf16[2,512] multiply(x, h)\n"
    assert not found(lines + "ROOT r = bf16[2] reduce(y, z), dimensions={1}, to_apply=add\n")
    assert found(lines + "ROOT r = bf16[2] reduce(h, z), dimensions={1}, to_apply=add\n")


def test_what_one_line_does_many_times_is_said_once_of_the_most_terms() -> None:
    line = 'metadata={source_file="m.py" source_line=3}'
    lines = "x = bf16[300] parameter(0)\ny = bf16[900] parameter(1)\nz = bf16[] constant(0)\n"
    lines += f"r = bf16[] reduce(x, z), dimensions={{0}}, to_apply=add, {line}\n"
    lines += f"q = bf16[] reduce(y, z), dimensions={{0}}, to_apply=add, {line}\nROOT t = (bf16[], bf16[]) tuple(r, q)\n"
    (one,) = found(lines)
    assert one.instruction == "q" and "900 terms" in one.message and "1 times more" in one.message


@pytest.mark.parametrize(("devices", "count"), [(256, 0), (512, 1)])
def test_a_sum_over_devices(devices: int, count: int) -> None:
    lines = "x = bf16[4] parameter(0)\nROOT r = bf16[4] all-reduce(x), replica_groups={}, to_apply=add\n"
    assert len(found(lines, said=f", replica_count={devices}")) == count


@pytest.mark.parametrize(("algorithm", "count"), [("", 0), ("dot_bf16_bf16_bf16", 1), ("dot_bf16_bf16_f32", 0)])
def test_a_contraction_is_in_f32_inside_where_it_does_not_say_otherwise(algorithm: str, count: int) -> None:
    said = "lhs_contracting_dims={1}, rhs_contracting_dims={0}" + f", algorithm={algorithm}" * bool(algorithm)
    lines = f"x = bf16[2,512] parameter(0)\nw = bf16[512,2] parameter(1)\nROOT d = bf16[2,2] dot(x, w), {said}\n"
    assert len(found(lines)) == count


def loop(carried: str, added: str, turns: int) -> tuple[str, str]:
    """A loop whose body has `added` of the carried `c` and of `x` as `n`: the computations, and the entry."""
    state = f"(s32[], {carried}[4], f32[4])"
    head = f"p = {state} parameter(0)\ni = s32[] get-tuple-element(p), index=0\n"
    body = f"{head}c = {carried}[4] get-tuple-element(p), index=1\nx = f32[4] get-tuple-element(p), index=2\n"
    body += f"one = s32[] constant(1)\nj = s32[] add(i, one)\n{added}ROOT t = {state} tuple(j, n, x)\n"
    condition = f"{head}last = s32[] constant({turns})\nROOT go = pred[] compare(i, last), direction=LT\n"
    entry = f"z = s32[] constant(0)\nc = {carried}[4] parameter(0)\nx = f32[4] parameter(1)\n"
    entry += f"s = {state} tuple(z, c, x)\nROOT w = {state} while(s), condition=condition, body=body\n"
    return f"body {{\n{body}}}\ncondition {{\n{condition}}}\n", entry


IN_BF16 = "y = bf16[4] convert(x)\nn = bf16[4] add(c, y)\n"
ROUNDED = "d = f32[4] convert(c)\ne = f32[4] add(d, x)\nn = bf16[4] convert(e)\n"


@pytest.mark.parametrize(
    ("carried", "added", "turns", "expected"),
    [
        ("bf16", IN_BF16, 256, []),
        ("bf16", IN_BF16, 257, [("low_precision_sum", "n")]),
        ("bf16", ROUNDED, 256, []),
        ("bf16", ROUNDED, 257, [("rounded_accumulator", "e")]),
        ("bf16", "n = bf16[4] convert(x)\n", 999, []),
        ("f32", "n = f32[4] add(c, x)\n", 999, []),
    ],
)
def test_a_running_sum(carried: str, added: str, turns: int, expected: list[tuple[str, str]]) -> None:
    before, entry = loop(carried, added, turns)
    assert names(found(entry, before=before)) == expected


def updated(argument: str, lines: str, called: str = BACKWARD) -> list[tuple[str, str]]:
    """What is found of a step that returns `n`, of weights `w` and a gradient `g` in f32."""
    entry = f"w = {argument}[4] parameter(0)\nx = f32[4] parameter(1)\ng = f32[4] multiply(x, x), {called}\n"
    return names(found(entry + lines))


DOWN_UP = "b = bf16[4] convert(w)\nu = f32[4] convert(b)\nROOT n = f32[4] subtract(u, g)\n"
IN_LOW = "b = bf16[4] convert(g)\nROOT n = bf16[4] subtract(w, b)\n"


def test_weights_that_are_updated_in_few_digits() -> None:
    assert updated("f32", "ROOT n = f32[4] subtract(w, g)\n") == []
    assert updated("f32", DOWN_UP) == [("low_precision_update", "n")]
    assert updated("bf16", IN_LOW) == [("low_precision_update", "n")]
    assert updated("bf16", IN_LOW.replace("subtract(w, b)", "subtract(b, w)")) == []  # the rest of a prediction


def test_a_residual_is_no_update() -> None:
    assert updated("bf16", IN_LOW, called="") == []
    backward = IN_LOW.replace("subtract(w, b)", f"add(w, b), {BACKWARD}")
    assert updated("bf16", backward) == []  # a cotangent that is handed on


def quantized(scale_of: str, dtype: str = "s8", parameter: str = "") -> list[tuple[str, str]]:
    """What is found where `x` is quantized with a scale from the largest of something."""
    lines = "x = f32[8,4] parameter(0)\ny = f32[8,4] parameter(1)\n"
    lines += f'h = f32[8] parameter(2), metadata={{op_name="{parameter}"}}\nz = f32[] constant(0)\n'
    lines += f"t = f32[8,4] transpose({scale_of}), dimensions={{0,1}}\na = f32[8,4] abs(t)\n" * (scale_of != "h")
    lines += "a = f32[8] copy(h)\n" * (scale_of == "h")
    dimensions = "{0}" if scale_of == "h" else "{0,1}"
    lines += f"m = f32[] reduce(a, z), dimensions={dimensions}, to_apply=max\nl = f32[] constant(127)\n"
    lines += "s = f32[] divide(m, l)\nb = f32[8,4] broadcast(s), dimensions={}\nq = f32[8,4] divide(x, b)\n"
    lines += f"r = f32[8,4] round-nearest-even(q)\nROOT i = {dtype}[8,4] convert(r)\n"
    return names(found(lines))


@pytest.mark.parametrize("dtype", ["s8", "f8e4m3fn", "f8e5m2"])
def test_what_is_quantized_with_its_own_scale_and_with_another(dtype: str) -> None:
    assert quantized("x", dtype) == []
    assert quantized("y", dtype) == [("scale_of_another", "i")]


def test_the_scale_of_an_earlier_step_has_to_be_called_so() -> None:
    assert quantized("h", parameter="state['fp8']['amax_history']") == []
    assert quantized("h", parameter="state['t']") == [("scale_of_another", "i")]


def scaled(lines: str, dtype: str = "f16", called: str = "s") -> list[tuple[str, str]]:
    """What is found of a step whose gradients `g` are multiplied with a scalar argument, in a type of few digits."""
    entry = f'w = f32[4] parameter(0)\ns = f32[] parameter(1), metadata={{op_name="{called}"}}\n'
    entry += f"y = {dtype}[4] parameter(2)\nb = f32[4] broadcast(s), dimensions={{}}\n"
    entry += (
        f"c = {dtype}[4] convert(b), {BACKWARD}\nd = {dtype}[4] multiply(c, y), {BACKWARD}\ng = f32[4] convert(d)\n"
    )
    return names(found(entry + lines))


KEPT = "ROOT n = f32[4] subtract(w, g)\n"


@pytest.mark.parametrize(
    "lines",
    [
        "r = f32[4] divide(g, b)\nROOT n = f32[4] subtract(w, r)\n",
        "o = f32[] constant(1)\ni = f32[] divide(o, s)\nj = f32[4] broadcast(i), dimensions={}\n"
        "r = f32[4] multiply(j, g)\nROOT n = f32[4] subtract(w, r)\n",
        "ROOT n = f32[4] negate(g)\n",  # a function that gives scaled gradients
        "r = f32[4] divide(g, b)\nz = f32[] constant(0)\nf = pred[4] is-finite(g)\n"
        "v = f32[4] broadcast(z), dimensions={}\nk = f32[4] select(f, r, v)\nROOT n = f32[4] subtract(w, k)\n",
    ],
)
def test_a_loss_scale_that_is_removed(lines: str) -> None:
    assert scaled(lines) == []


def test_a_loss_scale_that_is_not_removed() -> None:
    assert scaled(KEPT) == [("scale_not_removed", "n")]
    assert scaled(KEPT, dtype="bf16") == []  # it may be the weight of a loss
    assert scaled(KEPT, dtype="bf16", called="loss_scale") == [("scale_not_removed", "n")]


def test_a_loss_scale_that_is_removed_for_one_moment_alone() -> None:
    lines = "r = f32[4] divide(g, b)\nm = f32[4] add(w, r)\nv = f32[4] add(w, g)\n"
    lines += "ROOT t = (f32[4], f32[4]) tuple(m, v)\n"
    assert scaled(lines, dtype="bf16") == [("scale_not_removed", "v")]
