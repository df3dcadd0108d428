"""The mutation campaign: its edits are well formed, its truth is right, and on a sample no verdict is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from hlo_verify.jaxlib_api import make_context, parse_module
from hlo_verify.passes.load.load import load
from hlo_verify.program.sharding import parse_hlo_sharding
from hlo_verify.xla.execute import Executor, Shards
from tools.mutate import cases, mlir, recording
from tools.mutate.campaign import Campaign, Line, Options, Record, named, read_records, surprise
from tools.mutate.cases import Case
from tools.mutate.mutant import Mutant, lines, mutate
from tools.mutate.operators import OPERATORS, Operator
from tools.mutate.table import distinct, render
from tools.mutate.truth import Judge, Outcome, Truth, cut, distance, starts
from tools.mutate.worker import Worker

FIXTURES = ("mlp_tp", "embedding_gather_scatter", "shardmap_fsdp")
SAMPLES = {"small": (4, 1), "large": (15, 6)}
"""Mutants of a sample that are only tried to be proved, and those that are refuted too."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    cases.capture(folder, FIXTURES)
    return folder


@pytest.fixture(scope="module")
def many() -> Iterator[Executor]:
    with Executor(8) as executor:
        yield executor


# Every operator finds something to edit here; the second dimension of main's argument is split over the devices.
EVERYTHING = """
#one = loc("train.py":1:0)
#two = loc("train.py":2:0)
#three = loc("train.py":3:0)
#four = loc("train.py":4:0)
module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4x4xf32>, %n: tensor<4xi32>, %i: tensor<i32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %two = stablehlo.constant dense<2.0> : tensor<4x4xf32>
    %a = stablehlo.multiply %x, %two : tensor<4x4xf32> loc(#one)
    %b = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#two)
    %c = stablehlo.transpose %b, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(unknown)
    %d = stablehlo.dot_general %c, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>)
      -> tensor<4x4xf32> loc(#three)
    %e = "stablehlo.all_gather"(%d) <{all_gather_dim = 0 : i64,
        channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>,
        replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}>
      : (tensor<4x4xf32>) -> tensor<8x4xf32>
    %f = "stablehlo.reduce_scatter"(%e) <{scatter_dimension = 0 : i64,
        channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>,
        replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<8x4xf32>) -> tensor<4x4xf32>
    %g = "stablehlo.all_to_all"(%f) <{split_dimension = 1 : i64, concat_dimension = 1 : i64, split_count = 2 : i64,
        channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>,
        replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %h = "stablehlo.collective_permute"(%g) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>,
        source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}>
      : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %j = stablehlo.iota dim = 0 : tensor<4x4xi32>
    %k = stablehlo.broadcast_in_dim %n, dims = [0] : (tensor<4xi32>) -> tensor<4x4xi32>
    %l = stablehlo.compare LT, %j, %k : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
    %o = stablehlo.select %l, %h, %x : tensor<4x4xi1>, tensor<4x4xf32>
    %r = stablehlo.reverse %o, dims = [0] : tensor<4x4xf32>
    %u = stablehlo.slice %r [0:2, 0:4] : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %v = stablehlo.pad %u, %zero, low = [0, 0], high = [2, 0], interior = [0, 0]
      : (tensor<2x4xf32>, tensor<f32>) -> tensor<4x4xf32>
    %w = stablehlo.dynamic_slice %v, %i, %i, sizes = [2, 4]
      : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
    %y = stablehlo.dynamic_update_slice %r, %w, %i, %i
      : (tensor<4x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>
    %z = stablehlo.tanh %y : tensor<4x4xf32>
    %aa = stablehlo.reshape %z : (tensor<4x4xf32>) -> tensor<16xf32>
    %ab = stablehlo.reshape %aa : (tensor<16xf32>) -> tensor<4x4xf32>
    %ac = stablehlo.concatenate %ab, %z, dim = 0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %ad = stablehlo.slice %ac [0:4, 0:4] : (tensor<8x4xf32>) -> tensor<4x4xf32>
    %ae = "stablehlo.gather"(%ad, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
        slice_sizes = array<i64: 1, 4>}> : (tensor<4x4xf32>, tensor<4xi32>) -> tensor<4x4xf32>
    %af:3 = stablehlo.while(%c0 = %i, %c1 = %ae, %c2 = %ad) : tensor<i32>, tensor<4x4xf32>, tensor<4x4xf32>
      cond {
        %three = stablehlo.constant dense<3> : tensor<i32>
        %t = stablehlo.compare LT, %c0, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %t : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %t = stablehlo.add %c0, %one : tensor<i32>
        %s = stablehlo.add %c1, %c2 : tensor<4x4xf32> loc(#four)
        stablehlo.return %t, %s, %c2 : tensor<i32>, tensor<4x4xf32>, tensor<4x4xf32>
      }
    %ag = "stablehlo.reduce_window"(%af#1, %zero) <{window_dimensions = array<i64: 3, 1>,
        padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.maximum %p, %q : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
    %ah = stablehlo.reduce(%ag init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
    %ai = stablehlo.subtract %ag, %two : tensor<4x4xf32>
    return %ai, %ah : tensor<4x4xf32>, tensor<4xf32>
  }
}
"""


