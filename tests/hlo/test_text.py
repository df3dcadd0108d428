"""HLO text is read as XLA prints it and as people write it."""

from __future__ import annotations

import pytest

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.groups import Groups, groups_of
from hlo_verify.hlo.module import Operand
from hlo_verify.hlo.text import parse_hlo

PRINTED = """HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, num_partitions=8

FileNames
1 "/home/me/train.py"

FileLocations
1 {file_name_id=1 function_name_id=1 line=37 end_line=37 column=12 end_column=23}

StackFrames
4 {file_location_id=1 parent_frame_id=1}

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

ENTRY %main (p: f32[8,16]) -> (f32[8,16]) {
  %p = f32[8,16]{1,0:T(8,128)} parameter(0), metadata={op_name="x, calls=%nobody"}
  %w = (f32[8,16]{1,0:T(8,128)}, /*index=1*/s32[]{:T(128)}) while(%t), condition=%c, body=%b
  %r = f32[8,16]{1,0:T(8,128)} all-reduce(%w#0), channel_id=3, replica_groups=mesh['a'=2,'b'=4] {'a'}, to_apply=%add, metadata={op_name="jit(step)/psum" stack_frame_id=4}, backend_config={"text":"a } in {a string","n":[1,2]}
  ROOT %out = (f32[8,16]{1,0:T(8,128)}) tuple(%r), control-predecessors={%w}
}
"""  # noqa: E501 (as XLA prints it)

WRITTEN = """HloModule by_hand
  // a comment
  wrapped {
    p = f32[4] parameter(0)
    ROOT n = f32[4] negate(p)
  }

  ENTRY main {
    a = f32[4] parameter(0)
    start = ((f32[4]), f32[4],
      s32[]) async-start(
      f32[4] a), calls=wrapped,
      frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}
    done = f32[4] async-done(start)  // another
    pair = tuple(a, done)
    ROOT second = get-tuple-element(pair), index=1
  }
"""


@pytest.mark.parametrize(
    ("groups", "wanted"),
    [
        ("mesh['a'=4,'b'=2], device_ids=([2,2,2]T(0,2,1)) {'a':(2)2}", ((0, 1), (2, 3), (4, 5), (6, 7))),
        ("mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}", ((3, 2), (1, 0))),
        ("mesh['a'=2,'b'=2] {'b'}", ((0, 1), (2, 3))),
        ("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,1)) {'b'}", None),
    ],
)
def test_the_devices_of_a_mesh_belong_to_the_groups(groups: str, wanted: Groups | None) -> None:
    """XLA has a comma between a mesh and its devices, where it has one between attributes."""
    instruction = f"ROOT g = f32[8] all-gather(p), channel_id=1, replica_groups={groups}, dimensions={{0}}"
    module = parse_hlo(f"HloModule m\nENTRY e {{\n  p = f32[4] parameter(0)\n  {instruction}\n}}\n")
    gather = module.entry.by_name["g"]
    assert groups_of(gather) == wanted and set(gather.attributes) == {"channel_id", "replica_groups", "dimensions"}


def test_what_xla_prints() -> None:
    module = parse_hlo(PRINTED)
    assert module.is_scheduled and module.partitions == 8 and module.replicas == 1
    assert [c.name for c in module.computations.values()] == ["add", "main"] and module.entry.name == "main"
    reduced = module.entry.by_name["r"]
    assert reduced.operands == (Operand("w", (0,)),)
    assert reduced.called == ("add",) and reduced.channel == 3
    assert reduced.op_name == "jit(step)/psum" and reduced.location == "/home/me/train.py:37"
    assert str(reduced.given_shapes[0]) == "f32[8,16]"
    assert PRINTED.splitlines()[reduced.line - 1].lstrip().startswith("%r = ")
    assert module.entry.by_name["w"].called == ("c", "b")
    assert module.entry.by_name["p"].called == (), "what stands in a string is no attribute"
    assert module.entry.root is not None and module.entry.root.control_predecessors == ("w",)


def test_what_people_write() -> None:
    module = parse_hlo(WRITTEN)
    start, second = module.entry.by_name["start"], module.entry.by_name["second"]
    assert start.operands == (Operand("a"),) and start.called == ("wrapped",) and start.line == 10
    assert start.frontend("_xla_send_recv_source_target_pairs") == "{{0,1},{1,2}}"
    assert str(second.shape) == "f32[4]" and module.entry.root is second


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("module @m {}", "does not begin with HloModule"),
        ("", "does not begin with HloModule"),
        ("HloModule m", "in the middle"),
        ("HloModule m\nENTRY e {\n  a = f32[] constant(1)\n", "in the middle"),
        ("HloModule m\nENTRY e {\n  a is nothing\n}\n", "line 3 of the HLO text is not understood"),
        ("HloModule m\nENTRY e {\n  ROOT a = f32[] add(b, c\n}\n", "line 3 .* never closed"),
    ],
)
def test_what_is_no_module_is_one_clear_message(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_hlo(text)


CALLED = """HloModule m
inner {
  p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p), metadata={op_name="while/body/neg"}
}
body {
  p.1 = f32[4] parameter(0)
  w = f32[4] call(p.1), to_apply=inner, metadata={op_name="while/body/jit(g)"}
  ROOT k = f32[4] tanh(w), metadata={op_name="jit(f)/shard_map/tanh"}
}
ENTRY e {
  q = f32[4] parameter(0)
  ROOT c = f32[4] call(q), to_apply=body, metadata={op_name="jit(f)/shard_map"}
}
"""


def test_a_called_operation_is_named_from_the_call_on() -> None:
    """XLA puts the call's name before those within when it inlines it; before that they are short."""
    named = {one.name: one.op_name for one in parse_hlo(CALLED).instructions() if one.op_name}
    assert named["n"] == "jit(f)/shard_map/while/body/jit(g)/while/body/neg"
    assert named["w"] == "jit(f)/shard_map/while/body/jit(g)"
    assert named["k"] == "jit(f)/shard_map/tanh" and named["c"] == "jit(f)/shard_map"


def test_what_enters_itself_has_an_end() -> None:
    text = CALLED.replace("ROOT n = f32[4] negate(p)", "ROOT n = f32[4] call(p), to_apply=inner")
    assert all(isinstance(one.op_name, str) for one in parse_hlo(text).instructions())
