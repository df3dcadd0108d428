"""Where a report goes: a file, or standard output in the encoding that it has."""

from __future__ import annotations

import argparse
import codecs
import io
import json
import os
import re
import shutil
import sys
from pathlib import Path

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.render import FORMATS
from hlo_verify.render.characters import encodable

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def use_color(color: str, output: Path | None) -> bool:
    """Whether to write colours: `always`, `never`, or `auto`: where a terminal shows them and nobody said no."""
    if color != "auto":
        return color == "always"
    if output is not None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def width(output: Path | None) -> int:
    """The columns of the terminal that standard output is; 0 where it is none, or a file is written."""
    return shutil.get_terminal_size().columns if output is None and sys.stdout.isatty() else 0


def never_fails() -> None:
    """Have standard output escape what its encoding lacks, for what is printed by others (`--help`)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def format_and_file(text: str) -> tuple[str, Path]:
    """What `FORMAT=FILE` says. Raises `argparse.ArgumentTypeError` for what does not."""
    format_, _, path = text.partition("=")
    if format_ not in FORMATS or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not FORMAT=FILE with a format of {', '.join(FORMATS)}")
    return format_, Path(path)


def write(text: str, output: Path | None, format_: str = "text") -> None:
    """Write a report to a file as UTF-8, or to standard output, where what its encoding lacks is escaped, as
    JSON has it in JSON.

    Raises `InputError` for a file that cannot be written.
    """
    if output is not None:
        try:
            output.write_text(text, encoding="utf-8", errors="backslashreplace")  # names of files need not be text
        except OSError as error:
            raise InputError(f"cannot write {output}: {error.strerror}", Input.UNWRITABLE) from error
        return
    encoding = sys.stdout.encoding or "utf-8"
    if format_ in ("json", "sarif") and codecs.lookup(encoding).name != "utf-8":
        text = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    try:
        sys.stdout.buffer.write(encodable(text, encoding).encode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough. Python flushes once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
