"""What the codes mean: one on a terminal, all on a page (docs/codes.md).

`python -m hlo_verify.render.codes > docs/codes.md` writes the page; tests/render/test_codes.py checks that it is up to
date.
"""

from __future__ import annotations

import sys
from inspect import cleandoc

from hlo_verify.diagnostics import FAMILIES, Code

_INTRODUCTION = """\
# Codes

Every message and every result that is not proved carries one of these codes; `hlo-verify --explain CODE` prints what is
said of it here. Codes keep their meaning between versions. (Written by `python -m hlo_verify.render.codes`.)
"""


def explanation(code: Code, *, color: bool = False) -> str:
    """What `--explain` prints."""
    title = f"{code}: {code.summary}"
    heading = f"\033[1m{title}\033[0m" if color else title
    return f"{heading}\n\n{code.explanation}\n\n{_scope(type(code))}: {_said(type(code))}\n"


def page() -> str:
    """docs/codes.md."""
    parts = [_INTRODUCTION]
    for family in FAMILIES.values():
        parts.append(f"\n## {_scope(family)}\n\n{_said(family)}\n")
        parts += [f"\n### {code}: {code.summary}\n\n{code.explanation}\n" for code in family]
    return "".join(parts)


def _scope(family: type[Code]) -> str:
    """The codes of a family: `HV5xx`."""
    return next(start for start, one in FAMILIES.items() if one is family).ljust(5, "x")


def _said(family: type[Code]) -> str:
    return cleandoc(str(family.__doc__))


if __name__ == "__main__":
    sys.stdout.write(page())
