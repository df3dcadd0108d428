"""The program fuzzer: its evaluation against the reference interpreter, its pairs against the verifier."""

from __future__ import annotations

import ctypes
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hlo_verify.passes.refute import refute as refuting
from tests.support.pairs import LOGICAL, PARTIAL
from tests.support.reference import InterpreterError
from tests.support.reference import evaluate as reference
from tools.fuzz.programs import by_device, main
from tools.fuzz.programs.calls import outline
from tools.fuzz.programs.campaign import Options, examine, run, table
from tools.fuzz.programs.elementwise import DTYPES
from tools.fuzz.programs.families import FAMILIES
from tools.fuzz.programs.logical import make
from tools.fuzz.programs.machine import Machine
from tools.fuzz.programs.meanings import padded
from tools.fuzz.programs.pair import Pair, make_pair
from tools.fuzz.programs.program import UNSIGNED, Function, Kind, Node
from tools.fuzz.programs.replicas import choices
from tools.fuzz.programs.shrink import shrink
from tools.fuzz.programs.text import literal, module
from tools.fuzz.programs.truth import Truth, draw, judge
from tools.fuzz.programs.verdict import Slow, limited, verify

ELSEWHERE = ("effects", "state", "calls", "narrow")
"""Of what these compute, evaluation tells nothing twice, or the interpreter rounds too much to be compared with."""


def _pairs(family: str, seed: int, count: int) -> list[Pair]:
    found = (make_pair(family, seed, number) for number in range(count))
    return [pair for pair in found if pair is not None]


@pytest.mark.drawn(7)
@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in ELSEWHERE])
def test_evaluation_agrees_with_the_reference_interpreter(family: str, seed: int) -> None:
    """Elements of tensors that are nowhere undefined; floats are those of the type, so up to its rounding."""
    compared = 0
    for pair in _pairs(family, seed, 16):  # of most, but not of all, the interpreter has the same meaning
        if compared > 8:
            break
        function = pair.logical
        nodes = [node for block in function.body.blocks() for node in block.nodes]
        if any(node.op == "scatter" or _is_looked_up_unsigned(function, node) for node in nodes):
            continue  # the interpreter writes into the operand, which others may read, and takes 200 for -56
        generator = np.random.default_rng(seed)
        given = [draw(function.kinds[v], generator, 4) for v in function.body.arguments]
        machine = Machine(function, 4, 1, generator)
        found = machine.run(given)
        for row in np.flatnonzero(machine.defined):
            kinds = [_numpy(function.kinds[v]) for v in function.body.arguments]
            inputs = [a[row, 0].astype(kind) for a, kind in zip(given, kinds, strict=True)]
            text = module(function, 1, [""] * len(inputs), [""] * len(found))
            try:
                wanted = reference(text, inputs)
            except InterpreterError:  # it does not know every operation
                break
            for one, other in zip(found, wanted, strict=True):
                size = float(machine.greatest[row])
                np.testing.assert_allclose(
                    one[row, 0].astype(float), np.asarray(other).astype(float), rtol=1e-4, atol=1e-5 * max(1, size)
                )
            compared += 1
    assert compared


def _is_looked_up_unsigned(function: Function, node: Node) -> bool:
    looks_up = node.op in ("gather", "dynamic_slice", "dynamic_update_slice")
    return looks_up and function.kinds[node.inputs[-1]].dtype in UNSIGNED


def _numpy(kind: Kind) -> np.dtype:
    return np.dtype(np.float32) if kind.dtype == "f32" else DTYPES[kind.dtype]


@pytest.mark.drawn(8)
@pytest.mark.parametrize("family", FAMILIES)
def test_verdicts_on_random_pairs(family: str, seed: int, tmp_path: Path) -> None:
    options = Options((family,), seed, tmp_path, refuted_of=4)
    records = [run(options, number) for number in range(4)]
    assert not [record for record in records if record.get("surprise", "").startswith(("false", "crash", "error"))]


def test_pairs_of_a_seed_are_always_the_same() -> None:
    one, other = (make_pair("loops", 5, 3) for _ in range(2))
    assert one is not None and other is not None
    assert one.texts() == other.texts() and one.done == other.done


