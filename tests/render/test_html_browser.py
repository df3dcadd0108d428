"""Pages in a real browser: no errors, search and folding, narrow screens, paper, and no script at all.

Skipped where there is no Chromium; what is asked is structure, never pixels."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hlo_verify.diagnostics import Diagnostic, Schedule, Severity
from hlo_verify.render.html import Linted, render, render_lint
from hlo_verify.render.origin import Origin
from hlo_verify.report import Verdict
from hlo_verify.scene import Around, Excerpt, Held, Meeting, Part, Scene
from tests.programs import FINDING, chain, report
from tests.render.test_html import EVIL, everything

api: Any = pytest.importorskip("playwright.sync_api")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN
PARTS = (Part("1", "x", "f32[8]"), Part("2", "all_reduce", "f32[8]", "f.py:3", "", True))
SCENE = Scene(
    Excerpt("f.py", 2, 3, ("def f(x):", f"    return {EVIL}{'x' * 200}", "")),
    (("data", 2), ("model", 4)),
    (),
    (Held("x", (8,), (4,), tuple((4 * (d // 4),) for d in range(8))),),
    Meeting("all_reduce", ((0, 1, 2, 3), (4, 5, 6, 7))),
    Around(PARTS[:1]),
    Around(PARTS, (("1", "2"),)),
    (("1", "1"),),
)
LINTED = Linted(
    "m", ((Diagnostic(Schedule.USE_BEFORE_DONE, Severity.ERROR, "too early", "", "start"), 4),), (("a", 1),)
)


def _pages() -> dict[str, str]:
    """The pages that are tried, by name."""
    found = replace(report(*[P] * 30, R, U, finding=replace(FINDING, scene=SCENE)), name=EVIL)
    found = replace(found, stages=found.stages * 20)
    origin = Origin("hlo-verify a b", (("jaxlib", "1.2"),))
    return {
        "wrong": render([found], origin),
        "everything": render([everything()], origin),
        "chain": render([chain(*[P] * 12, R)], origin),
        "several": render([everything(), report(P), chain(P, U)], origin, several=True),
        "lint": render_lint([LINTED], origin),
    }


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with api.sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield started
        started.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("pages")
    for name, page in _pages().items():
        (found / f"{name}.html").write_text(page)
    return found


class Shown:
    """A page in the browser, with what it said of errors and asked of the network."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ["wrong", "everything", "chain", "several", "lint"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_loads(browser: Any, folder: Path, name: str, width: int) -> None:
    """Without errors or anything from elsewhere; nothing is wider than the screen; what is read aloud has a name."""
    shown = Shown(browser, folder / f"{name}.html", viewport={"width": width, "height": 800})
    page = shown.page
    assert not shown.said
    assert [url for url in shown.asked if not url.startswith("data:")] == [(folder / f"{name}.html").as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("main").count() == 1 and page.locator("h1").count() == 1
    for tag in ("summary", "a", "button", "input"):
        for each in page.locator(tag).all():
            assert each.evaluate("e => (e.getAttribute('aria-label') || e.textContent).trim()"), tag
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(e => +e.tagName[1])")
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))
    page.close()


def test_search_and_folding(browser: Any, folder: Path) -> None:
    shown = Shown(browser, folder / "wrong.html")
    page = shown.page
    rows = page.locator("[data-search=results] tbody tr")
    assert rows.count() == 32
    page.keyboard.press("/")
    search = page.get_by_label("Search results")
    stages = page.get_by_label("Search stages")
    assert page.evaluate("document.activeElement.type") == "search"
    search.fill("REFUTED result")
    assert [row.is_visible() for row in rows.all()].count(True) == 1
    assert page.get_by_text("1 of 32").is_visible()
    search.press("Escape")
    assert all(row.is_visible() for row in rows.all())
    assert not stages.is_visible()
    page.locator("nav a", has_text="Stages").click()  # opens what it leads to
    stages.wait_for(state="visible")
    stages.fill("nothing is called so")
    assert not any(row.is_visible() for row in page.locator("[data-search=stages] li").all())
    page.locator("#stages > details > summary").focus()
    page.keyboard.press("Enter")
    assert not stages.is_visible()
    assert not shown.said
    page.close()


def test_it_reads_without_scripts(browser: Any, folder: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "wrong.html").as_uri())
    assert page.locator("[data-search=results] tbody tr").count() == 32
    assert page.locator("#given").is_visible() and page.locator("#wrong").is_visible()
    assert page.locator("input").count() == 0
    page.locator("#stages > details > summary").click()
    assert page.locator("[data-search=stages] li").first.is_visible()
    context.close()


def test_pictures_are_drawn_and_named(browser: Any, folder: Path) -> None:
    page = Shown(browser, folder / "wrong.html").page
    assert page.locator(".picture svg").count() == 4  # of each of two findings, the dataflow and the mesh
    for picture in page.locator(".picture svg").all():
        box = picture.bounding_box()
        assert box["width"] > 100 and box["height"] > 40
        assert picture.get_attribute("role") == "img" and picture.locator("title").first.text_content()
    assert EVIL in page.locator(".source .fault").first.text_content()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(browser: Any, folder: Path, scheme: str) -> None:
    """The contrast of each text with what is behind it is at least 4.5 (WCAG 2.2, 1.4.3)."""
    page = Shown(browser, folder / "everything.html", color_scheme=scheme).page
    faint = page.evaluate(CONTRAST)
    assert not faint
    page.close()


def test_it_prints(browser: Any, folder: Path, tmp_path: Path) -> None:
    page = Shown(browser, folder / "everything.html").page
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    page.pdf(path=tmp_path / "page.pdf", format="A4")
    assert (tmp_path / "page.pdf").stat().st_size > 10_000
    page.close()


CONTRAST = """() => {
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => {
      const value = part / 255;
      return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/rgba\\(.*, 0\\)|transparent/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const faint = [];
  for (const element of document.querySelectorAll(".hv *:not(svg *)")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) faint.push(`${element.outerHTML.slice(0, 80)}: ${contrast.toFixed(2)}`);
  }
  return faint;
}"""
