"""Shows a page in the reader's browser."""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from pathlib import Path

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError


def show(page: str) -> None:
    """Write a page to a temporary file, open it in a browser, and say where it is, for a machine that has none. Raises
    `InputError` where it cannot be written."""
    try:
        folder = tempfile.mkdtemp(prefix="hlo-verify-")  # of the reader alone
        path = Path(folder, "report.html")
        path.write_text(page, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"cannot write a page for --open: {error.strerror}", Input.UNWRITABLE) from error
    webbrowser.open(path.as_uri())
    print(f"hlo-verify: the page is {path}", file=sys.stderr)
