"""Pictures of timelines: every transfer has a bar, none meet, and large schedules stay small."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_verify.render.pictures.timeline import MOST_ROWS, MOST_RUNS, Kept, Span, Timeline, timeline_picture

SVG = "{http://www.w3.org/2000/svg}"

spans = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 9)), min_size=1, max_size=10)


def bars(root: ET.Element) -> dict[str, tuple[float, float, float]]:
    """Of each bar its row, and from where to where it is."""
    found = {}
    for each in root.iter(f"{SVG}rect"):
        if len(each) and each.get("class") == "cell":
            x, y, width = (float(each.get(key) or 0) for key in ("x", "y", "width"))
            found[(each[0].text or "").partition(" (")[0]] = (y, x, x + width)
    return found


@settings(max_examples=40, deadline=None)
@given(spans)
def test_transfers_have_bars_that_do_not_meet(drawn: list[tuple[int, int]]) -> None:
    transfers = tuple(Span(f"t{n}", begin, begin + more, "move") for n, (begin, more) in enumerate(drawn))
    found = bars(ET.fromstring(timeline_picture(Timeline("m", 40, (), transfers))))
    assert found.keys() == {span.name for span in transfers}
    for one, other in itertools.combinations(found.values(), 2):
        assert one[0] != other[0] or one[2] <= other[1] + 0.2 or other[2] <= one[1] + 0.2


def test_a_large_schedule_stays_small() -> None:
    kinds = ("compute", "move", "control")
    instructions = tuple(Span(f"i{n}", n, n, kinds[n % 3], n == 30_000) for n in range(1, 60_001))
    transfers = tuple(Span(f"t{n}", n, n + 20_000, "communication") for n in range(1, 2001))
    memory = tuple((n, n) for n in range(1, 60_001, 100))
    buffers = tuple(Kept(f"v{n}", n, n + 9, 16 * n, 16 * n + 16) for n in range(1, 1000))
    picture = timeline_picture(Timeline("m", 60_000, instructions, transfers, memory, "allocation 1", buffers))
    root = ET.fromstring(picture)
    assert len(picture) < 120_000
    found = bars(root)
    assert "i30000" in found and sum(name.startswith("i") for name in found) <= 2 * MOST_RUNS + 3
    assert len({row for name, (row, _, _) in found.items() if name.startswith("t")}) <= MOST_ROWS
    texts = [each.text or "" for each in root.iter(f"{SVG}text")]
    assert "1988 more" in texts and "951 more" in texts


def test_names_are_escaped() -> None:
    nasty = "<script>alert(1)</script>"
    everything = Timeline(
        nasty,
        3,
        (Span(nasty, 1, 1, at_fault=True),),
        (Span(nasty, 1, 3),),
        ((1, 8),),
        nasty,
        (Kept(nasty, 1, 2, 0, 8),),
    )
    picture = timeline_picture(everything)
    assert "<script" not in picture
    assert ET.fromstring(picture)[1].text == (
        f"1 instructions over 3 ticks. 1 transfers are in flight at some time. At most 8 B are kept. At fault: {nasty}."
    )


def test_an_empty_schedule() -> None:
    ET.fromstring(timeline_picture(Timeline("m", 0, ())))
