"""What is asked is what the user wrote: XLA's own account of the program, later in its pipeline, proves nothing."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify.passes.chain import between
from hlo_verify.passes.load.load import load
from hlo_verify.report import Report, Verdict
from hlo_verify.session import Session
from hlo_verify.xla.partition import partition

MESH = AbstractMesh((4,), ("x",))


def on(*axes: str | None) -> NamedSharding:
    return NamedSharding(MESH, P(*axes))


def text(function: Any, *arguments: tuple[int, ...], places: tuple[Any, Any]) -> str:
    """The StableHLO of a function of so large arguments, with the shardings of arguments and results."""
    jitted = jax.jit(function, in_shardings=places[0], out_shardings=places[1])
    shapes = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in arguments)
    return str(jitted.trace(*shapes).lower(lowering_platforms=("cpu",)).as_text(debug_info=True))


def matmul(x: jax.Array, w: jax.Array) -> jax.Array:
    """Proved as it stands."""
    return jnp.tanh(x @ w - 3.0) * 5.0 - x


def convolve(x: jax.Array, w: jax.Array) -> jax.Array:
    """Proved by way of what XLA annotated: devices exchange their borders."""
    y = jax.lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
    return jnp.tanh(y - 3.0) * 5.0 - x


def turns(x: jax.Array, w: jax.Array) -> jax.Array:
    """Proved without what the loop carries for nothing."""

    def body(carried: jax.Array, _: None) -> tuple[jax.Array, None]:
        return jnp.tanh(carried @ w - 3.0) * 5.0 - carried, None

    return jax.lax.scan(body, x, None, length=4)[0]


def folds(x: jax.Array, w: jax.Array) -> jax.Array:
    """Proved with constants that XLA folds read as what they were folded from."""
    return jnp.tanh(x @ w / jnp.sqrt(8.0) - 3.0) * 5.0 - x


PROGRAMS = {
    "directly": text(matmul, (8, 8), (8, 8), places=((on("x"), on()), on("x"))),
    "a convolution": text(convolve, (1, 16, 4), (3, 4, 4), places=((on(None, "x"), on()), on(None, "x"))),
    "folded constants": text(folds, (8, 8), (8, 8), places=((on("x"), on()), on("x"))),
    "a loop": text(turns, (8, 8), (8, 8), places=((on("x"), on()), on("x"))),
}
MISCOMPILES = {
    "another constant": ("constant(3)", "constant(2)"),
    "another operation": ("tanh(", "sine("),
    "a lost operation": ("tanh(", "copy("),
    "another sign": ("subtract(", "add("),
}
"""What a pass before the partitioner might do to a program: in the text of both modules behind it."""


@functools.cache
def compiled(program: str) -> tuple[str, str]:
    """What XLA annotated, and what it partitioned."""
    with partition(program) as job:
        made = job.wait()
        return made.annotated.read_text(), made.partitioned.read_text()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_went_wrong_before_the_partitioner_is_found(name: str) -> None:
    given, (annotated, partitioned) = PROGRAMS[name], compiled(PROGRAMS[name])
    right = hlo_verify.verify(given, partitioned, annotated=annotated)
    assert right.verdict is Verdict.PROVED
    assert ("what XLA annotated" in right.compared) == (name == "folded constants")
    assert any("sqrt(8), rounded" in each for each in right.assumptions) == (name == "folded constants")
    for before, after in MISCOMPILES.values():
        wrong = [half.replace(before, after) for half in (annotated, partitioned)]
        assert wrong[0] != annotated and wrong[1] != partitioned
        assert hlo_verify.verify(*wrong, refute=False).verdict is Verdict.PROVED, "they are a pair"
        assert hlo_verify.verify(given, wrong[1], annotated=wrong[0]).verdict is Verdict.REFUTED


def test_a_wrong_account_of_the_program_alone_changes_nothing() -> None:
    """It only helps: what is proved of a right partitioned module never leans on an annotated one that is wrong."""
    for name, given in PROGRAMS.items():
        annotated, partitioned = compiled(given)
        report = hlo_verify.verify(given, partitioned, annotated=annotated.replace("tanh(", "sine("), refute=False)
        assert report.verdict is Verdict.PROVED, name
        assert "what XLA annotated" not in report.compared


TWO = """\
module @jit_f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<8xf32> {mhlo.sharding = "{replicated}"})
      -> (tensor<8xf32> {mhlo.sharding = "{replicated}"}, tensor<8xf32> {mhlo.sharding = "{replicated}"}) {
    %y = stablehlo.FIRST %x : tensor<8xf32>
    %z = stablehlo.SECOND %x : tensor<8xf32>
    return %y, %z : tensor<8xf32>, tensor<8xf32>
  }
}
"""


def two(first: str, second: str) -> str:
    return TWO.replace("FIRST", first).replace("SECOND", second)


def test_a_result_that_the_annotated_module_computes_otherwise_is_not_proved_by_it() -> None:
    """Of two results, one is what was given: what is behind proves that one alone."""
    given, made = two("tanh", "exponential"), two("sine", "exponential")
    report = hlo_verify.verify(given, made, annotated=made, refute=False)
    assert [result.verdict for result in report.results] == [Verdict.UNKNOWN, Verdict.PROVED]


NUMBERED = """
    %n = stablehlo.partition_id : tensor<ui32>
    %c = stablehlo.convert %n : (tensor<ui32>) -> tensor<f32>"""
NOTHING = """
    %c = stablehlo.constant dense<0.0> : tensor<f32>"""
MULTIPLIED = """\
module @jit_f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<8xf32> {mhlo.sharding = "{replicated}"})
      -> (tensor<8xf32> {mhlo.sharding = "{replicated}"}) {FACTOR
    %f = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %y = stablehlo.multiply %x, %f : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
"""


@pytest.mark.parametrize("numbered", ["given", "annotated", "both"])
def test_what_numbers_devices_is_not_linked_as_if_there_were_one(numbered: str) -> None:
    """On a single device, a factor that is the device's number is 0."""
    given, annotated = (NUMBERED if numbered in (name, "both") else NOTHING for name in ("given", "annotated"))
    first, second, plain = (load(MULTIPLIED.replace("FACTOR", each)) for each in (given, annotated, NOTHING))
    with Session().on() as session:
        assert between._linked(first, second, session)[:2] == (frozenset(), None)
        assert between._linked(plain, plain, session)[0] == {0}


# Where arguments and results lie

SHARDS = """\
module @jit_f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x8xf32> ARGUMENT) -> (tensor<8x8xf32> RESULT) {
    %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
"""
ROWS, COLUMNS = "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}"
BACKWARDS, WHOLE = "{devices=[4,1]3,2,1,0}", "{replicated}"


def placed(argument: str, result: str) -> str:
    """The program with these shardings; without one where the text is empty."""
    said = {"ARGUMENT": argument, "RESULT": result}
    program = SHARDS
    for word, sharding in said.items():
        program = program.replace(word, f'{{mhlo.sharding = "{sharding}"}}' if sharding else "")
    return program


def asked(stated: str, made: str) -> Report:
    """The verdict for a program, where XLA compiled one with other shardings."""
    annotated, partitioned = compiled(made)
    return hlo_verify.verify(stated, partitioned, annotated=annotated)


@pytest.mark.parametrize(
    ("stated", "made"),
    [((ROWS, a), (ROWS, b)) for a in (ROWS, COLUMNS, BACKWARDS, WHOLE) for b in (ROWS, COLUMNS, BACKWARDS) if a != b]
    + [((a, ROWS), (b, ROWS)) for a in (ROWS, COLUMNS, BACKWARDS, WHOLE) for b in (ROWS, COLUMNS) if a != b],
)
def test_the_shardings_that_the_user_states_are_demanded(stated: tuple[str, str], made: tuple[str, str]) -> None:
    report = asked(placed(*stated), placed(*made))
    assert report.verdict is Verdict.REFUTED or "the module states that" in report.results[0].reason
    assert report.verdict is not Verdict.PROVED


@pytest.mark.parametrize(("argument", "result"), [(ROWS, COLUMNS), (BACKWARDS, ROWS), (ROWS, WHOLE)])
def test_what_is_left_open_is_taken_from_the_compiler_and_said(argument: str, result: str) -> None:
    made = placed(argument, result)
    report = asked(placed(argument, ""), made)
    assert report.verdict is Verdict.PROVED
    (said,) = report.left_open
    assert said.startswith("result result[0], which XLA returns: ")
    report = asked(placed("", result), made)
    assert report.verdict is Verdict.PROVED
    assert report.left_open[0].startswith("argument arg0, which XLA takes: ")
    assert asked(made, made).left_open == ()


SHARDY = """\
module @jit_f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, RESULT>}) {
    %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
"""


@pytest.mark.parametrize(
    ("stated", "made", "verdict"),
    [
        ('[{"x", ?}, {}]', '[{"x", "y"}, {}]', Verdict.PROVED),
        ('[{"x", ?}, {?}]', '[{"x"}, {"y"}]', Verdict.PROVED),
        ("[{?}, {?}]", '[{}, {"y", "x"}]', Verdict.PROVED),
        ('[{"y", ?}, {}]', '[{"x", "y"}, {}]', Verdict.UNKNOWN),
        ('[{"y", ?}, {}]', '[{"x"}, {}]', Verdict.REFUTED),
    ],
)
def test_an_open_dimension_may_be_split_further(stated: str, made: str, verdict: Verdict) -> None:
    report = asked(SHARDY.replace("RESULT", stated), SHARDY.replace("RESULT", made))
    assert report.verdict is verdict
    assert bool(report.left_open) == (verdict is Verdict.PROVED)


def test_the_report_says_what_was_compared(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(PROGRAMS["directly"])
    report = hlo_verify.verify(tmp_path / "m.mlir")
    assert report.verdict is Verdict.PROVED
    assert report.compared == "the module as it was given (m.mlir) with the partitioned one"


@pytest.mark.parametrize("which", ["argument", "result"])
def test_an_annotation_that_places_nothing_is_not_taken_for_an_open_one(which: str) -> None:
    said = {"argument": placed("{manual}", ROWS), "result": placed(ROWS, "{manual}")}[which]
    with pytest.raises(hlo_verify.InputError, match=f"{which} .* is annotated with {{manual}}"):
        asked(said, placed(ROWS, ROWS))


def test_the_module_says_for_how_many_devices_it_is() -> None:
    two = placed("", "").replace("num_partitions = 4", "num_partitions = 2")
    with pytest.raises(hlo_verify.InputError, match="for 2 devices and the partitioned one for 4"):
        asked(two, placed(ROWS, ROWS))


def test_both_steps_of_a_proof_are_checked_again() -> None:
    annotated, partitioned = compiled(PROGRAMS["folded constants"])
    second = hlo_verify.verify(annotated, partitioned, recheck=True).recheck
    both = hlo_verify.verify(PROGRAMS["folded constants"], partitioned, annotated=annotated, recheck=True)
    assert both.verdict is Verdict.PROVED
    assert second is not None and both.recheck is not None
    assert both.recheck.steps > second.steps
    assert both.recheck.agreed > second.agreed
    assert not both.recheck.disagreements
