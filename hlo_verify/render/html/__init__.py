"""A page for people, one self-contained file: nothing is loaded, and it reads without JavaScript, on a phone and on
paper. Its templates are beside this file; whatever they show is escaped unless formulas.py has marked it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from hlo_verify.diagnostics import Severity
from hlo_verify.render import Outcome, overall
from hlo_verify.render.characters import shown
from hlo_verify.render.html import formulas
from hlo_verify.render.html.compiled import Compiled
from hlo_verify.render.html.prose import inline, prose
from hlo_verify.render.html.view import FINDINGS, ROWS, SHOWN_RESULTS, Linted, ReportView, name_of, verdict_counts, view
from hlo_verify.render.origin import Origin
from hlo_verify.render.pictures import STYLE
from hlo_verify.report import Report, Verdict
from hlo_verify.version import __version__

MOST = 1_800_000
"""Characters of a page; of a larger one that has tables to shorten, they are made shorter."""

MODULES = 100
"""Of a page that is larger all the same, those that have a part of their own."""

LINTED = 600
"""Findings of the linter in a page of many modules, some two thousand characters each."""

_ORDER = [Verdict.REFUTED, Verdict.UNKNOWN, Verdict.PROVED]

_SETTINGS: dict[str, Any] = {
    "autoescape": True,
    "trim_blocks": True,
    "lstrip_blocks": True,
    "keep_trailing_newline": True,
    "optimized": False,  # what filters give is worked out for each page, not when a template is compiled
}

__all__ = ["Linted", "fragment", "render", "render_lint"]


def render(outcomes: Sequence[Outcome], origin: Origin | None = None, *, several: bool = False) -> str:
    """The page of one report; or of `several` modules, with a table of them. `origin` says how to see it again."""
    outcomes, origin = list(map(shown, outcomes)), origin and shown(origin)
    several = several and len(outcomes) != 1  # a folder with one module is about that
    template = _templates().get_template("page.html")
    title = _plural(len(outcomes), "module") if several else outcomes[0].name
    rest = {"verdict": overall(outcomes), "several": several, "counts": list(verdict_counts(outcomes)), "made": origin}

    ranked = sorted(range(len(outcomes)), key=lambda n: _ORDER.index(overall([outcomes[n]])))

    def page(among: int, most: int | None = None) -> str:
        views = [view(outcome, among) for outcome in outcomes]
        return template.render(title=title, views=views, told=set(ranked[:most]), **rest)

    made = _fitting(page, max(len(outcomes), 1))
    return made if len(made) <= MOST or not several else page(ROWS, MODULES)


def fragment(report: Report) -> str:
    """What a notebook shows: the report without what makes a page of it."""
    report, template = shown(report), _templates().get_template("fragment.html")
    return _fitting(lambda among: template.render(view=ReportView(report, among)), 1)


def render_lint(modules: Sequence[Linted], origin: Origin | None = None) -> str:
    """The page of what was found in modules, each by itself."""
    modules, origin = list(map(shown, modules)), origin and shown(origin)
    found = [said.severity for module in modules for said, _ in module.findings]
    errors = found.count(Severity.ERROR)
    counts = [(errors, "error"), (len(found) - errors, "warning")]
    said = " and ".join(_plural(count, noun) for count, noun in counts if count) or "no defect found"
    state = "refuted" if errors else "unknown" if found else "clean"
    shown_findings = min(FINDINGS, max(LINTED // max(sum(bool(module.findings) for module in modules), 1), 1))
    rest = {"said": said, "state": state, "made": origin, "shown_findings": shown_findings}
    return _templates().get_template("lint.html").render(modules=modules, **rest)


def _fitting(page: Callable[[int], str], among: int) -> str:
    """The page for so many modules, or one as if they were more, if it is too large."""
    made = page(among)
    while len(made) > MOST and among < ROWS:
        among *= 4
        made = page(among)
    return made


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


@cache
def _templates() -> Environment:
    found = Environment(
        loader=FunctionLoader(_read),
        undefined=StrictUndefined,
        bytecode_cache=Compiled(repr(_SETTINGS)),
        **_SETTINGS,
    )
    found.globals.update(
        difference=formulas.difference,
        formula=formulas.formula,
        name_of=name_of,
        plural=_plural,
        rows=ROWS,
        picture_style=Markup(STYLE),
        script=Markup(_read("script.js")),  # our own file
        shown_results=SHOWN_RESULTS,
        style=Markup(_read("style.css")),  # our own file
        version=__version__,
    )
    found.filters["inline"] = inline
    found.filters["prose"] = prose
    found.filters["shortened"] = formulas.shortened
    return found


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
