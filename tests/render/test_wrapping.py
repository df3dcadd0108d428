"""Lines for a terminal: none is too long that has a space to break at, and no word is lost."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.render.text import Style, render
from hlo_verify.render.wrapping import NARROWEST, wrapped
from hlo_verify.report import Verdict
from tests.programs import report

WORDS = st.lists(st.text("ab\x1b[1m", min_size=1, max_size=12) | st.just("x" * 50), max_size=30)


@given(WORDS, st.integers(0, 100), st.sampled_from(["", "  ", "  label      ", "PROVED   "]))
def test_words_stay_in_order_on_lines_that_fit(words: list[str], width: int, label: str) -> None:
    line = label + " ".join(words)
    lines = wrapped(line, width).split("\n")
    assert " ".join(lines).split() == line.split()
    for each in lines if width >= NARROWEST else []:
        seen = re.sub(r"\x1b\[[\d;]*m", "", each)
        label_and_word = len(seen.split()) <= 1 + (each is lines[0]) * len(label.split())
        assert len(seen) <= width or label_and_word


def test_what_fits_is_as_it_was() -> None:
    text = "  a   b\n\n    c"
    assert wrapped(text, 80) == wrapped(text, 0) == text


def test_a_report_on_a_narrow_terminal() -> None:
    text = render([report(Verdict.REFUTED)], Style(width=40, color=True), several=False)
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert "UNKNOWN" not in plain and "\n  source     train.py:57\n" in plain
    assert "  operation  %5 = stablehlo.multiply %3,\n             %4 : tensor<512x4096xf32>\n" in plain
    narrower = re.sub(
        r"\x1b\[[\d;]*m", "", render([report(Verdict.REFUTED)], Style(width=36, color=True), several=False)
    )
    assert "  term       sum k<512. x[i,k] *\n             w[k,j]\n" in narrower, "colours do not count"
