"""Markdown in which text of others is only text: what a module says becomes no heading, link, mention, table or HTML.

Source: the GitHub Flavored Markdown specification, sections 2.4, 4.5, 4.10, 6.1 to 6.3 and 6.6.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from hlo_verify.render.characters import one_line, visible

_SYNTAX = re.compile(r"[\\*\[\]{}<>~$&!|]|(?<![^\W_])_|_(?![^\W_])")
_LINKED = re.compile(r"(?<=[@#])(?=\w)|(?<=:)(?=//)|(?<=:)(?=[\w+-]+:)|(?<=www)(?=\.)", re.IGNORECASE)
_STARTS_A_BLOCK = re.compile(r"^(?:[-+=#]|\d+(?=[.)]))")
_NOTHING = "<!-- -->"
_PUNCTUATION = re.compile("[!-/:-@[-`{-~]")


def prose(text: str) -> str:
    r"""A line of text; what stands between backticks is code, as it is in messages.

    >>> print(prose("<b> of `x | y` is *2*"))
    &lt;b&gt; of <code>x &#124; y</code> is \*2\*
    """
    parts = one_line(text).split("`")
    if len(parts) % 2 == 0:  # one backtick is alone
        return _plain("\u2019".join(parts))
    return "".join(code(part) if number % 2 else _plain(part) for number, part in enumerate(parts))


def _plain(text: str) -> str:
    """Text without backticks. GitHub looks for mentions in what is unescaped already, but not across comments."""
    escaped = _SYNTAX.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), _apart(text))
    escaped = _STARTS_A_BLOCK.sub(lambda found: _entity(found[0][0]) + found[0][1:], escaped)
    return escaped.replace("\0", _NOTHING)


def _apart(text: str) -> str:
    """Visible text with a null character wherever it could be taken for a link."""
    return "\0".join(_LINKED.split(text))


_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;"}


def _entity(character: str) -> str:
    return f"&#{ord(character)};"


def code(text: str) -> str:
    """A piece of code in a line. In cells of tables no bar may stand, so it is written as HTML where it has one."""
    line = one_line(text)
    if not line:
        return ""
    if "|" in line or "\\" in line:
        return f"<code>{_PUNCTUATION.sub(lambda found: _entity(found[0]), line)}</code>"
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    space = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{space}{line}{space}{fence}"


def block(text: str, language: str = "text") -> str:
    """Lines of code; the fence is longer than any in them."""
    shown = visible(text).strip("\n")
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def folded(summary: str, *parts: str) -> str:
    """Markdown that a reader opens. The summary is plain text: beside a tag stands HTML, not Markdown."""
    shown = html.escape(_apart(one_line(summary))).replace("\0", _NOTHING)
    return "\n\n".join((f"<details><summary>{shown}</summary>", *parts, "</details>"))
