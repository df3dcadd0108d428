"""Reports as Python users have them."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace

import pytest

import hlo_verify
from hlo_verify import NotProvedError, Verdict
from hlo_verify.render import json as json_renderer
from hlo_verify.render import text
from hlo_verify.report import Result
from hlo_verify.shown import Results, shown
from tests.programs import report

NAMES = ("result", "result[0]", "result[1]['params']['w1']", "result[1]['params']['w2']", "result[2].layers[0].weight")
RESULTS = Results(Result(n, name, Verdict.PROVED) for n, name in enumerate(NAMES))


def test_a_report_is_the_text_that_is_printed() -> None:
    found = shown(report(Verdict.PROVED, Verdict.UNKNOWN))
    assert str(found) + "\n" == text.render([found], text.Style(), several=False)
    assert str(found).splitlines()[-1].startswith("UNKNOWN  1 of 2 results proved on 8 devices")
    assert (
        repr(found) == "<Report of jit_step: UNKNOWN, 1 of 2 results proved on 8 devices, 2 stages (1 shared), 1.4 s>"
    )
    assert isinstance(found, hlo_verify.Report)


def test_a_notebook_shows_it_escaped() -> None:
    page = shown(report(Verdict.UNKNOWN))._repr_html_()
    assert page.startswith("<div") and page.rstrip().endswith("</div>")
    assert "UNKNOWN" in page and "<html" not in page and "<script" not in page
    assert "k&lt;" in page and "k<512" not in page


@pytest.mark.parametrize("verdict", [Verdict.REFUTED, Verdict.UNKNOWN])
def test_what_is_not_proved_raises(verdict: Verdict) -> None:
    found = shown(report(Verdict.PROVED, verdict))
    with pytest.raises(NotProvedError) as raised:
        found.raise_for_verdict()
    assert raised.value.report is found and str(raised.value) == str(found)
    assert isinstance(raised.value, AssertionError)
    again = pickle.loads(pickle.dumps(raised.value))
    assert again.report.verdict is verdict and str(again) == str(found)


def test_what_is_proved_is_given_back() -> None:
    found = shown(report(Verdict.PROVED))
    assert found.raise_for_verdict() is found


@pytest.mark.parametrize(
    ("path", "index"),
    [
        ("result[1]['params']['w1']", 2),
        ("1/params/w2", 3),
        ("[1]['params']['w2']", 3),
        ("2/layers/0/weight", 4),
        ("2.layers[0].weight", 4),
        ("result[0]", 1),
        ("0", 1),
        ("result", 0),
    ],
)
def test_results_by_path(path: str, index: int) -> None:
    assert RESULTS[path] is RESULTS[index]


def test_a_single_tree_is_its_own_root() -> None:
    results = Results([Result(0, "result['params']['w1']", Verdict.PROVED)])
    assert results["params/w1"] is results[0] is results["['params']['w1']"]


def test_results_that_are_not_there() -> None:
    with pytest.raises(KeyError, match=r"no result is called 'params/w1': result, result\[0\], result\[1\]"):
        _ = RESULTS["params/w1"]
    with pytest.raises(KeyError, match="2 results are called 'x': x, x"):
        _ = Results([Result(0, "x", Verdict.PROVED), Result(1, "x", Verdict.PROVED)])["x"]
    with pytest.raises(IndexError):
        _ = RESULTS[7]
    assert RESULTS[1:3] == (RESULTS[1], RESULTS[2])


def test_it_is_copied_replaced_and_written_as_any_other() -> None:
    found = shown(report(Verdict.PROVED, Verdict.UNKNOWN))
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found
    assert replace(found, devices=2).devices == 2
    document = json.loads(json_renderer.render([found], several=False))
    assert document == json.loads(json_renderer.render([report(Verdict.PROVED, Verdict.UNKNOWN)], several=False))
