"""Where a report goes: a file, or standard output in the encoding that it has."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.render import FORMATS


def use_color(color: str, output: Path | None) -> bool:
    """Whether to write colours: `always`, `never`, or `auto`: where a terminal shows them and nobody said no."""
    if color != "auto":
        return color == "always"
    if output is not None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def format_and_file(text: str) -> tuple[str, Path]:
    """What `FORMAT=FILE` says. Raises `argparse.ArgumentTypeError` for what does not."""
    format_, _, path = text.partition("=")
    if format_ not in FORMATS or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not FORMAT=FILE with a format of {', '.join(FORMATS)}")
    return format_, Path(path)


def write(text: str, output: Path | None) -> None:
    """Write a report to a file as UTF-8, or to standard output, where what its encoding lacks is escaped.

    Raises `InputError` for a file that cannot be written.
    """
    if output is not None:
        try:
            output.write_text(text, encoding="utf-8", errors="backslashreplace")  # names of files need not be text
        except OSError as error:
            raise InputError(f"cannot write {output}: {error.strerror}", Input.UNWRITABLE) from error
        return
    try:
        sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough. Python flushes once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
