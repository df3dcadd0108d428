"""Whatever a module says is text in Markdown, as a parser of Markdown sees it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from hlo_verify.render.characters import one_line, visible
from hlo_verify.render.quoting import block, code, prose, table

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
HOSTILE = [
    "<script>alert(1)</script>",
    "![x](http://a/b.png) [a](b)",
    "a | b || c",
    "`` ` ``` `",
    "\\| \\\\| \\`",
    "# heading",
    "- item",
    "1. item",
    "***bold*** __x__ ~~y~~ _z_",
    "&lt; &amp;",
    "</details></code>",
    "\x1b[31mred\u202e\ufeff",
    "$x$ <!-- --> ---",
    "> quoted",
    "    indented",
    "a\n\n# b\n```\n",
    "\udc80\ufffe\0",
    "http://example.org www.example.org",
    "=== ",
    "`",
    " ` ",
    "+x",
]
ANY = st.text(st.characters(codec=None), max_size=40) | st.text("`|\\<>*_[]()#&~!-+1. \n@:$", max_size=25)


def leaves(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from leaves(token.children or [])


def shown(text: str) -> str:
    """What a reader sees, where all there is are text and code."""
    found = ""
    for token in leaves(PARSER.parse(text)):
        assert token.type in {
            "paragraph_open", "paragraph_close", "inline", "text", "text_special", "code_inline", "html_inline",
        }, (text, token)  # fmt: skip
        if token.type == "html_inline":
            assert re.fullmatch(r"<!-- -->|</?code>", token.content), (text, token)
        elif token.type != "inline":
            found += token.content
    return found


@pytest.mark.parametrize("text", HOSTILE, ids=map(str, range(len(HOSTILE))))
@given(other=ANY)
def test_text_stays_text(text: str, other: str) -> None:
    for one in (text, other, text + other):
        plain = one_line(one)
        said = shown(prose(one))
        assert said.replace(" ", "").replace("\u2019", "") == plain.replace("`", "").replace(" ", "").strip(), prose(
            one
        )
        assert shown(f"at {code(one)}.") == f"at {plain}."


@given(st.lists(ANY, min_size=1, max_size=3))
def test_a_cell_stays_a_cell(cells: list[str]) -> None:
    for quoted in (list(map(code, cells)), list(map(prose, cells))):
        tokens = PARSER.parse(table(["a"] * len(cells), [quoted]))
        inside = [token for token in tokens if token.type == "td_open"]
        assert len(inside) == len(cells)
    html_text = PARSER.render(table(["a"] * len(cells), [list(map(code, cells))]))
    written = [re.sub(r"</?code>", "", cell) for cell in re.findall(r"<td>(.*?)</td>", html_text, re.DOTALL)]
    assert [html.unescape(cell) for cell in written] == [one_line(cell) for cell in cells]


@given(ANY)
def test_a_block_holds_its_lines(text: str) -> None:
    [fence] = PARSER.parse(block(text))
    assert (fence.type, fence.info) == ("fence", "text")
    assert fence.content.strip("\n") == visible(text).strip("\n")


def test_nobody_is_mentioned() -> None:
    assert prose("see @octocat in #12, :tada: of http://x and dot@mlp.py") == (
        "see @<!-- -->octocat in #<!-- -->12, :<!-- -->tada: of http:<!-- -->//x and dot@<!-- -->mlp.py"
    )
