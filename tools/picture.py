"""Draw the report on the program that the README begins with: `python -m tools.picture` writes docs/refuted.svg."""

from __future__ import annotations

import io
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hlo_verify import NotProvedError
from hlo_verify.render import text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "refuted.svg"
COLUMNS = 116


def program() -> str:
    """The first program of the README."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]


def report() -> str:
    """What it is told, with the colours of a terminal."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.py"
        path.write_text(program())
        try:
            exec(compile(program(), str(path), "exec"), {"__name__": "__main__"})
        except NotProvedError as error:
            told = text.render([error.report], text.Style(color=True), several=False)
            return re.sub(r"\d+\.\d s\b", "0.1 s", told.replace(f"{folder}/", ""))
    raise SystemExit("the README's first program is proved")


def main() -> None:
    """Write the picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ python train.py"))
    for line in report().splitlines():
        console.print(Text.from_ansi(line), overflow="ellipsis", no_wrap=not line.startswith("Assumed"))
    drawn = console.export_svg(title="hlo-verify", unique_id="refuted")
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL))


if __name__ == "__main__":
    sys.exit(main())
