"""A picture of a schedule: what runs when, what is in flight meanwhile, and how many bytes are kept.

Time is counted in ticks, the steps of the schedule: what a step takes is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_verify.render.pictures.sheet import FONT, NAMED, SMALL, Sheet, number, shortened, width_of

MOST_RUNS = 240
"""Of pieces of the row of instructions: neighbours are drawn as one where there are more."""

MOST_ROWS = 12
"""Of transfers in flight at a time. More are counted."""

MOST_TRANSFERS = 120
MOST_KEPT = 48
"""Of values in an allocation that is drawn by its bytes."""

WIDTH, LEFT, MARGIN = 640.0, 96.0, 12.0
ROW, GAP = 18.0, 16.0
BYTES = 90.0
"""How high bytes are drawn."""

KINDS = ("compute", "communication", "start or done", "move", "control")
COLOURS = dict(zip(KINDS, (NAMED[0], NAMED[4], NAMED[1], NAMED[2], NAMED[3]), strict=True))


@dataclass(frozen=True, slots=True)
class Span:
    """Something from the beginning of one tick to the end of another: an instruction (its kind is one of `KINDS`), or
    a transfer from its start to its done."""

    name: str
    begin: int
    end: int
    kind: str = "compute"
    at_fault: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes of an allocation that a value has, from when it is written to when it is read last."""

    name: str
    begin: int
    end: int
    low: int
    high: int
    at_fault: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """A schedule of `ticks` steps. `memory` has for ticks, in order, how many bytes are kept from then on; `buffers`
    are the values of the allocation called `allocation`, where that is to be looked at."""

    title: str
    ticks: int
    instructions: tuple[Span, ...]
    transfers: tuple[Span, ...] = ()
    memory: tuple[tuple[int, int], ...] = ()
    allocation: str = ""
    buffers: tuple[Kept, ...] = ()


def timeline_picture(timeline: Timeline, *, style: bool = True) -> str:
    """The schedule as SVG. Without `style` it is for a page that has `sheet.STYLE`."""
    sheet = Sheet(timeline.title, _said(timeline))
    sheet.text(MARGIN, MARGIN + FONT, shortened(timeline.title, WIDTH + LEFT), "strong")
    scale = WIDTH / max(timeline.ticks, 1)
    y = MARGIN + FONT + 14
    y = _instructions(sheet, timeline, scale, y)
    if timeline.transfers:
        y = _transfers(sheet, timeline, scale, y + GAP)
    if timeline.memory:
        y = _memory(sheet, timeline, scale, y + GAP)
    if timeline.buffers:
        y = _buffers(sheet, timeline, scale, y + GAP)
    y = _legend(sheet, timeline, y + GAP)
    return sheet.finished(LEFT + WIDTH + 2 * MARGIN, y + MARGIN, style=style)


def _runs(timeline: Timeline) -> list[Span]:
    """The instructions, with neighbours of one kind in one piece and, where these are too many, those that are less
    wide than can be seen."""
    least = timeline.ticks / MOST_RUNS if len(timeline.instructions) > MOST_RUNS else 0
    found: list[Span] = []
    count = 0
    for one in sorted(timeline.instructions, key=lambda span: (span.begin, span.end)):
        last = found[-1] if found else None
        narrow = last is not None and last.end - last.begin + 1 < least
        if last is not None and least and not one.at_fault and not last.at_fault and (last.kind == one.kind or narrow):
            count += 1
            begins = last.name.partition(" … ")[0]
            kind = one.kind if narrow and one.end - one.begin > last.end - last.begin else last.kind
            name = f"{begins} … {one.name}, {count} instructions"
            found[-1] = Span(name, last.begin, max(last.end, one.end), kind)
        else:
            count = 1
            found.append(one)
    return found


def _label(sheet: Sheet, y: float, *lines: str) -> None:
    for n, line in enumerate(lines):
        sheet.text(MARGIN, y + SMALL + 3 + n * (SMALL + 3), shortened(line, LEFT - 6, SMALL), "soft small")


