"""Picture of a page: `python -m tools.page_picture` writes docs/page.png, the page on the program with which the README
begins, as Chromium shows it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from hlo_verify import NotProvedError
from hlo_verify.render import html
from tools.picture import ROOT, program

PICTURE = ROOT / "docs" / "page.png"
WIDTH = 1000
BELOW = 20
"""Pixels that are shown below the finding."""


def page() -> str:
    """The page that the program's report makes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.py"
        path.write_text(program())
        try:
            exec(compile(program(), str(path), "exec"), {"__name__": "__main__"})
        except NotProvedError as error:
            return html.render([error.report]).replace(f"{folder}/", "")
    raise SystemExit("the README's first program is proved")


def main() -> None:
    """Write the picture."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        shown = browser.new_page(viewport={"width": WIDTH, "height": 900})
        shown.set_content(page())
        end = shown.evaluate("document.querySelector('.finding').getBoundingClientRect().bottom")
        area = {"x": 0, "y": 0, "width": WIDTH, "height": int(end) + BELOW}
        shown.screenshot(path=PICTURE, full_page=True, clip=area)
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
