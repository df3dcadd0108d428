"""The small part of Markdown that explanations of codes are written in: paragraphs, lists, code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markupsafe import Markup, escape

_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)


def prose(text: str) -> Markup:
    """An explanation as HTML.

    >>> print(prose("Use `a<b`."))
    <p>Use <code>a&lt;b</code>.</p>
    """
    return Markup("\n").join(_block(block) for block in _blocks(text))


def inline(text: str) -> Markup:
    """A message, with what stands between backquotes as code."""
    return _line(text)


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, lists and blocks of code, these with their fences."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            if not fenced and lines:
                yield "\n".join(lines)
                lines = []
            fenced = not fenced
            lines.append(line)
            if not fenced:
                yield "\n".join(lines)
                lines = []
        elif line.strip() or fenced:
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _block(block: str) -> Markup:
    if block.startswith("```"):
        code = "\n".join(line for line in block.split("\n") if not line.startswith("```"))
        return Markup("<pre><code>{}</code></pre>").format(code)
    if all(line.startswith("    ") for line in block.split("\n")):
        return Markup("<pre><code>{}</code></pre>").format("\n".join(line[4:] for line in block.split("\n")))
    if block.startswith(("- ", "* ")):
        items = re.split(r"\n(?=[-*] )", block)
        listed = Markup("").join(Markup("<li>{}</li>").format(_line(item[2:])) for item in items)
        return Markup("<ul>{}</ul>").format(listed)
    return Markup("<p>{}</p>").format(_line(block))


def _line(text: str) -> Markup:
    pieces: list[Markup] = []
    end = 0
    for found in _CODE.finditer(text):
        pieces += [escape(text[end : found.start()]), Markup("<code>{}</code>").format(found[2].strip())]
        end = found.end()
    return Markup("").join([*pieces, escape(text[end:])])
