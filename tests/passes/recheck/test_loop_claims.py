# ruff: noqa: E501 (modules as MLIR prints them)
"""What a proof claims about loops and branches agrees with sound proofs, and fails where the loop rule is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from hlo_verify.index import expr
from hlo_verify.ops import control, counting, matching
from hlo_verify.passes.load.load import load
from hlo_verify.passes.recheck.answer import Task, answer
from hlo_verify.passes.recheck.claims import Claim
from hlo_verify.passes.recheck.questions import Nesting, question
from hlo_verify.passes.recheck.recheck import record
from hlo_verify.session import Session
from hlo_verify.terms import guards
from tests.support.pairs import module, on

BODY = """
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %trips = stablehlo.constant dense<70> : tensor<i32>
    %out:4 = stablehlo.while(%i = %zero, %h = %x, %k = %w, %s = %x) : tensor<i32>, tensor<{x}xf32>, tensor<{w}xf32>, tensor<{x}xf32>
      cond {{
        %go = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
      }} do {{
        %part = stablehlo.dot_general %h, %k, contracting_dims = [1] x [0] : (tensor<{x}xf32>, tensor<{w}xf32>) -> tensor<8x64xf32>
        {exchange}
        %add = stablehlo.add %s, %mine : tensor<{x}xf32>
        %next = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %next, %mine, %k, %add : tensor<i32>, tensor<{x}xf32>, tensor<{w}xf32>, tensor<{x}xf32>
      }}
    %pick = stablehlo.remainder %out#0, %trips : tensor<i32>
    %r = "stablehlo.case"(%pick) ({{
      stablehlo.return %out#3 : tensor<{x}xf32>
    }}, {{
      stablehlo.return %out#1 : tensor<{x}xf32>
    }}) : (tensor<i32>) -> tensor<{x}xf32>
    return %out#1, %r : tensor<{x}xf32>, tensor<{x}xf32>"""

SPLIT = on("{devices=[1,4]<=[4]}")
LOGICAL = module(
    f"%x: tensor<8x64xf32> {SPLIT}, %w: tensor<64x64xf32> {on('{devices=[4,1]<=[4]}')}",
    f"tensor<8x64xf32> {SPLIT}, tensor<8x64xf32> {SPLIT}",
    BODY.format(x="8x64", w="64x64", exchange="%mine = stablehlo.negate %part : tensor<8x64xf32>"),
    4,
)
SCATTER = """%sum = "stablehlo.reduce_scatter"(%part) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %both = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %both : tensor<f32>
        }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, scatter_dimension = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<8x64xf32>) -> tensor<8x16xf32>
        %mine = stablehlo.negate %sum : tensor<8x16xf32>"""
PARTITIONED = module(
    "%x: tensor<8x16xf32>, %w: tensor<16x64xf32>",
    "tensor<8x16xf32>, tensor<8x16xf32>",
    BODY.format(x="8x16", w="16x64", exchange=SCATTER),
    4,
)


def _wrong(claims: list[Claim], levels: int = 3) -> Counter[str]:
    """What does not agree of claims about loops and branches, though definitions were taken apart."""
    nesting, found = Nesting(), Counter[str]()
    for claim in claims:
        if claim.what.split()[0] not in ("while", "case"):
            continue
        for level in range(levels + 1):
            asked = question(claim, nesting, level)
            if answer(Task(asked.sides, asked.final, 300)).agrees:
                break
        else:
            found[claim.what] += 1
    return found


def test_agrees_with_a_sound_induction() -> None:
    recorder = record(load(LOGICAL), load(PARTITIONED), Session())
    assert not recorder.unwritten
    assert not _wrong(recorder.claims)
    found = Counter(claim.what for claim in recorder.claims)
    # two loops; their counter, and two shards of what is carried
    assert found["while starts"] == 2 + 2
    assert found["while goes on"] == found["while counts"] == 2
    assert found["while steps"] == found["while ends"] == 2 * 2 + 2


def _believing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(matching.Shards, "agree", lambda shards, found, relation: True)


def _one_turn_more(patch: pytest.MonkeyPatch) -> None:
    count = counting._count
    patch.setattr(counting, "_count", lambda test, t: (count(test, t) or 0) + 1)


def _two_at_a_time(patch: pytest.MonkeyPatch) -> None:
    step = counting._step
    patch.setattr(counting, "_step", lambda *args: (step(*args) or 0) * 2)


Seed = Callable[[pytest.MonkeyPatch], None]

SEEDS: dict[str, tuple[Seed, str, str, set[str]]] = {
    "a hypothesis that is not checked: a step": (
        _believing,
        "%mine = stablehlo.negate %sum",
        "%mine = stablehlo.abs %sum",
        {"while steps"},
    ),
    "a hypothesis that is not checked: the start": (_believing, "%h = %x", "%h = %y", {"while starts"}),
    "one turn more": (_one_turn_more, "", "", {"while goes on"}),
    "two at a time": (_two_at_a_time, "", "", {"while steps"}),
}


@pytest.mark.parametrize("name", SEEDS)
def test_finds_a_mistake_of_the_loop_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, old, new, wrong = SEEDS[name]
    text = PARTITIONED.replace(old, new) if old else PARTITIONED
    text = text.replace("%zero = ", "%y = stablehlo.negate %x : tensor<8x16xf32>\n    %zero = ")
    logical, partitioned = load(LOGICAL), load(text)
    seed(monkeypatch)
    assert wrong <= set(_wrong(record(logical, partitioned, Session()).claims))


def test_finds_a_mistake_of_the_branch_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    logical, partitioned = load(LOGICAL), load(PARTITIONED)
    one_on = SimpleNamespace(interval=lambda form, lo, hi: guards.interval(expr.shift(form, 1), lo, hi))
    monkeypatch.setattr(control, "guards", one_on)
    assert "case" in _wrong(record(logical, partitioned, Session()).claims)
