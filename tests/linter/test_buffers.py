"""Values in the same bytes: what is written over while it is still read, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.shapes import Array, leaves
from hlo_verify.hlo.text import parse_hlo
from hlo_verify.linter.lint import lint

SIZE = 16
"""Bytes of f32[4], which all values here are."""


def module(*lines: str, header: str = "is_scheduled=true", before: str = "") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"HloModule m, {header}\n{before}ENTRY e {{\n  p = f32[4] parameter(0)\n{body}\n}}\n"


def assignment(text: str, places: dict[str, int], size: int = 256) -> str:
    """One allocation with the named values (`while.1{0}` is a part of a result) at the given offsets."""
    by_name = {one.name: one for one in parse_hlo(text).instructions()}
    lines = ["BufferAssignment:", f"allocation 0: size {size}, page 0, preallocated-temp:"]
    for number, (name, offset) in enumerate(places.items()):
        lines.append(
            f" value: <{number} {name} @0> (size={_bytes(by_name[name.split('{')[0]])},offset={offset}): f32[4]"
        )
    return "\n".join([*lines, "", "Total bytes used: 0", ""])


def _bytes(instruction: Instruction) -> int:
    return max((leaf.bytes for _, leaf in leaves(instruction.shape) if isinstance(leaf, Array)), default=SIZE)


def names(text: str, places: dict[str, int], size: int = 256) -> list[tuple[str, str]]:
    found = lint(text, buffers=assignment(text, places, size)).findings
    return [(one.name, one.instruction) for one in found]


CHAIN = module(
    "a = f32[4] negate(p)",
    "b = f32[4] negate(a)",
    "c = f32[4] negate(b)",
    "d = f32[4] add(a, c)",
    "ROOT r = f32[4] negate(d)",
)


@pytest.mark.parametrize(
    ("places", "wanted"),
    [
        ({"a": 0, "b": 16, "c": 32}, []),
        ({"a": 0, "b": 16, "c": 16}, []),  # c is written where its own operand ends
        ({"a": 0, "b": 0, "c": 32}, [("overwritten_while_live", "b")]),
        ({"a": 0, "b": 8, "c": 32}, [("overwritten_while_live", "b")]),  # half of it
        ({"a": 0, "b": 16, "d": 0}, []),
        ({"a": 0, "c": 0}, [("overwritten_while_live", "c")]),
    ],
)
def test_one_behind_the_other(places: dict[str, int], wanted: list[tuple[str, str]]) -> None:
    assert names(CHAIN, places) == wanted


PAIR = module(
    'f = (f32[4], f32[4]) custom-call(p), custom_call_target="two"',
    "a = f32[4] negate(p)",
    "g = f32[4] get-tuple-element(f), index=1",
    "t = (f32[4], f32[4]) tuple(g, a)",
    "b = f32[4] exponential(a)",
    "h = f32[4] get-tuple-element(t), index=0",
    "ROOT r = f32[4] add(h, b)",
)


@pytest.mark.parametrize(
    ("places", "wanted"),
    [
        ({"f{0}": 0, "f{1}": 16, "a": 0}, []),  # nobody reads it: that the other one is taken out is no reading
        ({"f{0}": 0, "f{1}": 16, "a": 16}, [("overwritten_while_live", "a")]),  # read behind two tuples
        ({"f{1}": 16, "b": 16}, [("overwritten_while_live", "b")]),
        ({"f": 0, "a": 0}, [("overwritten_while_live", "a")]),  # the table of both
    ],
)
def test_parts_of_tuples(places: dict[str, int], wanted: list[tuple[str, str]]) -> None:
    assert names(PAIR, places) == wanted


FLIGHT = module(
    "a = f32[4] negate(p)",
    "b = f32[4] negate(p)",
    "x = f32[4] negate(b)",
    "s = (f32[4], f32[4], u32[]) copy-start(a)",
    "w = f32[4] negate(x)",
    "t = f32[4] add(w, b)",
    "d = f32[4] copy-done(s)",
    "ROOT r = f32[4] add(d, t)",
)


@pytest.mark.parametrize(
    ("places", "wanted"),
    [
        ({"a": 0, "s{0}": 16, "w": 32, "b": 48}, []),
        ({"a": 0, "w": 0}, [("race_async_operand", "w")]),
        ({"s{0}": 0, "w": 0}, [("race_async_result", "w")]),
        ({"b": 0, "s{0}": 0}, [("race_async_result_early", "s")]),
        ({"a": 0, "r": 0}, []),
    ],
)
def test_what_is_in_flight(places: dict[str, int], wanted: list[tuple[str, str]]) -> None:
    assert names(FLIGHT, places) == wanted


LOOP = module(
    "z = f32[4] negate(p)",
    "o = f32[4] exponential(p)",
    "t = (f32[4], f32[4]) tuple(z, o)",
    "w = (f32[4], f32[4]) while(t), condition=cond, body=body",
    "g = f32[4] get-tuple-element(w), index=0",
    "ROOT r = f32[4] negate(g)",
    before="""cond {
  c = (f32[4], f32[4]) parameter(0)
  ROOT y = pred[] custom-call(c), custom_call_target="again"
}
body {
  q = (f32[4], f32[4]) parameter(0)
  x = f32[4] get-tuple-element(q), index=0
  k = f32[4] get-tuple-element(q), index=1
  h = f32[4] add(x, k)
  n = f32[4] negate(h)
  ROOT u = (f32[4], f32[4]) tuple(n, k)
}
""",
)


@pytest.mark.parametrize(
    ("places", "wanted"),
    [
        ({"z": 0, "q{0}": 0, "n": 0, "w{0}": 0, "o": 16, "h": 32}, []),  # carried in one place
        ({"z": 0, "q{0}": 0, "n": 0, "w{0}": 0, "o": 16, "h": 16}, [("overwritten_while_live", "h")]),
        ({"z": 0, "q{0}": 0, "n": 0, "w{0}": 0, "h": 0}, []),  # x is read by h alone
    ],
)
def test_what_a_loop_reads_is_read_in_every_turn(places: dict[str, int], wanted: list[tuple[str, str]]) -> None:
    assert names(LOOP, places) == wanted


def test_branches_exclude_each_other() -> None:
    branch = "{name} {{\n  i{name} = f32[4] parameter(0)\n  ROOT n{name} = f32[4] negate(i{name})\n}}\n"
    text = module(
        "a = f32[4] negate(p)",
        "k = s32[] constant(0)",
        "f = f32[4] conditional(k, p, a), branch_computations={first, second}",
        "ROOT r = f32[4] negate(f)",
        before=branch.format(name="first") + branch.format(name="second"),
    )
    assert names(text, {"a": 0, "nfirst": 0}) == [], "only the second branch reads a"
    swapped = text.replace("conditional(k, p, a)", "conditional(k, a, a)").replace("negate(f)", "add(f, a)")
    assert ("overwritten_while_live", "nfirst") in names(swapped, {"a": 0, "nfirst": 0})


def test_a_donated_argument() -> None:
    text = module("a = f32[4] negate(p)", "b = f32[4] exponential(p)", "ROOT r = (f32[4], f32[4]) tuple(a, b)")
    assert names(text, {"p": 0, "a": 0}) == [("donated_input_read_after_write", "a")]
    assert names(text, {"p": 0, "b": 0}) == []


def test_sizes() -> None:
    assert names(CHAIN, {"a": 0, "b": 20}, size=32) == [("value_outside_allocation", "b")]
    small = assignment(CHAIN, {"a": 0}).replace("size=16", "size=8")
    assert [one.name for one in lint(CHAIN, buffers=small).findings] == ["value_smaller_than_shape"]
    text = CHAIN.replace("a = f32[4]", "a = f32[4]{0:S(1)}")
    assert [one.name for one in lint(text, buffers=assignment(text, {"a": 0})).findings] == ["memory_space_mismatch"]


def test_what_xla_says_of_values_is_taken(tmp_path: Path) -> None:
    """The list of values: here it leaves out that d reads a, so nothing is wrong any more."""
    places = {"a": 0, "c": 0}
    values = """Used values:
<0 a @0>
 positions:
  a
 uses:
  b, operand 0
 from instruction: a
<1 c @0>
 positions:
  c
 uses:
  d, operand 1
 from instruction: c
"""
    files = {"m.txt": CHAIN, "b.txt": assignment(CHAIN, places), "v.txt": values}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert lint(tmp_path / "m.txt", buffers=tmp_path / "b.txt").errors
    assert not lint(tmp_path / "m.txt", buffers=tmp_path / "b.txt", values=tmp_path / "v.txt").errors


def test_a_buffer_assignment_needs_a_schedule() -> None:
    with pytest.raises(InputError, match="not scheduled"):
        lint(CHAIN.replace("is_scheduled=true", "num_partitions=1"), buffers=assignment(CHAIN, {"a": 0}))
    with pytest.raises(InputError, match="no buffer assignment"):
        lint(CHAIN, buffers="something\nelse")
