"""Reports as pages: whole, escaped, small, and with everything in its place."""

from __future__ import annotations

import importlib
import re
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hlo_verify import cli, defects
from hlo_verify.diagnostics import CODES, Diagnostic, Input, Schedule, Severity
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.render import FORMATS, Failure, Outcome
from hlo_verify.render.html import Linted, fragment, render, render_lint
from hlo_verify.render.html.formulas import COMPARED, LONGEST, difference, formula
from hlo_verify.render.html.prose import prose
from hlo_verify.render.origin import Origin
from hlo_verify.report import Disagreement, Recheck, Report, Stage, Verdict
from hlo_verify.witness import Point, Witness
from tests.programs import FINDING, chain, report

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
EVIL = "<script>alert('1')</script>\"'&"
BROKEN = Failure("b", InputError("no", Input.DAMAGED).diagnostic)
POINT = Point(3, (0, 1), (0, 0), 1.0, 0.5)
WITNESS = Witness(POINT, tuple((f"x{n}", "1 everywhere" if n else "5") for n in range(9)), "by XLA", POINT)
CHECKED = Recheck(9, 8, 7, 2, 1, (("while: too long", 1),), (Disagreement("dot", "t.py:5", "x = 1"),), 0.5)
VOID = {"meta", "link", "br", "input", "img", "wbr"}


