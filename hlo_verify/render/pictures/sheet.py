"""What all pictures are drawn on: a sheet that becomes one self-contained SVG, in one style.

A picture has no identifiers, no scripts and nothing from elsewhere, so several stand in one page without meeting. Its
colours are custom properties with fallbacks: alone it follows the reader's light or dark theme, a page sets
`--hv-ink` and the others on `.hv-picture`, and paper has the light ones. Numbers are rounded, so that a picture is the
same text in every process.
"""

from __future__ import annotations

import colorsys
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

FONT = 12
"""Of a text, in units of the picture."""

SMALL = 10
"""Of a label beside a drawing."""

NARROW = 420
"""Wider pictures have a least width in a page, which then scrolls: a phone would shrink their text too much."""

READABLE = 0.62
"""Of a picture's own width, in pixels: the least at which its text is read."""

ADVANCE = 0.602
"""How wide a character of the usual monospaced fonts is, in parts of the font's size."""

LIGHT = {
    "ink": "#1f2328",
    "soft": "#59636e",
    "line": "#b6bec7",
    "ground": "#ffffff",
    "panel": "#f3f5f7",
    "wrong": "#c4244a",
    "link": "#0b62b8",
}
DARK = {
    "ink": "#e6edf3",
    "soft": "#9aa5b1",
    "line": "#4a535e",
    "ground": "#12161c",
    "panel": "#1c222a",
    "wrong": "#ff7b93",
    "link": "#6cb2ff",
}
ON_COLOUR = "#14171c"
"""Text on a coloured cell, which is as light in both themes."""

NAMED = ("#8ecae6", "#ffd166", "#a7c957", "#cdb4db", "#ffb4a2", "#7fd6c2", "#d9c3a5", "#f2a7cb")
"""The first colours: told apart by most eyes, and in grey by most printers."""


LEGIBLE = 5.5
"""The least contrast of text on a colour; WCAG 2.2 asks for 4.5."""

MOST_COLOURS = 512
"""That there are: more are not told apart by any eye."""


@cache
def colours(count: int) -> tuple[str, ...]:
    """As many different colours, each light enough for dark text; the first ones do not depend on how many.

    Raises ValueError for more than `MOST_COLOURS`.

    >>> len(set(colours(500)))
    500
    """
    if count > MOST_COLOURS:
        raise ValueError(f"there are {MOST_COLOURS} colours, not {count}")
    found = dict.fromkeys(NAMED)
    for turn in range(3 * MOST_COLOURS):
        hue, light = (0.03 + turn * 0.618034) % 1, (0.76, 0.67, 0.84)[turn % 3]
        parts = colorsys.hls_to_rgb(hue, light, 0.45 + 0.1 * (turn % 4))
        colour = "#" + "".join(f"{round(255 * part):02x}" for part in parts)
        if contrast(colour, ON_COLOUR) >= LEGIBLE:
            found[colour] = None
    return tuple(found)[:count]