def test_most_that_is_only_partitioned_computes_the_same() -> None:
    pairs = [pair for pair in _pairs("integers", 3, 40) if not pair.done]
    truths = [judge(pair, np.random.default_rng(0)).truth for pair in pairs]
    assert len(truths) > 4 and set(truths) <= {Truth.EQUAL, Truth.UNCLEAR}


def test_what_depends_on_the_device_is_written_in_every_way_and_mostly_right() -> None:
    pairs = [pair for pair in _pairs("devices", 5, 500) if not pair.is_mutated]
    done = {each.split(": ")[-1] for pair in pairs for each in pair.done}
    assert {way.__name__.strip("_") for _, way in by_device.WAYS} <= done
    truths = [judge(pair, np.random.default_rng(0)).truth for pair in pairs]
    assert truths.count(Truth.EQUAL) > len(truths) / 2
    assert {Truth.DIFFERS, Truth.MEANINGLESS} <= set(truths)  # some of these ways are only tempting


def test_functions_that_are_called_compute_the_same() -> None:
    function = make(FAMILIES["calls"], random.Random(3))
    called = function.copy()
    assert outline(called, random.Random(1)) == "outline"
    assert "func.call" in module(called, 1, [""] * len(function.body.arguments), [""] * len(function.body.results))
    results = []
    for each in (function, called):
        generator = np.random.default_rng(2)
        given = [draw(each.kinds[v], generator, 4) for v in each.body.arguments]
        results.append(Machine(each, 4, 1, generator).run(given))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("family", ["windows", "complex", "small", "narrow"])
def test_some_pairs_of_a_family_are_proved(family: str) -> None:
    assert any(examine(pair, False)[2].verdict == "PROVED" for pair in _pairs(family, 1, 6))


def test_devices_are_replicas_in_every_way_that_stablehlo_has() -> None:
    """What is right stays so, however devices are numbered."""
    texts, proved = "", 0
    for pair in _pairs("integers", 9, 60):
        if pair.is_manual or pair.is_mutated or pair.mesh.devices < 4:
            continue
        for count in choices(pair.mesh.devices):
            spelled = replace(pair, replicas=count)
            found, outcome, judgement = examine(spelled, False)
            assert found is None and (outcome.truth is Truth.DIFFERS or judgement.verdict != "error")
            texts += spelled.texts()[1]
            proved += judgement.verdict == "PROVED" and f"num_replicas = {count} " in spelled.texts()[1]
    assert proved > 5
    assert "replica_id" in texts and "partition_id" in texts
    communicating = [line for line in texts.splitlines() if "replica_groups" in line]
    kinds = {("channel_handle" in line, "use_global_device_ids" in line) for line in communicating}
    assert kinds == {(False, False), (True, False), (True, True)}


def test_regions_are_nested_where_axes_allow_it() -> None:
    nested = [pair for pair in _pairs("integers", 9, 300) if pair.is_manual and "sdy.manual" in _inside(pair)]
    assert nested and any(examine(pair, False)[2].verdict == "PROVED" for pair in nested)


def _inside(pair: Pair) -> str:
    return pair.texts()[1].partition("sdy.manual")[2]


def test_functions_that_differ_in_names_alone_are_one() -> None:
    pairs = [pair.texts()[0] for pair in _pairs("layers", 8, 60)]
    assert any(0 < text.count("func.func private") < text.count('"func.call"') for text in pairs)


def test_mutants_are_seen_to_differ() -> None:
    pairs = [pair for pair in _pairs("integers", 3, 40) if pair.is_mutated]
    truths = [judge(pair, np.random.default_rng(0)).truth for pair in pairs]
    assert truths.count(Truth.DIFFERS) > len(truths) / 3


def test_a_pair_is_made_smaller_while_it_shows_the_same() -> None:
    pair = next(pair for pair in _pairs("integers", 4, 40) if _differs(pair) and pair.partitioned.size > 12)
    smaller = shrink(pair, _differs)
    assert _differs(smaller) and smaller.partitioned.size < pair.partitioned.size


def _differs(pair: Pair) -> bool:
    return judge(pair, np.random.default_rng(0)).truth is Truth.DIFFERS


