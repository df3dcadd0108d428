"""Templates are compiled once for all processes, and no file with what they were compiled to makes a page wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2 import DictLoader, Environment

from hlo_verify.render.html import compiled
from hlo_verify.render.html.compiled import Compiled


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    return tmp_path


def page(text: str = "{{ 2 }} <b>", settings: str = "") -> tuple[str, int]:
    """What a template gives in a new environment, and how often that had to compile one."""
    sources: list[str] = []

    class Counting(Environment):
        def compile(self, source: str, *rest: object, **options: object) -> object:  # type: ignore[override]
            sources.append(source)
            return super().compile(source, *rest, **options)  # type: ignore[call-overload]

    environment = Counting(loader=DictLoader({"page": text}), bytecode_cache=Compiled(settings))
    return environment.get_template("page").render(), len(sources)


def kept(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def test_the_second_environment_compiles_nothing(folder: Path) -> None:
    assert page() == ("2 <b>", 1)
    assert page() == ("2 <b>", 0)
    [file] = kept(folder)
    assert file.suffix == ".template"


def test_another_text_or_setting_is_compiled_anew() -> None:
    page()
    assert page("{{ 3 }}") == ("3", 1)
    assert page("{{ 3 }}", "other") == ("3", 1)


@pytest.mark.parametrize("keep", [0, 1, 8, 30, 60, -1])
def test_a_damaged_file_is_none(keep: int, folder: Path) -> None:
    page()
    [file] = kept(folder)
    file.write_bytes(file.read_bytes()[:keep])
    assert page() == ("2 <b>", 1)
    file.write_bytes(b"\0" * 100)
    assert page() == ("2 <b>", 1)


def test_what_cannot_be_written_is_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(folder / "a file"))
    (folder / "a file").write_text("")
    assert page() == page() == ("2 <b>", 1)


def test_nothing_is_written_where_python_writes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert page() == page() == ("2 <b>", 1)
    assert not kept(folder)


def test_no_damage_reaches_the_interpreter(folder: Path) -> None:
    """Whichever byte is another one: `marshal` and `pickle` may raise anything of such, or end the process."""
    page()
    [file] = kept(folder)
    good = file.read_bytes()
    for at in range(0, len(good), 7):
        file.write_bytes(good[:at] + bytes([good[at] ^ 0x5A]) + good[at + 1 :])
        assert page() == ("2 <b>", 1), at
    assert kept(folder) == [file]


def test_where_python_keeps_no_modules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.implementation, "cache_tag", None)
    assert page() == page() == ("2 <b>", 1)
    assert not kept(folder)


def test_another_jinja_compiles_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    page()
    monkeypatch.setattr(compiled, "version", lambda name: "another")
    assert page() == ("2 <b>", 1)