def _bar(sheet: Sheet, span: Span, scale: float, y: float, height: float) -> None:
    """A span with its name, if there is room for it."""
    x, width = _x(span.begin - 1, scale), max((span.end - span.begin + 1) * scale, 0.8)
    ticks = f"at {span.begin}" if span.begin == span.end else f"{span.begin} to {span.end}"
    fill = COLOURS.get(span.kind, NAMED[0])
    sheet.box(
        x, y, width, height, "cell", fill=fill, stroke=0.6 if width > 2 else 0, round_=2, told=f"{span.name} ({ticks})"
    )
    if span.at_fault:
        sheet.box(x - 1, y - 1, max(width, 3) + 2, height + 2, "wrong", fill="none", stroke=2.5)
    if width > 30:
        sheet.text(x + 4, y + height / 2 + 3.5, shortened(span.name, width - 8, SMALL), "on small")


def _x(tick: float, scale: float) -> float:
    return MARGIN + LEFT + tick * scale


def _instructions(sheet: Sheet, timeline: Timeline, scale: float, y: float) -> float:
    step = _step(timeline.ticks)
    for tick in range(0, timeline.ticks + 1, step):
        sheet.text(_x(tick, scale), y + SMALL, str(tick), "soft small", middle=True)
        sheet.path(f"M{number(_x(tick, scale))} {number(y + SMALL + 3)}v5", "line")
    _label(sheet, y - 1, "tick")
    y += SMALL + 10
    _label(sheet, y, "instructions")
    for run in _runs(timeline):
        _bar(sheet, run, scale, y, ROW)
    return y + ROW


