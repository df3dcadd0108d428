"""Markdown for issues and summaries of jobs, as a parser of Markdown sees it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from hlo_verify.diagnostics import Input, Mismatch
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.linter.lint import lint
from hlo_verify.linter.render import to_markdown
from hlo_verify.render import Failure, Outcome
from hlo_verify.render.issues import issue
from hlo_verify.render.markdown import MOST, render
from hlo_verify.render.origin import Origin
from hlo_verify.report import Finding, Report, Verdict
from hlo_verify.witness import Point, Witness
from tests.programs import FINDING, chain, report

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
PARSER = MarkdownIt("commonmark").enable("table")
ORIGIN = Origin("hlo-verify a.mlir b.hlo", (("hlo-verify", "0.1.0"), ("jaxlib", "0.10.2")))
HOSTILE = "</details>`` | <img src=x> **b** [a](b) @octocat\n# head\n```\n~~~"
ALLOWED = {"<details>", "<summary>", "</summary>", "</details>", "<code>", "</code>", "<!-- -->"}


def looked_at(text: str) -> str:
    """The document as HTML, after a look at whether it is only what this project writes."""
    assert len(text.encode()) <= MOST
    page = PARSER.render(text)
    raw = [part for token in PARSER.parse(text) for part in (token, *(token.children or []))]
    tags = [tag for part in raw if part.type.startswith("html") for tag in re.findall(r"<[^>]*>", part.content)]
    assert set(tags) <= ALLOWED and tags.count("<details>") == tags.count("</details>")
    assert not {part.type for part in raw} & {"image", "link_open", "s_open"}
    assert "<strong>b</strong>" not in page
    return page


def witnessed(given: Report) -> Report:
    witness = Witness(Point(3, (5, 0), (1, 0), 2.5, -0.125), (("x", "1 everywhere"),), "by XLA")
    results = (replace(one, witness=witness if one.verdict is R else None) for one in given.results)
    return replace(given, results=tuple(results))


def test_a_refutation_says_what_is_wrong_and_how_to_see_it() -> None:
    text = render([witnessed(report(P, R))], ORIGIN)
    assert text.startswith("## REFUTED: `jit_step`\n\n1 of 2 results proved, 1 refuted on 8 devices")
    assert (
        "- **witness**: element \\[5, 0\\] is -0.125 on device 3 (\\[1, 0\\] of its shard), and should be 2.5" in text
    )
    assert "- expected  sum k<4096. x[i,k] * w[k,j]\n+ found     sum k<512. x[i,k] * w[k,j]\n" in text
    assert "```sh\nhlo-verify a.mlir b.hlo\n```" in text and "`--witness FILE.zip`" in text
    page = looked_at(text)
    assert page.count("<table>") == 2 and "<td>jaxlib</td>" in page


def test_a_witness_is_to_be_attached() -> None:
    text = render([witnessed(report(R))], replace(ORIGIN, witness="my bug.zip"))
    assert "hlo-verify --replay 'my bug.zip'\n```" in text and "The witness `my bug.zip` holds both modules" in text


def test_what_a_proof_is_subject_to_comes_first() -> None:
    given = replace(report(P), approximations=("a for b",), preconditions=("x is positive",))
    text = render([given], ORIGIN)
    assert (
        text.index("PROVED with 1 declared approximation: a for b")
        < text.index("x is positive")
        < text.index("1 result on")
    )


def test_a_proof_is_short() -> None:
    text = render([replace(report(P, P), preconditions=("tokens in [0, 32000)",), unsupported=())], ORIGIN)
    assert "Given that\n\n- tokens in \\[0, 32000)" in text
    assert looked_at(text).count("<h") == 2


@pytest.mark.parametrize("bar", ["|", ""], ids=["bar", "no bar"])
@pytest.mark.parametrize("verdict", [R, U])
def test_what_a_module_says_is_text(verdict: Verdict, bar: str) -> None:
    it = HOSTILE.replace("|", bar)
    finding = Finding(it, it, it, it, it, Mismatch.DIFFERS, it, it, (it,))
    bad = report(verdict, name=it, finding=finding)
    results = tuple(replace(one, name=it, reason=it, location=it) for one in bad.results)
    bad = witnessed(replace(bad, results=results, assumptions=(it,), preconditions=(it,), inferred=(it,)))
    origin = Origin(it, ((it, it),), it, modules=((it, it),))
    for text in (render([bad], origin), render([bad, bad], origin, several=True), issue([bad], "xla", origin)):
        page = looked_at(text)
        assert "<h1>" not in page and "@octocat" not in re.sub(r"<(pre|code)[^>]*>.*?</\1>", "", page, flags=re.DOTALL)


def test_chains_and_modules_that_could_not_be_looked_at() -> None:
    failed = Failure("a b.txt", InputError("no", Input.DAMAGED).diagnostic)
    outcomes: list[Outcome] = [chain(P, R, P), failed, report(P), report(U)]
    text = render(outcomes, ORIGIN, several=True)
    assert text.startswith("## REFUTED: 4 modules\n")
    page = looked_at(text)
    assert "The value was changed first in the pass simplification: pass-1" in page
    assert page.index("<td>REFUTED</td>") < page.index("<td>UNKNOWN</td>") < page.index("<td>PROVED</td>")
    assert looked_at(render([chain(P, P)], ORIGIN)).startswith("<h2>PROVED")


def test_it_always_fits() -> None:
    long = [replace(FINDING, found="x" * 5_000 + str(n), expected="é" * 5_000) for n in range(60)]
    each = [report(R, finding=finding).results[0] for finding in long]
    big = replace(report(), results=tuple(replace(one, index=n) for n, one in enumerate(each)))
    for text in (render([big], ORIGIN), render([big] * 3, ORIGIN, several=True), issue([big], "jax", ORIGIN)):
        looked_at(text)
        assert "do not fit here" in text and "0.10.2" in text
    looked_at(render([report(P, name=str(n)) for n in range(500)], ORIGIN, several=True))
    looked_at(render([chain(*[P] * 900)], ORIGIN))


@pytest.mark.parametrize("project", ["xla", "jax"])
def test_an_issue_has_what_the_project_asks_for(project: str) -> None:
    origin = replace(ORIGIN, partitioned_here=True, modules=(("a.mlir", "module @jit_step {}"),))
    text = issue([witnessed(report(P, R))], project, origin)
    assert text.startswith("**Title:** Wrong value on 8 devices at train.py:57: a partial value is never reduced\n")
    assert "```mlir\nmodule @jit_step {}\n```" in text
    assert "| `result[1]` | device 3, element \\[1, 0\\] of its shard | 2.5 | -0.125 |" in text
    headings = re.findall("^### (.*)", text, re.MULTILINE)
    asked = {"xla": "Versions and platform", "jax": "System info (python version, jaxlib version, accelerator, etc.)"}
    assert headings[:2] == ["Description", "Minimal reproduction"] and headings[-1] == asked[project]
    looked_at(text)


def test_an_issue_about_a_pass_names_it() -> None:
    text = issue([chain(P, R)], "xla", ORIGIN)
    assert "in the pass simplification: pass-1" in text and "`m.1.txt`" in text
    looked_at(text)


@pytest.mark.parametrize("outcome", [report(P), report(U), chain(P)], ids=["proved", "unknown", "chain"])
def test_nothing_is_reported_that_was_not_shown(outcome: Outcome) -> None:
    assert issue([outcome], "jax", ORIGIN).startswith("Nothing to report: no module was shown to be wrong.\n\n## ")


def test_findings_of_the_linter() -> None:
    wrong = (
        "HloModule m, is_scheduled=true\nENTRY e {\n  p = f32[4] parameter(0)\n  %s\n  ROOT n = f32[4] negate(p)\n}\n"
    )
    texts = {"a|b.txt": wrong % "s = (f32[4], f32[4], u32[]) copy-start(p)", "clean": wrong % ""}
    text = to_markdown([lint(text, name=name) for name, text in texts.items()])
    assert text.startswith("## hlo-verify lint: 1 error in 2 modules\n")
    assert "| error | HV703 | `s` | `line 4` | no copy-done waits for it |" in text
    assert "Without a defect: 1 module" in looked_at(text)
