"""What cannot be seen is written out."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.render.characters import one_line, visible

INVALID = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 (section 2.2) does not have."""


@given(st.text(st.characters(codec=None)))
def test_it_is_text_that_xml_has(text: str) -> None:
    shown = visible(text)
    assert not INVALID.search(shown)
    assert ElementTree.fromstring(f"<a>{shown.replace('&', '&amp;').replace('<', '&lt;')}</a>").text == (shown or None)
    assert visible(shown) == shown


def test_what_can_be_seen_stays() -> None:
    assert visible("sum k∈[0, 4). x × y\n\tλ") == "sum k∈[0, 4). x × y\n\tλ"
    assert visible("a\r\nb\rc\0") == "a\nb\\rc\\x00"
    assert one_line("  a\n\t b\u2028c ") == "a b\\u2028c"