def _step(ticks: int) -> int:
    """Between two labelled ticks: 1, 2 or 5 times a power of ten, so that there are at most ten or so."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if ticks <= 10 * step * factor:
                return step * factor
        step *= 10


def _rows(spans: Sequence[Span]) -> list[list[Span]]:
    """Spans in rows, so that those of a row do not meet: each in the first row that is free."""
    rows: list[list[Span]] = []
    for span in sorted(spans, key=lambda one: (one.begin, one.end, one.name)):
        free = next((row for row in rows if row[-1].end < span.begin), None)
        if free is None:
            rows.append([span])
        else:
            free.append(span)
    return rows


def _transfers(sheet: Sheet, timeline: Timeline, scale: float, y: float) -> float:
    longest = sorted(timeline.transfers, key=lambda one: (not one.at_fault, one.begin - one.end, one.begin, one.name))
    rows = _rows(longest[:MOST_TRANSFERS])
    kept = sorted(rows, key=lambda row: not any(span.at_fault for span in row))[:MOST_ROWS]
    rows = [row for row in rows if row in kept]
    left_out = len(timeline.transfers) - sum(map(len, rows))
    _label(sheet, y, "in flight", *([f"{left_out} more"] if left_out else []))
    for row in rows:
        for span in row:
            _bar(sheet, span, scale, y, ROW - 4)
        y += ROW
    return y + (ROW if left_out and len(rows) == 1 else 0)


def _memory(sheet: Sheet, timeline: Timeline, scale: float, y: float) -> float:
    """Bytes as steps over time, with the most that there are."""
    most = max(kept for _, kept in timeline.memory)
    peak = next(tick for tick, kept in timeline.memory if kept == most)
    bottom, unit = y + BYTES, BYTES / max(most, 1)
    _label(sheet, y, "bytes kept", f"most {size_of(most)}", f"at {peak}")
    points = f"M{number(_x(timeline.memory[0][0] - 1, scale))} {number(bottom)}"
    for tick, kept in timeline.memory:
        points += f"H{number(_x(max(tick - 1, 0), scale))}V{number(bottom - kept * unit)}"
    points += f"H{number(_x(timeline.ticks, scale))}V{number(bottom)}Z"
    sheet.parts.append(f'<path class="bytes" d="{points}" fill="{NAMED[5]}"/>')
    sheet.path(f"M{number(_x(0, scale))} {number(bottom)}H{number(_x(timeline.ticks, scale))}", "line")
    at = _x(max(peak - 0.5, 0), scale)
    sheet.path(f"M{number(at)} {number(y)}V{number(bottom)}", "edge", dashed=True, told=f"{size_of(most)} at {peak}")
    return bottom


def _buffers(sheet: Sheet, timeline: Timeline, scale: float, y: float) -> float:
    """The bytes of an allocation from top to bottom, with the values that have them over time."""
    size = max(one.high for one in timeline.buffers)
    unit = BYTES / max(size, 1)
    kept = sorted(timeline.buffers, key=lambda one: (not one.at_fault, -(one.high - one.low), one.begin, one.name))
    left_out = len(kept) - MOST_KEPT
    _label(sheet, y, timeline.allocation, size_of(size), *([f"{left_out} more"] if left_out > 0 else []))
    sheet.box(_x(0, scale), y, WIDTH, BYTES, "panel", round_=0)
    for one in sorted(kept[:MOST_KEPT], key=lambda each: each.at_fault):
        x, top = _x(max(one.begin - 1, 0), scale), y + one.low * unit
        width, height = max((one.end - max(one.begin - 1, 0)) * scale, 1.5), max((one.high - one.low) * unit, 1.5)
        told = f"{one.name}: bytes {one.low} to {one.high}, {one.begin} to {one.end}"
        sheet.box(
            x, top, width, height, "cell", fill=NAMED[7] if one.at_fault else NAMED[6], stroke=0.8, round_=1, told=told
        )
        if one.at_fault:
            sheet.parts[-1] = sheet.parts[-1].replace('class="cell"', 'class="cell" fill-opacity="0.75"')
            sheet.box(x, top, width, height, "wrong", fill="none", stroke=2, round_=1)
        if height > SMALL and width > 30:
            sheet.text(x + 4, top + height / 2 + 3.5, shortened(one.name, width - 8, SMALL), "on small")
    return y + BYTES


def _legend(sheet: Sheet, timeline: Timeline, y: float) -> float:
    used = {one.kind for one in (*timeline.instructions, *timeline.transfers)}
    x = MARGIN + LEFT
    for kind in (kind for kind in KINDS if kind in used):
        sheet.box(x, y, 11, 11, "cell", fill=COLOURS[kind])
        sheet.text(x + 16, y + 9.5, kind, "soft small")
        x += width_of(kind, SMALL) + 34
    if _faults(timeline):
        sheet.box(x, y, 11, 11, "wrong", fill="none", stroke=2)
        sheet.text(x + 16, y + 9.5, "at fault", "soft small")
    return y + 11


def size_of(count: int) -> str:
    """Bytes as people say them.

    >>> size_of(512), size_of(3 << 20)
    ('512 B', '3.0 MiB')
    """
    size, units = float(count), iter(("B", "KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while size >= 1024 and unit != "TiB":
        size, unit = size / 1024, next(units)
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def _said(timeline: Timeline) -> str:
    """The picture in words."""
    said = [f"{len(timeline.instructions)} instructions over {timeline.ticks} ticks."]
    said += [f"{len(timeline.transfers)} transfers are in flight at some time."] if timeline.transfers else []
    said += [f"At most {size_of(max(kept for _, kept in timeline.memory))} are kept."] if timeline.memory else []
    faults = _faults(timeline)
    said += [f"At fault: {', '.join(faults)}."] if faults else []
    return " ".join(said)


def _faults(timeline: Timeline) -> list[str]:
    """The names of what is at fault, each once."""
    spans = (*timeline.instructions, *timeline.transfers)
    names = [*(one.name for one in spans if one.at_fault), *(one.name for one in timeline.buffers if one.at_fault)]
    return list(dict.fromkeys(names))
