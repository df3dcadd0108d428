# ruff: noqa: E501 (modules as XLA prints them)
"""Every kind of module that there is reads alike; everything else is one clear error."""

from __future__ import annotations

import gzip
import random
import re
from pathlib import Path

import numpy as np
import pytest

from hlo_verify import jaxlib_api
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load.load import load, read_hlo_text, with_devices
from hlo_verify.program.ir import Function, Module, Op
from hlo_verify.program.mesh import device_order_of

HLO = """HloModule product, entry_computation_layout={(f32[4,8]{1,0}, f32[8,2]{1,0})->f32[4,2]{1,0}}, num_partitions=4

FileNames
1 "/home/user/train.py"

FunctionNames
1 "loss"

FileLocations
1 {file_name_id=1 function_name_id=1 line=57 end_line=57 column=11 end_column=20}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


ENTRY %main.1 (x.1: f32[4,8], w.1: f32[8,2]) -> f32[4,2] {
  %x.1 = f32[4,8]{1,0} parameter(0), sharding={devices=[2,2]<=[4]}, metadata={op_name="x"}
  %w.1 = f32[8,2]{1,0} parameter(1), sharding={replicated}, metadata={op_name="params['w']"}
  ROOT %dot.1 = f32[4,2]{1,0} dot(%x.1, %w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}, metadata={op_name="jit(loss)/dot_general" stack_frame_id=1}
}
"""

MLIR = """module @product attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>} loc("x"),
                         %arg1: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>} loc("params['w']"))
      -> (tensor<4x2xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32> loc("jit(loss)/dot_general"(callsite("loss"("/home/user/train.py":57:11) at "<module>"("/home/user/main.py":3:0))))
    return %0 : tensor<4x2xf32>
  }
}
"""


def hlo_proto() -> bytes:
    return jaxlib_api.hlo_text_to_proto(HLO)


def wrapped(message: bytes) -> bytes:
    """A message that has `message` in its first field, as HloProto has its module."""
    length, size = len(message), b""
    while length > 127:
        size, length = size + bytes([length & 127 | 128]), length >> 7
    return b"\x0a" + size + bytes([length]) + message


def bytecode() -> bytes:
    return jaxlib_api.proto_to_stablehlo(hlo_proto())


def artifact() -> bytes:
    plain = re.sub(r"\{?(, )?sdy.sharding = #sdy.sharding<[^>]*>\}?", "", MLIR).replace('= "result"', '= "result"}')
    plain = re.sub(r"  sdy.mesh.*\n", "", plain)
    version = jaxlib_api.stablehlo.get_current_version()
    module = jaxlib_api.parse_module(plain, jaxlib_api.make_context())
    text = module.operation.get_asm(enable_debug_info=True)
    return bytes(jaxlib_api.stablehlo.serialize_portable_artifact_str(text, version))


def every_op(function: Function) -> list[Op]:
    return [op for outer in function.ops for op in (outer, *(o for r in outer.regions for o in every_op(r)))]


KINDS = {
    "HLO text": lambda: HLO.encode(),
    "HLO text after a byte order mark": lambda: b"\xef\xbb\xbf" + HLO.encode(),
    "HLO text after comments": lambda: b"\n// dumped by hand\n\n" + HLO.encode(),
    "HloModuleProto": hlo_proto,
    "HloProto": lambda: wrapped(hlo_proto()),
    "HloSnapshot": lambda: wrapped(wrapped(hlo_proto())),
    "StableHLO text": lambda: MLIR.encode(),
    "StableHLO text after a byte order mark": lambda: b"\xef\xbb\xbf" + MLIR.encode(),
    "StableHLO bytecode": bytecode,
    "portable artifact": artifact,
}


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzipped"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_reads_alike(kind: str, zipped: bool, tmp_path: Path) -> None:
    contents = KINDS[kind]()
    path = tmp_path / "module.whatever"
    path.write_bytes(gzip.compress(contents) if zipped else contents)
    module = load(path)
    (op,) = module.main.ops
    assert (module.name, module.path) == ("product", str(path))
    assert op.name == "dot_general"
    assert op.attributes["dot_dimension_numbers"]["lhs_contracting_dimensions"] == (1,)
    assert [str(t) for t in (*module.main.argument_types, *module.result_types)] == ["f32[4,8]", "f32[8,2]", "f32[4,2]"]
    assert op.location.name == "jit(loss)/dot_general"
    assert str(op.location) == "/home/user/train.py:57"
    assert module.argument_names == ("x", "params['w']")
    if kind != "portable artifact":  # it was stripped of Shardy's dialect
        assert [s and s.tiles for s in module.argument_shardings] == [(2, 2), (1, 1)]
        assert [s and s.tiles for s in module.result_shardings] == [(2, 1)]
    assert (module.partitions, module.replicas) == (4, 1)