@pytest.fixture(scope="module")
def everything() -> Case:
    return Case("everything", b"", cases.prepare(EVERYTHING.encode(), 4), (2, 2), 4)


@pytest.mark.drawn(15)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_every_operator_makes_well_formed_mutants(everything: Case, operator: Operator) -> None:
    mutants = [mutate(everything, (seed,), [operator]) for seed in range(3)]
    assert operator.summary
    for mutant in mutants:
        assert mutant is not None and mutant.operator == operator.name and mutant.what
        assert load(mutant.module).partitions == 4
        assert mutant.module != everything.partitioned


def test_cheap_fixtures_are_mutated_more_often_and_none_is_left_out() -> None:
    order = cases.in_turn(cases.DEFAULT)
    assert set(order) == set(cases.DEFAULT) >= cases.DEAR | cases.MIDDLING
    assert order[: len(cases.DEFAULT)] == cases.DEFAULT
    assert {order.count(name) for name in cases.DEAR} == {1}
    assert 10_000 // len(order) > 60
    assert cases.in_turn(FIXTURES) == FIXTURES * cases.OFTEN


def test_a_seed_says_which_mutant(everything: Case) -> None:
    first, again, other = (mutate(everything, seed) for seed in ((1, 2), (1, 2), (1, 3)))
    assert first == again != other


def test_source_lines_survive_and_neighbours_are_known(everything: Case) -> None:
    module = parse_module(everything.partitioned, make_context())
    found = {mlir.name(op): lines(op) for op in mlir.program(module)}
    assert found["all_reduce"] == (("train.py:2",), ("train.py:1", "train.py:3")), "through a transpose without a line"
    mutant = mutate(everything, (0,), [o for o in OPERATORS if o.name == "drop scale"])
    assert mutant is not None
    sites = {str(op.location) for op in load(mutant.module).main.ops}
    assert {"train.py:2", "train.py:3"} <= sites


def test_what_a_loop_hands_on_is_next_to_it(everything: Case) -> None:
    (keep,) = [operator for operator in OPERATORS if operator.name == "keep carried"]
    mutant = mutate(everything, (3,), [keep])
    assert mutant is not None
    assert "train.py:4" in mutant.near


@pytest.mark.parametrize(
    ("locations", "expected"), [((), "none"), (("a:1", "b:2"), "own"), (("b:2", "c:3"), "near"), (("c:3",), "far")]
)
def test_what_a_finding_names(locations: tuple[str, ...], expected: str) -> None:
    assert named(Mutant(b"", "", "", "", ("a:1",), ("b:2",)), locations) == expected


# Truth


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", FIXTURES)
def test_the_truth_of_a_good_module_and_a_bad_one(name: str, cache: Path, many: Executor) -> None:
    case = cases.read_case(cache, name)
    judge = Judge(case, many)
    assert judge.judge(case.partitioned).truth is Truth.EQUAL
    wrong = mutate(case, (0,), [o for o in OPERATORS if o.name == "drop collective"])
    assert wrong is not None
    assert judge.judge(wrong.module).truth is Truth.DIFFERS
    assert judge.judge(b"no module").truth is Truth.INVALID


def test_pairs_by_hand_are_kept_without_shardings(tmp_path: Path, many: Executor) -> None:
    """Where results lie is what XLA says: neither module does. What nobody distributed is not kept."""
    mesh = AbstractMesh((8,), ("x",), axis_types=(AxisType.Auto,))
    given = jax.ShapeDtypeStruct((16, 2), jnp.float32)
    whole = jax.jit(lambda x: 2.0 * x.sum(0)).trace(given)
    parts = jax.shard_map(
        lambda x: lax.psum(2.0 * x.sum(0), "x"), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False
    )
    recording.keep(tmp_path, "test_sums", whole, jax.jit(parts).trace(given))
    recording.keep(tmp_path, "test_sums", whole, whole)
    (name,) = cases.kept(tmp_path)
    case = cases.read_case(tmp_path, name)
    assert name.startswith("sums-") and case.mesh == (8,)
    judge = Judge(case, many)
    assert judge.judge(case.partitioned).truth is Truth.EQUAL
    wrong = mutate(case, (0,), [o for o in OPERATORS if o.name == "drop collective"])
    assert wrong is not None
    assert judge.judge(wrong.module).truth is Truth.DIFFERS


def test_distances_are_of_the_worst_device() -> None:
    sharding = parse_hlo_sharding("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", 2, 4)
    assert sharding is not None and not isinstance(sharding, tuple)
    whole = np.arange(8.0).reshape(4, 2)
    shards = Shards(values := cut(whole, sharding), starts(sharding, values))
    assert values.shape == (4, 2, 2)
    assert distance(whole, shards) == 0
    values[3, 1, 1] += 0.7
    assert distance(whole, shards) == pytest.approx(0.1)
    values[3, 1, 1] = np.nan
    assert distance(whole, shards) == np.inf
    whole[3, 1] = values[3, 1, 1] = values[2, 1, 1] = np.inf
    assert distance(whole, shards) == 0


