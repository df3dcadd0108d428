"""What a file of the gallery says, without what is another on each machine: times, versions, numbers, inputs.

Two runs of one version agree in it, and so should two versions that found the same: verdicts, codes, source lines,
sections, and which nodes, cases and rules there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

_SAID = re.compile(r"\b(?:PROVED|REFUTED|UNKNOWN|HV\d{3}|error|warning)\b|[\w./-]+\.py:\d+")
_HEADING = re.compile(
    r"<h[1-4][^>]*>(.*?)</h[1-4]>|<summary>(.*?)</summary>|<(?:section|article)[^>]* id=\"([^\"]+)\"", re.DOTALL
)
_TAG = re.compile(r"<[^>]+>")
_LABEL = re.compile(r"^(?:  )?([a-z]+(?: [a-z]+)?)  +\S", re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)+(?:e[-+]?\d+)?\w*|\b\d+(?= ms\b)")


def structure(file: Path) -> list[str]:
    """The lines that have to be the same."""
    read = _READERS["".join(file.suffixes[-2:]) if file.name.endswith(".junit.xml") else file.suffix]
    return list(read(file.read_text(encoding="utf-8")))


def _text(text: str) -> Iterator[str]:
    yield from _SAID.findall(text)
    yield from _LABEL.findall(text)


def _markdown(text: str) -> Iterator[str]:
    yield from re.findall(r"^#+ .*|^```\w*|^- \*\*[\w ]+\*\*", text, re.MULTILINE)
    yield from _SAID.findall(text)


def _html(text: str) -> Iterator[str]:
    body = text.partition("<body")[2]
    for found in _HEADING.findall(body):
        yield " ".join(_NUMBER.sub("N", _TAG.sub(" ", " ".join(found))).split())
    yield from _SAID.findall(_TAG.sub(" ", re.sub(r"<script.*?</script>", "", body, flags=re.DOTALL)))


def _svg(text: str) -> Iterator[str]:
    root = ElementTree.fromstring(text)
    for element in root.iter():
        said = _NUMBER.sub("N", " ".join((element.text or "").split()))
        if said and not element.tag.endswith("style"):
            yield said


def _xml(text: str) -> Iterator[str]:
    for element in ElementTree.fromstring(text).iter():
        yield f"{element.tag} {element.get('name', '')} {element.get('type', '')}"
        yield from _SAID.findall(element.text or "")


def _json(text: str) -> Iterator[str]:
    yield from _of_value("", json.loads(text))


def _of_value(path: str, value: Any) -> Iterator[str]:
    """Where values are, and of texts that stand for a finding what they are."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _of_value(f"{path}.{key}", each)
    elif isinstance(value, list):
        is_of_numbers = all(isinstance(each, int | float) for each in value)
        yield f"{path}: {'numbers' if is_of_numbers and value else len(value)}"
        for each in [] if is_of_numbers else value:
            yield from _of_value(path, each)
    elif isinstance(value, str):
        yield f"{path}: {' '.join(_SAID.findall(value))}"
    else:
        yield f"{path}: {type(value).__name__ if isinstance(value, int | float) else value}"


_READERS: dict[str, Callable[[str], Iterator[str]]] = {
    ".txt": _text,
    ".md": _markdown,
    ".html": _html,
    ".svg": _svg,
    ".junit.xml": _xml,
    ".json": _json,
    ".sarif": _json,
}