def test_text_and_bytes_are_read_directly() -> None:
    assert load(HLO).main.ops[0].name == load(MLIR.encode()).main.ops[0].name == "dot_general"


def test_an_exported_function() -> None:
    pytest.importorskip("flatbuffers", reason="jax.export needs flatbuffers to write artifacts")
    import jax

    exported = jax.export.export(jax.jit(lambda x: jax.numpy.tanh(x)))(jax.ShapeDtypeStruct((4,), np.float32))
    contents = bytes(exported.serialize())
    module = load(contents)
    assert [op.name for op in module.main.ops] == ["tanh"]
    with pytest.raises(InputError):
        load(contents[: len(contents) // 2])


def test_the_default_api_version_of_neurons_tools() -> None:
    text = """HloModule gelu
ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4] parameter(0)
  ROOT %y = f32[4] custom-call(f32[4] %x), custom_call_target="AwsNeuronCustomNativeKernel", api_version=API_VERSION_UNSPECIFIED, metadata={op_type="gelu"}
}
"""
    module = load(text)
    (op,) = module.main.ops
    assert op.name == "custom_call" and op.attributes["call_target_name"] == "AwsNeuronCustomNativeKernel"
    assert any("API_VERSION_UNSPECIFIED" in note for note in module.notes)


def test_frontend_attributes_on_a_tuple_parameter() -> None:
    text = """HloModule loop
%body (p: (s32[], f32[2])) -> (s32[], f32[2]) {
  p = (s32[], f32[2]) parameter(0), frontend_attributes={_xla_loop_unroll_strategy="double-buffer"}
  i = s32[] get-tuple-element(p), index=0
  x = f32[2] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[2]) tuple(j, x)
}
%condition (p: (s32[], f32[2])) -> pred[] {
  p = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  a = s32[] parameter(0)
  b = f32[2] parameter(1)
  t = (s32[], f32[2]) tuple(a, b)
  ROOT w = (s32[], f32[2]) while(t), condition=condition, body=body
}
"""
    (loop,) = load(text).main.ops
    assert loop.name == "while" and len(loop.operands) == 2


# Replica groups that jaxlib's conversion would change

GROUPS = """HloModule groups, num_partitions=8
ENTRY e {
  p = f32[2,2] parameter(0)
  a = f32[2,8] all-gather(p), channel_id=1, replica_groups=mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0)) {'x'}, dimensions={1}, use_global_device_ids=true
  b = f32[2,8] all-gather(p), channel_id=2, replica_groups=mesh['x'=4,'y'=2] {'x'}, dimensions={1}, use_global_device_ids=true
  c = f32[2,4] all-gather(p), channel_id=3, replica_groups=mesh['x'=4,'y'=2], device_ids=(1,2,0,3,4,5,6,7) {'y'}, dimensions={1}, use_global_device_ids=true
  d = f32[2,4] all-gather(p), channel_id=4, replica_groups=mesh['x'=4,'y'=2] {'x':(2)2}, dimensions={1}, use_global_device_ids=true
  f = f32[2,4] all-gather(p), channel_id=5, replica_groups=[4,2]<=[2,4]T(1,0), dimensions={1}, use_global_device_ids=true
  g = f32[2,2] all-reduce(p), channel_id=6, replica_groups={{0,1,2},{3}}, to_apply=add
  h = f32[2,2] all-reduce(p), replica_groups={}, to_apply=add
  ROOT t = (f32[2,8], f32[2,8], f32[2,4], f32[2,4], f32[2,4], f32[2,2], f32[2,2]) tuple(a, b, c, d, f, g, h)
}
"""
ADD = """%add (l: f32[], r: f32[]) -> f32[] {
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %s = f32[] add(%l, %r)
}
"""


def test_replica_groups_keep_the_order_of_their_mesh() -> None:
    text = GROUPS.replace("ENTRY", ADD + "\nENTRY")
    for contents in (text.encode(), jaxlib_api.hlo_text_to_proto(text)):
        ops = {op.attributes["channel_id"]: op.attributes for op in load(contents, devices=8).main.ops}
        groups = {channel: sorted(a["replica_groups"].tolist()) for channel, a in ops.items()}
        assert groups == {
            1: [[0, 1, 2, 3], [4, 5, 6, 7]],
            2: [[0, 2, 4, 6], [1, 3, 5, 7]],
            3: [[0, 3], [1, 2], [4, 5], [6, 7]],
            4: [[0, 2], [1, 3], [4, 6], [5, 7]],
            5: [[0, 4], [1, 5], [2, 6], [3, 7]],
            6: [[0, 1, 2], [3, -1, -1]],
            0: [],
        }
        assert all(a["replica_groups"].dtype == np.int64 and a["replica_groups"].ndim == 2 for a in ops.values())
        assert [ops[c]["use_global_device_ids"] for c in (1, 6, 0)] == [True, False, False]


# The number of devices

COLLECTIVE = """HloModule m
ENTRY e {{
  p = f32[8] parameter(0), sharding={sharding}
  ROOT a = f32[{size}] all-gather(p), {channel}, replica_groups={groups}, dimensions={{0}}
}}
"""


def collective(sharding: str, groups: str, size: int, channel: str = "channel_id=1, use_global_device_ids=true") -> str:
    return COLLECTIVE.format(sharding=sharding, groups=groups, size=size, channel=channel)


def counts(module: Module) -> tuple[int | None, int]:
    return module.partitions, module.replicas


def test_devices_are_inferred_where_the_module_does_not_say() -> None:
    assert counts(load(collective("{devices=[4]<=[4]}", "{{0,1},{2,3}}", 16))) == (4, 1)
    assert counts(load(collective("{replicated}", "[2,4]<=[8]", 32))) == (8, 1)
    assert counts(load(collective("{replicated}", "mesh['x'=2,'y'=4] {'x'}", 16))) == (8, 1)
    # Groups of replicas, as Neuron's tools write them
    assert counts(load(collective("{replicated}", "{{0,1}}", 16, "channel_id=0"))) == (1, 2)
    # A table that the partition's number indexes
    table = """HloModule m
ENTRY e {
  t = s32[4] constant({0, 8, 16, 24})
  i = u32[] partition-id()
  ROOT d = s32[1] dynamic-slice(t, i), dynamic_slice_sizes={1}
}
"""
    assert counts(load(table)) == (4, 1)


def test_devices_that_do_not_agree() -> None:
    text = collective("{devices=[4]<=[4]}", "[2,4]<=[8]", 32)
    with pytest.raises(InputError, match=r"devices=\[4\].* is for 4.*all_gather.*8.*--devices"):
        load(text)
    with pytest.raises(InputError, match=r"argument p \(f32\[8\]\): .*for 4 devices, the module has 8"):
        load(text, devices=8)


def test_devices_as_asked_for() -> None:
    text = collective("{replicated}", "{}", 64, "channel_id=0")
    module = load(text)
    assert module.partitions is None
    for spread in (load(text, devices=8), with_devices(module, 8)):
        assert spread.partitions == 8
        assert [s and s.devices for s in spread.argument_shardings] == [8]
    with pytest.raises(InputError, match="for 8 partitions, not for 4 devices"):
        with_devices(with_devices(module, 8), 4)
    with pytest.raises(InputError, match="for 4 partitions, not for 8 devices"):
        load(HLO, devices=8)


# Broken input

BROKEN = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "empty, gzipped": (gzip.compress(b""), "is empty"),
    "gzip cut short": (gzip.compress(HLO.encode())[:-20], "gzip file is damaged"),
    "not gzip": (b"\x1f\x8bnonsense", "gzip file is damaged"),
    "another text": (b"import jax\n", "not a module: the text begins with 'import jax'"),
    "JSON": (b'{"a": 1}\n', "not a module"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "neither MLIR bytecode nor a protocol buffer"),
    "a program": (b"\x7fELF\x02\x01\x01" + bytes(64), "neither MLIR bytecode nor a protocol buffer"),
    "another proto": (b"\x08\x01", "no HloModuleProto"),
    "HLO text cut in its entry": (HLO[:-40].encode(), "not valid HLO text"),
    "HLO text cut before its entry": (HLO[: HLO.index("ENTRY")].encode(), "no ENTRY computation"),
    "StableHLO text cut short": (MLIR[:-30].encode(), "not valid StableHLO"),
    "StableHLO text cut in a character": ('module @"é'.encode()[:-1], "not valid StableHLO"),
    "StableHLO with an unknown op": (MLIR.replace("dot_general", "dot_particular").encode(), "not valid StableHLO"),
    "StableHLO without main": (b"module {\n}\n", "no function @main and 0 public"),
    "StableHLO with elided constants": (
        b"module {\n%0 = stablehlo.constant dense_resource<__elided__> : tensor<4xf32>\n}\n",
        "--mlir-elide-elementsattrs-if-larger",
    ),
    "dynamic shapes": (
        b"func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {\n return %a : tensor<?xf32>\n}\n",
        "dynamic shape",
    ),
    "HLO text with elided constants": (
        b"HloModule m\nENTRY e {\n c = s32[512]{0} constant({...})\n ROOT r = s32[512] negate(c)\n}\n",
        "--xla_dump_large_constants=true",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_input(kind: str, tmp_path: Path) -> None:
    contents, message = BROKEN[kind]
    path = tmp_path / "module"
    path.write_bytes(contents)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["HloModuleProto", "HloProto", "StableHLO bytecode", "portable artifact"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_binary_input_cut_short(kind: str, share: float, capfd: pytest.CaptureFixture[str]) -> None:
    contents = KINDS[kind]()
    with pytest.raises(InputError):
        load(contents[: int(len(contents) * share)])
    assert capfd.readouterr() == ("", "")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "missing.hlo")
    with pytest.raises(InputError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        load("x" * 5000)
    with pytest.raises(InputError, match="cannot be read"):
        load("a\0b")


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match=r"secret.hlo: cannot be read \(Permission denied\)"):
        load(tmp_path / "secret.hlo")


# Modules that nobody in this project wrote

CORPORA = Path(__file__).resolve().parents[4] / "shared" / "corpora"


SAMPLE = 4
"""Files of a folder, drawn by the seed of the run, for every run."""


@pytest.mark.parametrize("count", [SAMPLE, pytest.param(None, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("corpus", ["live", "maxtext", "neuron", "xla_spmd"])
def test_corpora(corpus: str, count: int | None, seed: int) -> None:
    paths = sorted((CORPORA / corpus).rglob("*.gz"))
    if not paths:
        pytest.skip(f"{CORPORA / corpus} is not here")
    if count is not None:
        paths = random.Random(seed).sample(paths, min(count, len(paths)))
    for path in paths:
        module = load(path)
        defined = {*module.main.arguments, *(v for op in module.main.ops for v in op.results)}
        assert set(module.main.results) <= defined, path
        assert len(module.main.results) == len(module.result_types) == len(module.result_names), path
        assert not {op.name for op in every_op(module.main)} & {"call", "func.call", "tuple", "get_tuple_element"}, path
        name = path.name.split(".")[0]
        assert corpus != "maxtext" or module.partitions == int(re.findall(r"_(\d+)_", path.parent.name + "_")[0]), name


def test_the_header_of_hlo_text_counts_devices() -> None:
    source = read_hlo_text(HLO.replace("num_partitions=4", "replica_count=2, num_partitions=4"))
    assert (source.partitions, source.replicas) == (4, 2)


@pytest.mark.parametrize(
    "order", ["", "x", "1,x", "2,2T0,0", "2T0,1", "2,2T", "9223372036854775807,2T1,0", "0,2T1,0", "1T0T0"]
)
def test_an_order_of_devices_that_is_none(order: str) -> None:
    with pytest.raises(InputError, match="has no order of devices"):
        device_order_of(f"a in device order {order}")
