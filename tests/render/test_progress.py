"""The progress bar appears on a terminal, and only for work that takes longer than a second."""

from __future__ import annotations

import io
import re
import sys

import pytest

from hlo_verify.render import progress
from hlo_verify.render.progress import Bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch, patience: float = 0.0) -> Terminal:
    """Called in the test itself: pytest puts its own stderr in place before each phase."""
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    return screen


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch, patience=1.0)
    with Bar(shown=True) as bar:
        bar(1, 2)
        bar(2, 2)
    assert terminal.getvalue() == ""


def test_long_work_shows_how_much_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with Bar(shown=True, description="step[/a]") as bar:
        bar(0, 0)
        bar(3, 4)
    assert "step[/a]" in terminal.getvalue()
    assert "3/4" in terminal.getvalue()


def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with Bar(shown=False) as bar:
        bar(3, 4)
    assert terminal.getvalue() == ""


def test_it_is_cleared_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with pytest.raises(KeyError), Bar(shown=True) as bar:
        bar(1, 4)
        raise KeyError
    assert "\033[?25h" in terminal.getvalue(), "the cursor is shown again"
    assert terminal.getvalue().endswith("\033[1A\033[2K"), "the line is erased"


@pytest.mark.parametrize("columns", [30, 40, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_it_stays_on_one_line(monkeypatch: pytest.MonkeyPatch, columns: int, encoding: str) -> None:
    """What is worked on and how many are left stay readable; what there is no room for is cut."""

    class Encoded(Terminal):
        @property
        def encoding(self) -> str:  # type: ignore[override]
            return encoding

    open_terminal(monkeypatch)
    screen = Encoded()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", str(columns))
    with Bar(shown=True) as bar:
        bar.works_on("module_0001.jit_train_step_with_a_long_name", 12)
        bar(1, 2)
        bar(123456, 234567)
    lines = re.split(r"[\r\n]", re.sub(r"\x1b\[[\d;?]*\w", "", screen.getvalue()))
    assert max(map(len, lines)) <= columns
    assert all("(12 left) modul" in line for line in lines if line.strip())
    assert "123456/234567" in screen.getvalue()
    screen.getvalue().encode(encoding)
