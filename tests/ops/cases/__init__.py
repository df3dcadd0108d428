"""One table: for every operation that has a rule, how to draw a small program with it."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.ops.cases import collectives, contraction, control, elementwise, indexing, movement, opaque, reductions
from tests.ops.cases.drawing import Case

CASES: dict[str, st.SearchStrategy[Case]] = {
    **elementwise.CASES,
    **movement.CASES,
    **contraction.CASES,
    **reductions.CASES,
    **indexing.CASES,
    **opaque.CASES,
    **control.CASES,
    **collectives.CASES,
}
