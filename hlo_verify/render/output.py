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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.render import FORMATS
from hlo_verify.render.characters import encodable

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def _in_json(character: str) -> str:
    return json.dumps(character)[1:-1]


_ESCAPES: dict[str, Callable[[str], str]] = {
    "json": _in_json,
    "sarif": _in_json,
    "html": lambda character: f"&#{ord(character)};",  # neither its style nor its script has such characters
}
"""What stands for a character in formats that say what their encoding is, which standard output may not have."""


def use_color(color: str, output: Path | None) -> bool:
    """Whether to write colours: `always`, `never`, or `auto`: where a terminal shows them and nobody said no."""
    if color != "auto":
        return color == "always"
    if output is not None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return is_terminal(sys.stdout)


def width(output: Path | None) -> int:
    """The columns of the terminal that standard output is; 0 where it is none, or a file is written."""
    return shutil.get_terminal_size().columns if output is None and is_terminal(sys.stdout) else 0


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at what is written there; None is what the caller has closed."""
    return stream is not None and stream.isatty()


def never_fails() -> None:
    """Have standard output escape what its encoding lacks, for what is printed by others (`--help`)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def given_path(text: str) -> str:
    """A path that is given. Raises `argparse.ArgumentTypeError` for an empty one, as of a variable of the shell that
    has no value: it is not the folder that one is in."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return text


def path_of(text: str) -> Path:
    """As `given_path`."""
    return Path(given_path(text))


def format_and_file(text: str) -> tuple[str, Path]:
    """What `FORMAT=FILE` says. Raises `argparse.ArgumentTypeError` for what does not."""
    format_, _, path = text.partition("=")
    if format_ not in FORMATS or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not FORMAT=FILE with a format of {', '.join(FORMATS)}")
    return format_, Path(path)


def write(text: str, output: Path | None, format_: str = "text") -> None:
    """Write a report to a file as UTF-8, or to standard output, where what its encoding lacks is escaped, as
    JSON has it in JSON, and as HTML has it in pages.

    Raises `InputError` for what cannot be written.
    """
    try:
        if output is not None:
            output.write_text(text, encoding="utf-8", errors="backslashreplace")  # names of files need not be text
        elif sys.stdout is not None:  # the caller has closed it, and wants no more than the status
            _print(text, format_)
    except OSError as error:
        where = "standard output" if output is None else output
        raise InputError(f"cannot write {where}: {error.strerror}", Input.UNWRITABLE) from error


def _print(text: str, format_: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    if format_ in _ESCAPES and codecs.lookup(encoding).name != "utf-8":
        text = _NOT_ASCII.sub(lambda found: _ESCAPES[format_](found[0]), text)
    said = encodable(text, encoding)
    try:
        if hasattr(sys.stdout, "buffer"):
            sys.stdout.buffer.write(said.encode(encoding))
        else:  # something in memory, of who called `main`
            sys.stdout.write(said)
        sys.stdout.flush()
    except BrokenPipeError:
        _let_go()  # the reader has seen enough
    except OSError:
        _let_go()
        raise


def _let_go() -> None:
    """Have nothing go to standard output any more: Python flushes it once more at exit, which would fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Raise `InputError` where a file that is to be written cannot be, is another one's too, or is an input. A device
    may be written to as often as one likes."""
    taken = {os.path.realpath(path): "it is read" for path in filter(None, inputs) if not os.path.isdir(path)}
    for path in filter(None, outputs):
        if not os.path.isdir(path.absolute().parent):
            raise InputError(f"cannot write {path}: there is no folder {path.parent}", Input.UNWRITABLE)
        if os.path.isdir(path):
            raise InputError(f"cannot write {path}: it is a folder", Input.UNWRITABLE)
        if os.path.exists(path) and not os.path.isfile(path):
            continue
        if not os.access(path if os.path.exists(path) else path.absolute().parent, os.W_OK):
            raise InputError(f"cannot write {path}: permission denied", Input.UNWRITABLE)
        if os.path.realpath(path) in taken:
            raise InputError(f"cannot write {path}: {taken[os.path.realpath(path)]}", Input.USAGE)
        taken[os.path.realpath(path)] = "it is written twice"
