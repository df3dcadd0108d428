"""Names, terms and places that are made to break a report: in every format it is still one, and says its verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hlo_verify.diagnostics import Diagnostic, Input, Severity
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.diagnose.scenes import excerpt
from hlo_verify.render import FORMATS, PROJECTS, Failure, Outcome
from hlo_verify.render.formats import Printing
from hlo_verify.render.html import Linted, fragment, render_lint
from hlo_verify.render.markdown import MOST
from hlo_verify.render.origin import of_command
from hlo_verify.render.text import Style
from hlo_verify.report import LawUse, Stage, Suggestion, Verdict
from hlo_verify.shown import shown
from hlo_verify.witness import Witness
from tests.programs import FINDING, UNSUPPORTED, chain, report
from tests.render.test_html import POINT, Outline
from tests.render.test_json import CHECKED, FITS

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN

HOSTILE = {
    "escape": "a\x1b[31mb",
    "nul": "a\0b",
    "direction": "a\u202eb",
    "byte": "a\udc80b",
    "half": "/a\ud800b:3",
    "line": "a\nPROVED  1 result",
    "separator": "a\u2028b\u0085c",
    "no character": "a\uffffb",
    "tags": "<img src=x onerror=alert(1)>\"'`&</details></script>--><!--]]>",
    "quotes": "\u201d onmouseover=\u201calert(1)",
    "table": "a|b`c|\\",
    "fence": "```\n# h",
    "long": "x" * 10_000,
    "long and escaped": "|" * 10_000,
    "number": "f.py:" + "9" * 5_000,
    "nothing": "",
}

HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\ud800-\udfff\uffff]")


def reported(said: str) -> Iterator[Outcome]:
    """A report, a chain and a failure that say it wherever text of others stands."""
    finding = replace(
        FINDING, operation=said, location=said, found=said, expected=f"{said}1", nearest=said, module=said
    )
    finding = replace(finding, frames=(said, said), suggestion=said)
    found = report(P, R, U, name=said, finding=finding)
    results = [replace(one, name=said, reason=said, location=said) for one in found.results]
    results[1] = replace(results[1], witness=Witness(POINT, ((said, said),), said, POINT))
    found = replace(
        found,
        results=tuple(results),
        assumptions=(said,),
        preconditions=(said,),
        inferred=(said,),
        left_open=(said,),
        compared=said,
        under=said,
        unsupported=(replace(UNSUPPORTED, message=said, location=said, operation=said, notes=((said, said),)),),
        approximations=(said,),
        stages=(Stage(said, said, said),),
        laws=(LawUse(said, said, 1),),
        suggestion=Suggestion((said,), (said,), (said,)),
    )
    yield found
    passes = chain(P, R, U)
    steps = [replace(step, pipeline=said, after=said, file=said, reason=said, how=said) for step in passes.steps]
    yield replace(passes, name=said, steps=tuple(steps), report=found, assumptions=(said,))
    yield Failure(said, InputError(said, Input.DAMAGED).diagnostic)


def rendered(outcome: Outcome, format_: str) -> str:
    project = format_ if format_ in PROJECTS else None
    printing = Printing(Style(), several=not hasattr(outcome, "results"), issue=project, arguments=["a"])
    return printing.rendered([outcome], "markdown" if project else format_)


@pytest.mark.parametrize("format_", [*FORMATS, *PROJECTS])
@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
def test_it_is_text(said: str, format_: str) -> None:
    for outcome in reported(said):
        text = rendered(outcome, format_)
        if format_ in ("json", "sarif"):
            json.loads(text.encode(errors="backslashreplace"))
        else:
            assert not HIDDEN.search(text)
        if format_ == "junit":
            ElementTree.fromstring(text)
        elif format_ == "html":
            tags = Outline(text).tags
            assert not any(tag == "img" or any(name.startswith("on") for name in given) for tag, given in tags)
        elif format_ == "text":
            assert text.splitlines()[-1].startswith(("REFUTED", "UNKNOWN"))
            assert "PROVED  1 result" not in text.splitlines()
        elif format_ != "json" and format_ != "sarif":
            start = r"\*\*Title:\*\*|Nothing to report" if format_ in PROJECTS else "## (REFUTED|UNKNOWN)"
            assert re.match(start, text) and len(text) <= MOST
            assert "do not fit" not in text[:1_000]


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
def test_it_is_text_in_notebooks_and_of_lint(said: str) -> None:
    found = next(reported(said))
    diagnostic = Diagnostic(Input.DAMAGED, Severity.ERROR, said, said, said, ((said, said),))
    pages = (fragment(found), render_lint([Linted(said, ((diagnostic, 1),), ((said, 1),))]))  # type: ignore[arg-type]
    for page in pages:
        Outline(page)
        assert not HIDDEN.search(page)


def test_numbers_that_json_has_not_are_strings() -> None:
    """Where a module divides by zero, a witness has such; programs could not read the report."""

    def fails(constant: str) -> float:
        raise AssertionError(constant)

    for value, written in ((float("inf"), "Infinity"), (float("-inf"), "-Infinity"), (float("nan"), "NaN")):
        found = report(R)
        witness = Witness(replace(POINT, partitioned=value), (), "by XLA")
        found = replace(found, results=(replace(found.results[0], witness=witness),))
        document = json.loads(rendered(found, "json"), parse_constant=fails)
        assert document["results"][0]["witness"]["point"]["partitioned"] == written
        assert FITS(document)


@pytest.mark.parametrize("verdict", [P, U])
@pytest.mark.parametrize("format_", FORMATS)
def test_a_report_grows_no_faster_than_its_results(format_: str, verdict: Verdict) -> None:
    few, many = (len(rendered(report(*[verdict] * count), format_)) for count in (400, 1_600))
    assert many < 5 * few


def test_what_is_left_out_of_a_page_is_counted() -> None:
    """And is what is proved."""
    long = chain(*[P] * 2_500, R)
    page = Outline(rendered(long, "html")).text
    assert "2,000 of 2,501 dumps" in page and "501 more dumps" in page
    assert "2500" in page
    several = Printing(Style(), several=True).rendered([chain(*[P] * 100, R)] * 50, "html")
    assert "40 of 101 dumps" in several and "All 101 dumps" not in several
    many = replace(report(P), unsupported=(UNSUPPORTED,) * 2_010)
    assert "10 more lines" in rendered(many, "html")


def test_each_format_says_what_a_verdict_rests_on() -> None:
    found = replace(report(P), preconditions=("tokens in [0, 4)",), under="x split")
    for format_ in FORMATS:
        text = rendered(found, format_).replace("\\", "")
        for said in ("tokens in [0, 4)", "real arithmetic", "PROVED", "x split"):
            assert said in text, (format_, said)


def test_lines_are_those_of_a_compiler(tmp_path: Path) -> None:
    """A form feed stands between parts of many files, and ends no line."""
    file = tmp_path / "f.py"
    file.write_text("# \x0c\nreturn lax.psum(x, 'd')\n")
    finding = replace(FINDING, suggestion=f"the mean (pmean) over 'd' in place of the sum (psum) at {file}:2")
    assert '"fixes"' in rendered(report(R, finding=finding), "sarif")
    excerpted = excerpt(f"{file}:2")
    assert excerpted is not None and excerpted.lines[excerpted.at - excerpted.first] == "return lax.psum(x, 'd')"
    endless = replace(finding, suggestion=finding.suggestion.replace(str(file), "/dev/zero"))
    assert '"fixes"' not in rendered(report(R, finding=endless), "sarif"), "a module may name any file"


def test_each_line_of_a_verdict_says_what_it_is_subject_to() -> None:
    """Also the one line of `--quiet`, of a folder, and of a row for a module that is proved."""
    found = replace(report(P), preconditions=("tokens in [0, 4)",))
    doubted = replace(found, recheck=CHECKED)
    for format_ in FORMATS:
        for quiet in (False, True):
            for several in (False, True):
                printing = Printing(Style(quiet=quiet), several, arguments=["a"])
                assert "tokens in [0, 4)" in printing.rendered([found], format_).replace("\\", ""), (format_, several)
                if not several or not quiet:
                    assert re.search("disagree|is wrong", printing.rendered([doubted], format_)), (format_, several)
    folder = Printing(Style(), True, arguments=["a"]).rendered([found, report(U)], "markdown")
    assert "- real arithmetic" in folder
    assert "tokens" in repr(shown(found))


def test_what_is_unknown_is_a_result_for_code_hosts() -> None:
    """A chain that somebody interrupted had none, as if all was well."""
    for outcome in (replace(chain(P, P), missing=3), replace(chain(), missing=0)):
        run = json.loads(rendered(outcome, "sarif"))["runs"][0]
        assert [one["level"] for one in run["results"]] == ["warning"]


def test_a_page_of_many_modules_is_small() -> None:
    """Those that are wrong have a part of their own, the others a row."""
    outcomes = [replace(report(U), name=f"m{n}") for n in range(700)] + [replace(report(R), name="wrong")]
    page = Printing(Style(), several=True, arguments=["a"]).rendered(outcomes, "html")
    outline = Outline(page)
    assert len(page) < 2_000_000 and "601 more modules" in outline.text and "m699" in outline.text
    assert any(given.get("href") == "#m701" for _, given in outline.tags)
    found = Diagnostic(Input.DAMAGED, Severity.ERROR, "no", "f.py:1", "copy")
    modules = [Linted(f"m{n}", ((found, 1),) * 40, (("instructions", 1),)) for n in range(200)]
    page = render_lint(modules)
    assert len(page) < 2_000_000 and "37 more findings" in Outline(page).text


def test_a_command_is_without_its_outputs() -> None:
    given = ["a", "-o", "x", "-oy", "--output=z", "--report", "json=w", "--open", "--effort", "high"]
    assert of_command(given, [], None).command == "hlo-verify a --effort high"