class Outline(HTMLParser):
    """The elements of a page with their attributes and the text in it; raises for what is not closed as it was opened,
    and for ids that are there twice."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open, self.open
        ids = [found["id"] for _, found in self.tags if "id" in found]
        assert len(ids) == len(set(ids)), ids
        targets = {str(found["href"])[1:] for tag, found in self.tags if tag == "a"}
        labels = {str(found["aria-labelledby"]) for _, found in self.tags if "aria-labelledby" in found}
        assert targets | labels <= set(ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text += data


def everything(name: str = "jit_step") -> Report:
    """A report that has something of each kind."""
    found = report(P, R, U, name=name)
    results = [replace(one, witness=WITNESS) if one.verdict is R else one for one in found.results]
    return replace(
        found,
        results=tuple(results),
        preconditions=("tokens in [0, 4)",),
        inferred=("result y: dimension 1 in 2",),
        left_open=("argument x: replicated",),
        compared="the two functions",
        under="x split",
        recheck=CHECKED,
        hints=(Diagnostic(Schedule.USE_BEFORE_DONE, Severity.WARNING, "too early", "", "copy-start"),),
    )


@pytest.mark.parametrize(
    ("outcomes", "several", "verdict"),
    [
        ([report(P, P)], False, "PROVED"),
        ([report()], False, "UNKNOWN"),
        ([everything()], False, "REFUTED"),
        ([chain(P, P)], False, "PROVED"),
        ([chain(P, R, P)], False, "REFUTED"),
        ([report(P)], True, "PROVED"),
        ([everything(), everything("other"), chain(P, U), BROKEN], True, "REFUTED"),
        ([report(P), Failure("b", defects.diagnose(KeyError("no")))], True, "UNKNOWN"),
        ([], True, "UNKNOWN"),
    ],
)
def test_a_page_is_whole(outcomes: list[Outcome], several: bool, verdict: str) -> None:
    """And loads nothing."""
    page = render(outcomes, Origin("hlo-verify a b", (("jaxlib", "1.2"),)), several=several)
    outline = Outline(page)
    assert page.startswith("<!doctype html>") and ("html", {"lang": "en"}) in outline.tags
    assert re.search(r"<title>(\w+)", page)[1] == verdict  # type: ignore[index]
    assert "hlo-verify a b" in outline.text and "1.2" in outline.text
    assert all(outcome.name in outline.text for outcome in outcomes)
    for tag, attributes in outline.tags:
        assert tag not in ("link", "img", "iframe", "object") or attributes["href"] == "data:,"
        assert "src" not in attributes and not any(name.startswith("on") for name in attributes)
        assert tag != "a" or str(attributes["href"]).startswith("#")
    assert not re.search(r"@import|url\(|https?://", page)


def test_everything_that_is_known_is_shown() -> None:
    """In this order: the verdict, what it rests on, what is wrong, all else."""
    text = Outline(re.sub("<nav.*</nav>", "", render([everything()]), flags=re.DOTALL)).text
    expected = ["REFUTED", "tokens in [0, 4)", "Given", "Preconditions", "real arithmetic", "What is wrong", "HV002"]
    expected += [
        "train.py:57",
        "stablehlo.multiply",
        "expected",
        "found",
        "Witness",
        "Confirmed by XLA",
        "sort",
        "Results",
        "Second check",
    ]
    places = [text.index(one) for one in expected]
    assert places == sorted(places)
    for one in ("dimension 1 in 2", "replicated", "the two functions", "too early", "all other 8 arguments"):
        assert one in text
    assert "Internal error: the proof is wrong" in text


def test_whatever_a_module_says_is_text() -> None:
    """Each string of the model, in every place where it is shown."""
    finding = replace(
        FINDING,
        **{f.name: EVIL for f in fields(FINDING) if isinstance(getattr(FINDING, f.name), str) and f.name != "code"},
    )
    found = replace(
        everything(EVIL), preconditions=(EVIL,), assumptions=(EVIL,), inferred=(EVIL,), compared=EVIL, under=EVIL
    )
    results = tuple(
        replace(
            one,
            name=EVIL,
            reason=EVIL,
            location=EVIL,
            finding=one.finding and replace(finding, frames=(EVIL, EVIL)),
            witness=one.witness and replace(one.witness, inputs=((EVIL, EVIL),), replayed=EVIL),
        )
        for one in found.results
    )
    said = Diagnostic(Schedule.USE_BEFORE_DONE, Severity.ERROR, EVIL, EVIL, EVIL, (("with", EVIL),))
    found = replace(found, results=results, stages=(Stage(EVIL, EVIL, EVIL),), unsupported=(said,), hints=(said,))
    steps = tuple(
        replace(s, pipeline=EVIL, after=EVIL, file=EVIL, reason=EVIL, compared_with=EVIL) for s in chain(P, U).steps
    )
    passes = replace(chain(P, U), name=EVIL, steps=steps, report=found)
    made = Origin(EVIL, ((EVIL, EVIL),), EVIL)
    pages = [
        render([found], made),
        render([passes], made),
        render([found, passes, replace(BROKEN, name=EVIL)], made, several=True),
    ]
    pages += [render_lint([Linted(EVIL, ((said, 4),), ((EVIL, 1),))], made), "<div>" + fragment(found) + "</div>"]
    for page in pages:
        outline = Outline(page)
        assert [tag for tag, _ in outline.tags].count("script") == page.startswith("<!doctype")
        assert outline.text.count("<script>alert") > 2


def test_a_page_of_a_large_module_is_small() -> None:
    """20,000 operations, each of which is a stage, and 3,000 results that are not proved."""
    text = "multiply(some.long.path/to/a/file.py:1234)[4*(d div 4) + i, 2048*(d mod 4) + j]"
    found = report(*[U] * 1000, finding=replace(FINDING, found=text * 900, expected=text * 800))
    results = tuple(
        replace(one, finding=replace(one.finding, operation=f"%{n} = {'x' * 9000}"), reason=text * 9)
        for n, one in enumerate(found.results) if one.finding is not None
    )  # fmt: skip
    found = replace(
        found, results=results * 3, stages=tuple(Stage("multiply", "a/file.py:12", text) for _ in range(20_000))
    )
    page = render([found])
    assert len(page.encode()) < 2_000_000
    assert re.search(r"\d more stages", page) and re.search(r"\d more results", page)
    assert len(fragment(found)) < 2_000_000
    many = render([replace(found, name=f"m{n}") for n in range(3)], several=True)
    assert len(many.encode()) < 2_000_000 and "m2" in many


@pytest.mark.parametrize(
    ("found", "expected", "marked"),
    [
        ("x[i] + 2", "x[i] + 3", ("x[i] + <del><i>2</i></del>", "x[i] + <ins><i>3</i></ins>")),
        ("x", "x", ("x", "x")),
        ("8*(f(a) + b)", "f(a) + b", ("<del><i>8</i>*(</del>f(a) + b<del>)</del>", "f(a) + b")),
        ("a<b", "a<c", ("a&lt;<del>b</del>", "a&lt;<ins>c</ins>")),
        ("f(x)", "x", ("<del>f(x)</del>", "<ins>x</ins>")),
        ("f(x)*[d < 2]", "f(x)", ("f(x)<del>*[<var>d</var> &lt; <i>2</i>]</del>", "f(x)")),
        ("x[a,d]*y", "x[a,b]*y", ("x[a,<del><var>d</var></del>]*y", "x[a,<ins>b</ins>]*y")),
    ],
)
def test_a_difference_is_marked(found: str, expected: str, marked: tuple[str, str]) -> None:
    assert difference(found, expected) == marked


def test_a_long_term_has_a_line_for_each_summand() -> None:
    assert "\n" not in formula("x + y - 1")
    shown = re.sub("<[^>]*>", "", formula(" + ".join(f"{'x' * 40}[i, (j + {n})]" for n in range(4))))
    assert shown.count("\n") == 3
    assert len(formula("x" * 9 * LONGEST)) < 2 * LONGEST
    marked = difference("a " * COMPARED, "b c a " * COMPARED)  # too many pairs of equal words to be compared
    assert all(len(re.sub("<[^>]*>", "", one)) <= LONGEST for one in marked)


@pytest.mark.parametrize("code", list(CODES.values()))
def test_explanations_are_whole(code: str) -> None:
    page = str(prose(CODES[code].explanation))
    words = re.findall(r"[\w']+", Outline(page).text)
    assert words == re.findall(r"[\w']+", re.sub(r"```\w*|^[-*] ", "", CODES[code].explanation, flags=re.MULTILINE))
    assert "`" not in Outline(page).text


def test_the_command_line_writes_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "html" in FORMATS
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    a, b = "testdata/mlp_tp/logical.hlo.gz", "testdata/mlp_tp/partitioned.hlo.gz"
    page = tmp_path / "page.html"
    given = [a, b, "--open", "--format", "html", "-o", str(page)]
    assert cli.main(given, verify=lambda *_, **__: report(P)) == 0
    assert f"hlo-verify {a} {b}" in Outline(page.read_text()).text
    [uri] = opened
    assert Path(uri.removeprefix("file://")).read_text() == page.read_text()
    assert uri.removeprefix("file://") in capsys.readouterr().err


def test_templates_are_installed() -> None:
    import tomllib

    folder = Path(str(importlib.import_module("hlo_verify.render.html").__file__)).parent
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["hlo_verify.render.html"]
    others = {path for path in folder.iterdir() if path.suffix not in (".py", ".pyc") and path.is_file()}
    assert others == {path for pattern in patterns for path in folder.glob(pattern)}
