"""A report as it is handed to Python: it shows itself as text, names its results by path, and raises where asked to."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import SupportsIndex, overload

from hlo_verify import report as model
from hlo_verify.render import text
from hlo_verify.report import Result, Verdict

_PARTS = re.compile(r"[^\[\]'\"./]+")
NEAR = 6
"""Names that are told where none is the one asked for."""


class Results(tuple[Result, ...]):
    """The results in their order, by number and by path: `results[0]`, `results["params/w1"]`."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex) -> Result: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Result, ...]: ...
    @overload
    def __getitem__(self, key: str) -> Result: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> Result | tuple[Result, ...]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = [result for result in self if key == result.name or _path(key) == _path(result.name)]
        if len(found) == 1:
            return found[0]
        names = ", ".join(result.name for result in (found or self)[:NEAR])
        what = f"{len(found)} results are" if found else "no result is"
        raise KeyError(f"{what} called {key!r}: {names}{' …' if len(found or self) > NEAR else ''}")


def _path(name: str) -> tuple[str, ...]:
    """The parts of a result's path: of `result['params']['w1']` and of `params/w1` alike."""
    parts = _PARTS.findall(name)
    return tuple(parts[1:] if parts[:1] == ["result"] and len(parts) > 1 else parts)


class NotProvedError(AssertionError):
    """Something was asked to be proved, and is not: it is REFUTED or UNKNOWN. `report` says which, and why."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        return str(self.report)


@dataclass(frozen=True, slots=True, repr=False)
class Report(model.Report):
    """The report of a verification. `str(report)` is the one that `hlo-verify` prints."""

    results: Results

    def __str__(self) -> str:
        return text.render([self], text.Style(), several=False).rstrip("\n")

    def __repr__(self) -> str:
        return f"<Report of {self.name}: {self.verdict}, {text.summary(self)}{text.given([self])}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from hlo_verify.render import html

        return html.fragment(self)

    def raise_for_verdict(self) -> Report:
        """The report itself if all is PROVED. Raises `NotProvedError` if anything is not."""
        if self.verdict is not Verdict.PROVED:
            raise NotProvedError(self)
        return self


def shown(report: model.Report) -> Report:
    """A report as Python users have it."""
    held = {field.name: getattr(report, field.name) for field in fields(model.Report)}
    return Report(**{**held, "results": Results(report.results)})
