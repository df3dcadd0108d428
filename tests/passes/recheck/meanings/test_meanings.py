"""The second transcription of every operation agrees with the first on random small programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_verify import jaxlib_api
from hlo_verify.index import expr
from hlo_verify.ops import RULES, counted_bits
from hlo_verify.ops.induction import LoopBook
from hlo_verify.ops.values import Context, Value, positions, result
from hlo_verify.passes.load.load import load
from hlo_verify.passes.recheck.answer import Outcome, Task, answer
from hlo_verify.passes.recheck.claims import Recorder
from hlo_verify.passes.recheck.meanings import MEANINGS, UnwrittenError, free_function
from hlo_verify.passes.recheck.plain import BudgetError
from hlo_verify.passes.recheck.questions import Nesting, question
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Poly, tensor
from tests.ops.cases import CASES
from tests.ops.cases.drawing import Case


@pytest.fixture(scope="module", autouse=True)
def _one_context() -> Iterator[None]:
    """Making a context takes longer than reading these programs."""
    with pytest.MonkeyPatch.context() as patch:
        context = jaxlib_api.make_context()
        patch.setattr(jaxlib_api, "make_context", lambda: context)
        yield


FREE = {name for name, meaning in MEANINGS.items() if meaning is free_function}


@pytest.mark.drawn(25)
@pytest.mark.parametrize("name", sorted({*MEANINGS, "case", "if"} & set(CASES) - FREE))
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_meanings_agree_with_rules(name: str, data: st.DataObject) -> None:
    _agrees(data.draw(CASES[name]))


@settings(max_examples=3 * len(FREE & set(CASES)), deadline=None)
@given(data=st.data())
def test_free_functions_agree_with_rules(data: st.DataObject) -> None:
    _agrees(data.draw(CASES[data.draw(st.sampled_from(sorted(FREE & set(CASES))))]))


COUNTED = """module @m {{
  func.func public @main() -> tensor<23x{0}> {{
    %place = stablehlo.iota dim = 0 : tensor<23x{0}>
    %first = stablehlo.constant dense<{1}> : tensor<23x{0}>
    %n = stablehlo.add %place, %first : tensor<23x{0}>
    %count = "stablehlo.{2}"(%n) : (tensor<23x{0}>) -> tensor<23x{0}>
    return %count : tensor<23x{0}>
  }}
}}"""


@pytest.mark.parametrize(("dtype", "first"), [("i32", 0), ("i32", 100), ("ui8", 3), ("i8", 90)])
@pytest.mark.parametrize("name", ["popcnt", "count_leading_zeros"])
def test_counted_bits(name: str, dtype: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of places are counted a second time, and one too many is seen."""
    text = COUNTED.format(dtype, first, name)
    assert _outcome_of(name, text) in (Outcome.SAME, Outcome.EQUAL)
    right = counted_bits.counted

    def one_too_many(*args: Any) -> Poly | None:
        count = right(*args)
        return None if count is None else algebra.add(count, ONE)

    monkeypatch.setattr(counted_bits, "counted", one_too_many)
    assert _outcome_of(name, text) is Outcome.DIFFERENT


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_multiples_that_wrap_are_left_unchecked(name: str) -> None:
    """The cube of 64 and of 128 is 0 modulo 256, as the rule has it, and not to a meaning without bounds."""
    text = f"""module @m {{
      func.func public @main(%a: tensor<2xi8>) -> tensor<2xi8> {{
        %place = stablehlo.iota dim = 0 : tensor<2xi8>
        %size = stablehlo.constant dense<64> : tensor<2xi8>
        %some = stablehlo.multiply %place, %size : tensor<2xi8>
        %all = stablehlo.add %some, %size : tensor<2xi8>
        %square = stablehlo.multiply %all, %all : tensor<2xi8>
        %cube = stablehlo.multiply %square, %all : tensor<2xi8>
        %chosen = stablehlo.{name} %a, %cube : tensor<2xi8>
        return %chosen : tensor<2xi8>
      }}
    }}"""
    assert name not in [what for what, _, _ in _outcomes(text)]


TABLE = """module @m {{
  func.func public @main() -> tensor<2xi8> {{
    %table = stablehlo.constant dense<[{1}]> : tensor<2x{0}>
    %cut = stablehlo.convert %table : (tensor<2x{0}>) -> tensor<2xi8>
    return %cut : tensor<2xi8>
  }}
}}"""


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("numbers", ["3.0, 1.25", "-3.5, 1.25", "3.0, 300.0"])
def test_integers_of_a_table(dtype: str, numbers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of positive numbers are rounded down, which is known of the table; of negative ones they are not."""
    text = TABLE.format(dtype, numbers)
    assert _outcome_of("convert", text) in (Outcome.SAME, Outcome.EQUAL)
    monkeypatch.setitem(RULES, "convert", lambda op, args, context: result(op, apply(real("floor"), (args[0].term,))))
    expected = Outcome.EQUAL if numbers == "3.0, 1.25" else Outcome.DIFFERENT
    assert _outcome_of("convert", text) is expected


def _outcome_of(name: str, text: str) -> Outcome:
    (outcome,) = (outcome for what, outcome, _ in _outcomes(text) if what == name)
    return outcome


def _agrees(case: Case) -> None:
    for what, outcome, why in _outcomes(case.program.text, case.partitions, case.replicas):
        assert outcome is not Outcome.DIFFERENT, f"{what}: {why}\n{case.program.text}"


def _outcomes(text: str, partitions: int = 0, replicas: int = 1) -> list[tuple[str, Outcome, str]]:
    """What becomes of the claim about each result of each operation of a program."""
    module = load(text)
    devices = partitions * replicas
    device = expr.var("d", "", devices) if devices else None
    recorder = Recorder()
    arguments = []
    for name, kind in zip(module.argument_names, module.main.argument_types, strict=True):
        where = positions(kind.shape)
        at = where if device is None else (expr.of_var(device), *where)
        arguments.append(Value(kind, algebra.read(tensor("argument", name, kind.dtype, kind.shape), at)))
    context = Context(
        device,
        max(1, partitions),
        replicas,
        recorder.run,
        loops=LoopBook(lambda *_: []),
        observe=lambda op, values: values,
    )
    recorder.run(module.main, arguments, context)
    found = []
    for claim in recorder.claims:
        try:
            asked = question(claim, Nesting())
        except (UnwrittenError, BudgetError):
            continue
        finding = answer(Task(asked.sides, asked.final, 100))
        if finding.outcome is not Outcome.DIFFERENT or (asked.final and not claim.may_wrap):
            found.append((claim.what, finding.outcome, finding.why))
    return found
