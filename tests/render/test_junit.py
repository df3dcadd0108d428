"""JUnit XML, against what the schemas of Ant (JUnit.xsd) and Jenkins (junit-10.xsd) both take."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.linter.lint import lint
from hlo_verify.linter.render import to_junit
from hlo_verify.render import Failure, Outcome, overall
from hlo_verify.render.junit import Became, render
from hlo_verify.report import Disagreement, Recheck, Verdict
from tests.programs import chain, report

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
FAILED = Failure("a\x1b b.txt", InputError("no <&> \0", Input.DAMAGED).diagnostic)
NUMBER, TIME, STAMP, NAME = r"\d+", r"\d+\.\d{3}", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", r"\S+( \S+)*"
STOPPED = {"type": NAME, "message": ".*"}
ELEMENTS: dict[str, tuple[dict[str, str], str]] = {
    "testsuites": ({}, "(testsuite )*"),
    "testsuite": (
        {"name": NAME, "package": NAME, "id": NUMBER, "timestamp": STAMP, "hostname": NAME, "tests": NUMBER}
        | {"failures": NUMBER, "errors": NUMBER, "skipped": NUMBER, "time": TIME},
        "properties (testcase )*system-out system-err ",
    ),
    "properties": ({}, "(property )*"),
    "property": ({"name": NAME, "value": ".*"}, ""),
    "testcase": ({"name": NAME, "classname": NAME, "time": TIME}, "(skipped |error |failure )?"),
    "failure": (STOPPED, ""),
    "error": (STOPPED, ""),
    "skipped": (STOPPED, ""),
    "system-out": ({}, ""),
    "system-err": ({}, ""),
}
"""By element its attributes, all of which are there, and its children in order."""


def parsed(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = ELEMENTS[element.tag]
        assert element.attrib.keys() == attributes.keys(), element.tag
        for name, pattern in attributes.items():
            assert re.fullmatch(pattern, element.attrib[name], re.DOTALL), (element.tag, name, element.attrib[name])
        assert re.fullmatch(children, "".join(f"{child.tag} " for child in element)), element.tag
    for suite in root:
        found = Counter(child.tag for case in suite.iter("testcase") for child in case)
        counts = {"tests": len(list(suite.iter("testcase"))), "failures": found["failure"], "errors": found["error"]}
        assert {name: int(suite.attrib[name]) for name in counts} == counts
        assert int(suite.attrib["skipped"]) == found["skipped"]
    return root


def stopped(root: ElementTree.Element) -> list[tuple[str, str, str]]:
    """The cases that have not passed: name, what became of it, code."""
    return [(case.attrib["name"], one.tag, one.attrib["type"]) for case in root.iter("testcase") for one in case]


@given(
    st.lists(
        st.builds(lambda found: report(*found), st.lists(st.sampled_from(Verdict), max_size=4))
        | st.builds(lambda found: chain(*found), st.lists(st.sampled_from(Verdict), max_size=4))
        | st.builds(lambda left: replace(chain(P), missing=left), st.integers(0, 3))
        | st.just(FAILED),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([Became.FAILURE, Became.SKIPPED]),
)
def test_everything_has_passed_exactly_if_everything_is_proved(outcomes: list[Outcome], unknown: Became) -> None:
    root = parsed(render(outcomes, unknown=unknown))
    for suite, outcome in zip(root, outcomes, strict=True):
        assert (not stopped(suite)) is (overall([outcome]) is P)
        assert any(became == "failure" for _, became, _ in stopped(suite)) is (
            overall([outcome]) is R or (overall([outcome]) is U and unknown is Became.FAILURE and outcome is not FAILED)
        )


def test_a_case_for_each_result() -> None:
    root = parsed(render([report(P, R, U, name="step\x1b.mlir")], at=datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)))
    assert [case.attrib["name"] for case in root.iter("testcase")] == ["result[0]", "result[1]", "result[2]"]
    assert stopped(root) == [("result[1]", "failure", "HV002"), ("result[2]", "failure", "HV301")]
    suite = root[0]
    assert (suite.attrib["name"], suite.attrib["timestamp"]) == ("step\\x1b.mlir", "2024-02-03T04:05:06")
    failure = next(suite.iter("failure"))
    assert failure.attrib["message"] == "REFUTED: a partial value is never reduced"
    assert "source: train.py:57" in str(failure.text) and "expected: sum k<4096" in str(failure.text)
    said = {(one.attrib["name"], one.attrib["value"]) for one in suite.iter("property")}
    assert said >= {("verdict", "REFUTED"), ("devices", "8"), ("assumption", "no NaN")}
    assert "REFUTED  1 of 3 results proved" in str(suite.findtext("system-out"))


def test_unknown_is_skipped_where_that_is_asked_for() -> None:
    root = parsed(render([report(P, R, U)], unknown=Became.SKIPPED))
    assert stopped(root) == [("result[1]", "failure", "HV002"), ("result[2]", "skipped", "HV301")]


def test_a_case_for_each_pass() -> None:
    root = parsed(render([chain(P, R, P)]))
    assert stopped(root) == [("0001 simplification: pass-1", "failure", "HV301")]
    [suite] = root
    assert suite.attrib["tests"] == "3" and suite[1].attrib["time"] == "0.500"
    assert "compared with: m.0.txt" in str(next(suite.iter("failure")).text)


def test_a_second_check_that_disagrees_is_an_error() -> None:
    wrong = Recheck(3, 3, 2, 2, 0, (), (Disagreement("dot", "a.py:1", "x = 1"),), 1.0)
    assert stopped(parsed(render([replace(report(P), recheck=wrong)]))) == [("second check", "error", "HV902")]
    right = replace(wrong, agreed=3, disagreements=())
    assert stopped(parsed(render([replace(report(P), recheck=right)]))) == []


def test_what_could_not_be_looked_at_is_an_error() -> None:
    root = parsed(render([FAILED]))
    assert stopped(root) == [("module", "error", str(Input.DAMAGED))]
    assert root[0].attrib["name"] == "a\\x1b b.txt"


@pytest.mark.parametrize("strict", [False, True])
def test_findings_of_the_linter(strict: bool) -> None:
    wrong = (
        "HloModule m, is_scheduled=true\nENTRY e {\n  p = f32[4] parameter(0)\n  %s\n  ROOT n = f32[4] negate(p)\n}\n"
    )
    texts = {"wrong": wrong % "s = (f32[4], f32[4], u32[]) copy-start(p)", "clean": wrong % ""}
    root = parsed(to_junit([lint(text, name=name) for name, text in texts.items()], strict=strict))
    assert stopped(root) == [("HV703 s", "failure", "HV703")]
    assert [suite.attrib["tests"] for suite in root] == ["1", "1"]