def test_a_proof_of_what_differs_is_a_surprise(monkeypatch: pytest.MonkeyPatch) -> None:
    from tools.fuzz.programs import campaign

    pair = next(pair for pair in _pairs("integers", 4, 40) if _differs(pair))
    proved = replace(campaign.verify(*pair.texts(), False), verdict="PROVED")
    monkeypatch.setattr(campaign, "verify", lambda *_: proved)
    assert examine(pair, False)[0] == "false proof"


def test_the_command_prints_its_seed_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "2", "--seed", "11", "--jobs", "0", "--only", "truth", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("seed 11\n") and "| truth | 2 |" in said
    assert len((tmp_path / "records.jsonl").read_text().splitlines()) == 2
    assert "nothing surprising" in table([])


def test_a_judgement_leaves_the_verifier_as_it_was() -> None:
    """It makes no reports for people, but the next verification in this process does."""
    before = dict(vars(refuting))
    assert verify(LOGICAL, PARTIAL, refute=True).verdict == "REFUTED"
    assert dict(vars(refuting)) == before


def test_a_constant_of_an_unsigned_type_is_written_as_it_is_evaluated() -> None:
    assert literal([-1, 3], Kind((2,), "ui8")) == "dense<[255, 3]> : tensor<2xui8>"
    assert literal(-1, Kind((), "i8")) == "dense<-1> : tensor<i8>"


@pytest.mark.parametrize(("low", "high"), [(-3, 4), (4, -3), (-1, 1), (2, -4), (-2, 5), (0, -2)])
def test_padding_may_leave_nothing_of_the_operand(low: int, high: int) -> None:
    operand = np.arange(1.0, 3.0)
    found = padded(operand[None, None], np.zeros((1, 1)), [low], [high], [0])
    around = np.concatenate([np.zeros(9), operand, np.zeros(9)])
    assert found[0, 0].tolist() == around[9 - low : 11 + high].tolist()


def test_time_that_ends_inside_of_a_call_into_c_is_no_crash() -> None:
    def turned_into_another_error() -> None:
        try:
            while True:
                pass
        except Slow as slow:
            raise ctypes.ArgumentError(str(slow)) from None

    with pytest.raises(Slow), limited(0.01):
        turned_into_another_error()
    with pytest.raises(ctypes.ArgumentError), limited(60):
        raise ctypes.ArgumentError


def test_a_reduction_to_the_greatest_starts_from_the_least_at_0() -> None:
    """Of bytes that are all -128 the number is 0, wherever they are from: a mutant of this pair is refuted by that."""
    pair = make_pair("order", 20261124, 20525)
    assert pair is not None and pair.is_mutated
    found, outcome, judgement = examine(pair, refute=True)
    assert found is None and outcome.truth is Truth.DIFFERS and judgement.verdict == "REFUTED"


def test_infinities_of_two_signs_differ() -> None:
    """The greatest of no elements is minus infinity, the least is infinity."""
    pair = make_pair("small", 71125, 8115)
    assert pair is not None
    found, outcome, judgement = examine(pair, refute=True)
    assert found is None and outcome.truth is Truth.NAN and judgement.verdict == "REFUTED"


@pytest.mark.parametrize("number", [2863, 3356])
def test_what_vanishes_beside_infinities_is_looked_for(number: int) -> None:
    """Pairs that were PROVED once, though what is multiplied by 0 may be no number."""
    pair = make_pair("poles", 5, number)
    assert pair is not None
    found, outcome, judgement = examine(pair, refute=False)
    assert found is None and outcome.truth is Truth.NAN and judgement.verdict == "UNKNOWN"


@pytest.mark.parametrize(("family", "number"), [("floats", 8685), ("complex", 15728)])
def test_what_the_fuzzer_took_for_false_proofs(family: str, number: int) -> None:
    """Sums and products of matrices are as large as what roundings are measured by; 0 is the real part of 0 and what
    is no number."""
    pair = make_pair(family, 20261128, number)
    assert pair is not None
    found, outcome, judgement = examine(pair, refute=False)
    assert found is None and outcome.truth is Truth.EQUAL and judgement.verdict == "PROVED"
