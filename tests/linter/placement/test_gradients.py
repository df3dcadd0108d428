"""What the backward pass exchanges, and gradients of what is replicated."""

from __future__ import annotations

import json

import pytest

from hlo_verify.linter.lint import lint
from tests.support.hlo import ADD

HEADER = (
    f"HloModule m, num_partitions=2\n{ADD}"
    + """ENTRY e {
  x = f32[4,4] parameter(0)
  w = f32[4,4] parameter(1)
"""
)
SPLIT = "{devices=[2,1]<=[2]}"
FORWARD, BACKWARD, AFTER = "shard_map/jvp()/", "shard_map/transpose(jvp())/", "shard_map/"


def named(line: str, called: str, number: int = 3) -> str:
    return f'{line}, metadata={{op_name="jit(f)/{called}" source_file="f.py" source_line={number}}}\n'


def exchanged(name: str, operand: str, called: str, what: str = "all-reduce", number: int = 3) -> str:
    said = "channel_id=1, use_global_device_ids=true, replica_groups={{0,1}}"
    said += ", to_apply=add" if what == "all-reduce" else ", dimensions={0}"
    shape = "f32[8,4]" if what == "all-gather" else "f32[4,4]"
    return named(f"{name} = {shape} {what}({operand}), {said}", called, number)


def found(
    lines: str, arguments: tuple[str, str] = (SPLIT, "{replicated}"), result: str = SPLIT
) -> list[tuple[str, str]]:
    shardings = json.dumps({"in": arguments, "out": [result]})
    findings = lint(f"{HEADER}{lines}}}\n", shardings=shardings).findings
    return [(one.name, one.instruction) for one in findings if one.severity.value == "warning"]


GRADIENT = named("g = f32[4,4] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}", f"{BACKWARD}dot_general")


def update(addend: str, called: str = AFTER) -> str:
    return named(f"ROOT u = f32[4,4] subtract(w, {addend})", f"{called}sub")


def test_an_addend_of_a_gradient_is_added_to_a_replicated_weight() -> None:
    assert found(GRADIENT + update("g")) == [("unreduced_gradient", "g")]
    assert found(GRADIENT + exchanged("r", "g", f"{AFTER}psum") + update("r")) == []
    assert found(GRADIENT + update("g"), (SPLIT, SPLIT)) == []  # weights of its own on each device
    assert found(GRADIENT + update("g", FORWARD)) == []  # differentiated again
    assert found(GRADIENT.replace("transpose(jvp())", "jvp()") + update("g")) == []


def test_weights_that_are_averaged_later_are_right() -> None:
    lines = GRADIENT + update("g").replace("ROOT ", "") + "ROOT " + exchanged("r", "u", f"{AFTER}psum")
    assert found(lines, result="{replicated}") == []


@pytest.mark.parametrize(
    ("cotangent", "called", "expected"),
    [
        ("c = f32[4,4] multiply(r, r)\n", f"{BACKWARD}psum", [("backward_not_dual", "b")]),
        ("c = f32[4,4] multiply(r, r)\n", f"{AFTER}psum", []),
        ("c = f32[4,4] multiply(r, x)\n", f"{BACKWARD}psum", []),  # another one on each device
        ("h = f32[] constant(0.5)\nc = f32[4,4] broadcast(h), dimensions={}\n", f"{BACKWARD}psum", []),  # of a mean
        (
            "h = f32[] constant(1)\nc = f32[4,4] broadcast(h), dimensions={}\n",
            f"{BACKWARD}psum",
            [("backward_not_dual", "b")],
        ),
    ],
)
def test_the_backward_of_a_sum_is_no_sum(cotangent: str, called: str, expected: list[tuple[str, str]]) -> None:
    lines = exchanged("r", "x", f"{FORWARD}psum") + cotangent + "ROOT " + exchanged("b", "c", called)
    assert [one for one in found(lines) if one[0] == "backward_not_dual"] == expected
    elsewhere = exchanged("r", "x", f"{FORWARD}psum") + cotangent + "ROOT " + exchanged("b", "c", called, number=4)
    assert ("backward_not_dual", "b") not in found(elsewhere)


def test_the_backward_of_an_all_gather_is_a_sum_over_its_devices() -> None:
    lines = exchanged("a", "w", f"{FORWARD}all_gather", "all-gather") + GRADIENT
    assert ("backward_not_dual", "a") in found(lines + update("g"), (SPLIT, SPLIT))
    reduced = exchanged("r", "g", f"{BACKWARD}reduce_scatter")
    assert found(lines + reduced + update("r"), (SPLIT, SPLIT)) == []
    only_forward = exchanged("a", "w", f"{FORWARD}all_gather", "all-gather")
    assert found(only_forward + update("x"), (SPLIT, SPLIT)) == []  # there is no backward pass