# The campaign


@pytest.mark.parametrize("sample", ["small", pytest.param("large", marks=pytest.mark.slow)])
def test_no_verdict_on_a_sample_is_wrong(sample: str, cache: Path, tmp_path: Path) -> None:
    """Stopped in the middle, and gone on with."""
    proving, refuting = SAMPLES[sample]
    options = Options(FIXTURES, cache, tmp_path, seed=3, refuted_of=0)
    Campaign(options, lambda record: None).run(range(proving))
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write('{"number": 1')  # as a kill leaves it
    records = read_records(tmp_path)
    assert sorted(record["number"] for record in records) == list(range(proving))
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    Campaign(replace(options, refuted_of=1), records.append).run(range(proving, proving + refuting))
    assert sorted(record["number"] for record in read_records(tmp_path)) == list(range(proving + refuting))
    wrong = [r for r in records if surprise(r) not in (None, "unknown")]
    assert not wrong, [(r["fixture"], r["number"], r["what"], r["truth"], r["verdict"]) for r in wrong]
    assert sum(record["truth"] == Truth.DIFFERS for record in records) > len(records) // 2
    assert any(record["verdict"] == "REFUTED" for record in records)
    assert "differ" in render(records)


def test_a_worker_that_takes_too_long_is_replaced(cache: Path) -> None:
    worker = Worker(cache, 1e-3)
    case = cases.read_case(cache, FIXTURES[0])
    try:
        assert worker.verify(FIXTURES[0], case.partitioned).verdict == "timeout"
        worker.limit = 60
        assert worker.verify(FIXTURES[0], case.partitioned).verdict == "PROVED"
    finally:
        worker.close()


@pytest.mark.parametrize(("truth", "verdict"), [("differs", "crash"), ("invalid", "UNKNOWN")])
def test_what_a_signal_ended_is_no_result(
    truth: str, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = Campaign(Options(FIXTURES, tmp_path, tmp_path), report=lambda record: None)

    def run(line: Line, number: int) -> tuple[Record, None]:
        if number == 1:
            campaign.stopped.set()
        return _record(truth, verdict, number=number), None

    monkeypatch.setattr(Line, "run", run)
    campaign.run(range(3))
    assert [record["number"] for record in read_records(tmp_path)] == [0]


def _record(truth: str, verdict: str, **more: object) -> Record:
    common = {"fixture": "f", "operator": "regroup", "digest": "a", "named": "own", "seconds": {"run": 1.0}}
    return {**common, "truth": truth, "verdict": verdict, **more}


def test_surprises_and_the_table() -> None:
    assert surprise(_record("differs", "PROVED")) == "false-proved"
    assert surprise(_record("equal", "REFUTED")) == "false-refuted"
    assert surprise(_record("equal", "error")) == "error"
    assert surprise(_record("differs", "UNKNOWN")) == "unknown"
    assert surprise(_record("equal", "PROVED")) is None
    assert surprise(_record("differs", "UNKNOWN", refute=False)) is None
    assert surprise(_record("differs", "REFUTED", wrongly_proved=[1])) == "false-proved"
    records = [
        _record("differs", "REFUTED"),
        _record("differs", "REFUTED", again=0),
        _record("equal", "PROVED", digest="b"),
        _record("differs", "UNKNOWN", digest="c", refute=False),
    ]
    assert len(distinct(records)) == 3
    table = render(records)
    assert "3 different mutants of 1 fixtures (4 made)" in table
    assert "REFUTED: 1 of 1" in table
    assert "| regroup | 1 |  | 1 |  | 1 |  |  |  | 1 |  |" in table


def test_some_mutants_may_take_all_that_a_verification_may() -> None:
    options = Options(("mlp_dp", "mlp_tp"), Path(), Path(), refuted_of=0, with_all_of=3)
    drawn = [number for number in range(900) if options.is_one_of(options.with_all_of, number)]
    assert 250 < len(drawn) < 350 and 100 < sum(number % 2 for number in drawn) < 200
    assert drawn == [number for number in range(900) if options.is_one_of(3, number)]
    assert not any(options.is_one_of(options.refuted_of, number) for number in range(900))
    assert all(options.is_one_of(1, number) for number in range(900))
    records = [_record("differs", "UNKNOWN", digest=name, effort=name, refute=False) for name in ("brief", "normal")]
    assert "(1 of those that differ were tried with all" in render(records)


def test_equal_mutants_are_judged_once(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the fixture's results are told apart: one that differs and is proved is a surprise, whatever others are."""
    one = Mutant(cases.read_case(cache, FIXTURES[0]).partitioned, "regroup", "nothing", "", (), ())
    monkeypatch.setattr(Worker, "mutate", lambda *_: one)
    monkeypatch.setattr(Judge, "judge", lambda *_: Outcome(Truth.DIFFERS, 50.0, "result 0", (0,)))
    records: list[Record] = []
    Campaign(Options(FIXTURES[:1], cache, tmp_path, refuted_of=0), records.append).run(range(2))
    assert [record.get("again") for record in records] == [None, 0]
    assert records[0]["wrongly_proved"] == [0] and surprise(records[0]) == "false-proved"
