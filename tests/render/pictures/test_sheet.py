"""The style that all pictures have."""

from __future__ import annotations

import pytest

from hlo_verify.render.pictures.sheet import (
    DARK,
    LEGIBLE,
    LIGHT,
    MOST_COLOURS,
    ON_COLOUR,
    STYLE,
    Sheet,
    colours,
    contrast,
    fitted,
    shortened,
    width_of,
)


def test_text_is_legible_on_every_colour() -> None:
    every = colours(MOST_COLOURS)
    assert len(set(every)) == MOST_COLOURS
    assert min(contrast(colour, ON_COLOUR) for colour in every) >= LEGIBLE
    assert colours(3) == every[:3]
    with pytest.raises(ValueError, match="512 colours"):
        colours(MOST_COLOURS + 1)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_is_legible_in_both_themes(theme: dict[str, str]) -> None:
    for text in ("ink", "soft", "wrong", "link"):
        assert min(contrast(theme[text], theme[ground]) for ground in ("ground", "panel")) >= 4.5, text
    assert LIGHT.keys() == DARK.keys() and all(f"--hv-{name}:" in STYLE for name in LIGHT)


def test_a_picture_that_knows_no_custom_properties_has_colours() -> None:
    assert f"fill:{LIGHT['ink']};fill:var(--hv-ink,{LIGHT['ink']})" in STYLE


@pytest.mark.parametrize("text", ["", "a", "stablehlo.dot_general", "層" * 30, "x" * 500])
@pytest.mark.parametrize("width", [0, 10, 80, 200])
def test_a_shortened_text_fits(text: str, width: float) -> None:
    short = shortened(text, width)
    assert width_of(short) <= width or short == "…"
    assert short == text or "…" in short


def test_what_is_drawn_of_many_positions() -> None:
    for sizes in ((1,), (8192,), (3, 5000), (2, 2, 2, 1024), (100,) * 5):
        found = fitted(sizes, 64)
        product = 1
        for size in found:
            product *= size
        assert product <= 64 and all(one <= size for one, size in zip(found, sizes, strict=True))


def test_wide_pictures_have_a_least_width() -> None:
    assert 'style="min-width:620px"' in Sheet("t", "s").finished(1000, 10)
    assert "min-width" not in Sheet("t", "s").finished(300, 10, style=False)
