"""What readings of constants may take where a module is not proved."""

from __future__ import annotations

import pytest

from hlo_verify.meter import TERM
from hlo_verify.passes.chain import between, proofs
from hlo_verify.passes.chain.between import Question, answer
from hlo_verify.passes.diagnose.examine import Examination
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.reports import nothing
from hlo_verify.report import Report
from hlo_verify.session import EnoughError, Session
from tests.support.pairs import REPLICATED, module, on

BODY = """
    %a = stablehlo.constant dense<0.9> : tensor<f32>
    %b = stablehlo.constant dense<0.1> : tensor<f32>
    %p = stablehlo.multiply %x, %a : tensor<f32>
    %q = stablehlo.multiply %p, %b : tensor<f32>
    %r = stablehlo.FUNCTION %q : tensor<f32>
    return %r : tensor<f32>"""


@pytest.mark.parametrize("is_cut", [False, True])
def test_all_walks_over_readings_of_constants_together_take_what_one_may(
    is_cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a walk took is gone for those after it, whether or not it came to an end."""
    typed = f"tensor<f32> {on(REPLICATED)}"
    pair = [load(module(f"%x: {typed}", typed, BODY.replace("FUNCTION", name), 1)) for name in ("sine", "cosine")]
    asked: list[float] = []
    session = Session()

    def examined(*_: object, **__: object) -> Examination:
        session.meter.begin(8 * TERM)
        return Examination(nothing(pair[0], 1), {})

    def proved(*_: object, most: float, **__: object) -> Report:
        asked.append(most)
        session.meter.charge_terms(5)
        if is_cut:
            raise EnoughError
        return nothing(pair[0], 1)

    monkeypatch.setattr(between, "examine", examined)
    monkeypatch.setattr(between, "terms_left", lambda *_: 8)
    monkeypatch.setattr(proofs, "prove_at_once", proved)
    monkeypatch.setattr(proofs, "forms", lambda first, second: [(first, second)] * 3)
    answer(Question(*pair), session=session)
    assert asked == [8, 3]
    assert session.spent().limits == ("wrong_work",)