def contrast(one: str, other: str) -> float:
    """How far two colours are apart in brightness, as WCAG 2 counts it: from 1 to 21.

    >>> round(contrast("#ffffff", "#000000"))
    21
    """
    bright, dark = sorted((_brightness(one), _brightness(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _brightness(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _declared(colours_of: dict[str, str]) -> str:
    return ";".join(f"--hv-{name}:{colour}" for name, colour in colours_of.items())


def _uses(what: str, name: str) -> str:
    """A property with a fallback for readers that know no custom properties."""
    return f"{what}:{LIGHT[name]};{what}:var(--hv-{name},{LIGHT[name]})"


STYLE = "".join(
    (
        f":where(.hv-picture){{{_declared(LIGHT)}}}",
        f"@media (prefers-color-scheme:dark){{:where(.hv-picture){{{_declared(DARK)}}}}}",
        f":where([data-theme=dark] .hv-picture){{{_declared(DARK)}}}",
        f":where([data-theme=light] .hv-picture){{{_declared(LIGHT)}}}",
        f"@media print{{.hv-picture{{{_declared(LIGHT)};min-width:0!important;print-color-adjust:exact;"
        "-webkit-print-color-adjust:exact}}",
        f".hv-picture{{max-width:100%;height:auto;font:{FONT}px ui-monospace,SFMono-Regular,Menlo,Consolas,"
        "'DejaVu Sans Mono',monospace}",
        f".hv-picture text{{{_uses('fill', 'ink')};stroke:none}}",
        f".hv-picture text.small{{font-size:{SMALL}px}}",
        f".hv-picture text.soft{{{_uses('fill', 'soft')}}}",
        f".hv-picture text.on{{fill:{ON_COLOUR}}}",
        f".hv-picture text.wrong{{{_uses('fill', 'wrong')};font-weight:bold}}",
        ".hv-picture text.strong{font-weight:bold}",
        f".hv-picture text.mark{{{_uses('fill', 'ground')}}}",
        f".hv-picture .ground{{{_uses('fill', 'ground')}}}",
        f".hv-picture .panel{{{_uses('fill', 'panel')};{_uses('stroke', 'line')}}}",
        f".hv-picture .cell{{{_uses('stroke', 'ground')}}}",
        f".hv-picture .line{{fill:none;{_uses('stroke', 'line')}}}",
        f".hv-picture .edge{{fill:none;{_uses('stroke', 'soft')}}}",
        f".hv-picture .head{{{_uses('fill', 'soft')}}}",
        f".hv-picture .link{{fill:none;{_uses('stroke', 'link')}}}",
        f".hv-picture .linked{{{_uses('fill', 'link')}}}",
        f".hv-picture rect.wrong{{{_uses('stroke', 'wrong')}}}",
        f".hv-picture .hatch{{fill:none;stroke:{ON_COLOUR};stroke-opacity:.3}}",
    )
)
"""What a page that holds several pictures needs once; each has it, unless it is asked not to."""

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """A text as it stands in XML, between tags or in an attribute; what XML cannot hold becomes a replacement mark."""
    plain = _NOT_XML.sub("\ufffd", text)
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;")):
        plain = plain.replace(sign, entity)
    return plain


def width_of(text: str, size: float = FONT) -> float:
    """How wide a text is drawn, about: characters of East Asian scripts count twice."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text) * ADVANCE * size


def shortened(text: str, width: float, size: float = FONT) -> str:
    """A text that fits a width, with a mark where its middle was left out.

    >>> shortened("stablehlo.dot_general", 80)
    'stabl…neral'
    """
    if width_of(text, size) <= width:
        return text
    kept = max(int(width / (ADVANCE * size)) - 1, 0)
    while kept > 0:
        short = f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :] if kept // 2 else ''}"
        if width_of(short, size) <= width:
            return short
        kept -= 1
    return "…"


def number(value: float) -> str:
    """A coordinate, to a tenth of a unit.

    >>> number(3.0), number(2.25), number(-0.01)
    ('3', '2.2', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


@dataclass
class Sheet:
    """A picture that is being drawn; `title` and `said` are what it is to those who cannot see it."""

    title: str
    said: str
    parts: list[str] = field(default_factory=list)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        kind: str,
        *,
        fill: str = "",
        stroke: float = 1,
        round_: float = 3,
        dashed: bool = False,
        outline: str = "",
        told: str = "",
    ) -> None:
        """A rectangle; `told` is shown to who points at it. `fill` and `outline` are colours other than its kind's."""
        place = f'x="{number(x)}" y="{number(y)}" width="{number(max(width, 0.5))}" height="{number(height)}"'
        look = (f' fill="{fill}"' if fill else "") + (f' stroke="{outline}"' if outline else "")
        look += f' stroke-width="{number(stroke)}"' + (' stroke-dasharray="4 3"' if dashed else "")
        inner = f"<title>{escaped(told)}</title>" if told else ""
        self.parts.append(f'<rect class="{kind}" {place} rx="{number(round_)}"{look}>{inner}</rect>')

    def text(
        self,
        x: float,
        y: float,
        text: str,
        kind: str = "",
        *,
        middle: bool = False,
        end: bool = False,
        turned: float = 0,
    ) -> None:
        """A line of text, at its left end unless another one is asked for; `turned` in degrees."""
        anchor = ' text-anchor="middle"' if middle else ' text-anchor="end"' if end else ""
        turn = f' transform="rotate({number(turned)} {number(x)} {number(y)})"' if turned else ""
        look = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text{look} x="{number(x)}" y="{number(y)}"{anchor}{turn}>{escaped(text)}</text>')

    def path(
        self, points: str, kind: str, *, stroke: float = 1, dashed: bool = False, colour: str = "", told: str = ""
    ) -> None:
        """A line by SVG's commands."""
        look = f' stroke="{colour}"' if colour else ""
        look += f' stroke-width="{number(stroke)}"' + (' stroke-dasharray="4 3"' if dashed else "")
        inner = f"<title>{escaped(told)}</title>" if told else ""
        self.parts.append(f'<path class="{kind}" d="{points}"{look}>{inner}</path>')

    def hatch(self, x: float, y: float, width: float, height: float) -> None:
        """Slanted lines over a box: something of it is missing."""
        step, points = 8.0, []
        offset = step / 2
        while offset < width + height:
            low, high = max(offset - height, 0.0), min(offset, width)
            points.append(
                f"M{number(x + low)} {number(y + offset - low)}L{number(x + high)} {number(y + offset - high)}"
            )
            offset += step
        self.path("".join(points), "hatch")

    def head(self, x: float, y: float, dx: float, dy: float, kind: str = "head", size: float = 6) -> None:
        """The head of an arrow that ends at a point, in a direction."""
        length = (dx * dx + dy * dy) ** 0.5 or 1.0
        dx, dy = dx / length * size, dy / length * size
        ends = [(x, y), (x - dx - dy / 2, y - dy + dx / 2), (x - dx + dy / 2, y - dy - dx / 2)]
        self.path("M" + "L".join(f"{number(a)} {number(b)}" for a, b in ends) + "Z", kind, stroke=0)

    def mark(self, x: float, y: float, text: str) -> None:
        """A small round mark with a number in it, around a point."""
        half = max(7.5, width_of(text, SMALL) / 2 + 3.5)
        self.parts.append(
            f'<rect class="linked" x="{number(x - half)}" y="{number(y - 7.5)}" '
            f'width="{number(2 * half)}" height="15" rx="7.5"/>'
        )
        self.text(x, y + SMALL / 3, text, "mark small", middle=True)

    def finished(self, width: float, height: float, *, style: bool = True) -> str:
        """The picture as SVG. Without `style` it is for a page that has `STYLE` already."""
        size = f'viewBox="0 0 {number(width)} {number(height)}" width="{number(width)}" height="{number(height)}"'
        least = f' style="min-width:{number(width * READABLE)}px"' if width > NARROW else ""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="hv-picture" role="img" {size}{least}>'
        named = f"<title>{escaped(self.title)}</title><desc>{escaped(self.said)}</desc>"
        look = f"<style>{STYLE}</style>" if style else ""
        ground = f'<rect class="ground" width="{number(width)}" height="{number(height)}"/>'
        return "\n".join([head, named + look, ground, *self.parts, "</svg>"]) + "\n"


def listed(numbers: Iterable[int], most: int = 0) -> str:
    """Numbers as runs, and of many runs the first ones; 0 is all.

    >>> listed([0, 1, 2, 5, 7, 8]), listed([0, 2, 4, 6], 2)
    ('0–2, 5, 7, 8', '0, 2, … (4 in all)')
    """
    ordered = sorted(set(numbers))
    runs: list[list[int]] = []
    for each in ordered:
        if runs and each == runs[-1][-1] + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    said = [f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    if most and len(said) > most:
        return f"{', '.join(said[:most])}, … ({len(ordered)} in all)"
    return ", ".join(said)


def shown(size: int, most: int) -> tuple[int | None, ...]:
    """The positions of an axis that are drawn: all, or the first ones and the last one, with None for those between.

    >>> shown(4, 8), shown(512, 4)
    ((0, 1, 2, 3), (0, 1, 2, None, 511))
    """
    if size <= most:
        return tuple(range(size))
    return (*range(most - 1), None, size - 1)


def fitted(sizes: Sequence[int], most: int) -> tuple[int, ...]:
    """How many positions of each axis are drawn, so that no more than `most` cells are: the longest ones give way.

    >>> fitted((4, 4), 64), fitted((16, 512), 64), fitted((8192,), 64)
    ((4, 4), (8, 8), (64,))
    """
    found = list(sizes)
    while _product(found) > most and max(found) > 2:
        longest = max(range(len(found)), key=lambda k: (found[k], k))
        found[longest] -= 1
    return tuple(found)


def _product(sizes: Iterable[int]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found
