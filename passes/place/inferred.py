"""What was inferred of a pair that does not say where everything lies, in words, and what a verdict may make of it.

Concatenation and copies may be inferred of a result, and a verdict says so in its own line. A sum of addends may not: a
result of which every device holds an addend looks just like one whose all_reduce was forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from hlo_verify.diagnostics import Annotation
from hlo_verify.passes.place.allowed import Budget, Guessed, Tried
from hlo_verify.passes.place.choices import Choice
from hlo_verify.passes.prove.reports import late
from hlo_verify.program.ir import Module, TensorType
from hlo_verify.program.sharding import Sharding, unreduced
from hlo_verify.report import Report, Result, Verdict
from hlo_verify.session import Session, TimeUpError
from hlo_verify.xla.annotate import hlo_text

if TYPE_CHECKING:
    from hlo_verify.passes.refute.trial import Counterexample


@dataclass(frozen=True, slots=True, eq=False)
class Inferred:
    """Both modules, the logical one with every sharding, and in words what was inferred of them, if anything was.

    The partitioned module is another than it was where an argument is taken in parts.
    """

    logical: Module
    partitioned: Module
    said: tuple[str, ...] = ()
    """A line for all arguments, or results, that lie alike."""
    under: str = ""
    """The same in one line, as a verdict's own line has it."""
    unreduced: Mapping[int, Sharding] = field(default_factory=dict)
    """Results that are right as sums of what devices hold, which nobody asked for."""
    guessed: Guessed | None = None
    """What is not stated; None where all is."""
    origins: tuple[int, ...] = ()
    """Which stated argument each of the logical module's arguments is, or a part of."""

    def of(self, partitioned: Module) -> Inferred:
        """The same of another partitioned module, with arguments and results of the same types."""
        guessed = None if self.guessed is None else replace(self.guessed, partitioned=partitioned)
        return replace(self, partitioned=partitioned, guessed=guessed)

    def judged(self, report: Report, found: Sequence[Counterexample] = (), session: Session | None = None) -> Report:
        """The report with what was inferred, which may not make verdicts of everything; `found` refutes its results."""
        if self.guessed is None:
            return report
        tried = self._tried(report, found, session or Session())
        results = tuple(self._judged(result, tried) for result in report.results)
        return replace(report, results=results, inferred=self.said, under=self.under)

    def _tried(self, report: Report, found: Sequence[Counterexample], session: Session) -> Tried:
        """What becomes of refuted results however arguments and results lie."""
        assert self.guessed is not None
        session.phase = "other placements were tried than those that were inferred"
        budget = Budget(session)
        refuted = {result.index for result in report.results if result.verdict is Verdict.REFUTED}
        wrong = {n for n in refuted if not self.guessed.bears_on(n)}
        sums: set[int] = set()
        for each in found:
            left = refuted & each.differences.keys() - wrong - self.unreduced.keys()
            zero = [not np.any(blocks.values) for blocks in each.trial.inputs]
            others = {origin for origin, is_zero in zip(self.origins, zero, strict=True) if not is_zero}
            try:
                tried = self.guessed.tried(left, set(self.origins) - others, budget) if left else Tried()
            except TimeUpError:
                return Tried(frozenset(wrong), frozenset(sums), session)
            wrong |= tried.wrong
            sums |= tried.sums
        return Tried(frozenset(wrong), frozenset(sums))

    def _judged(self, result: Result, tried: Tried) -> Result:
        n = result.index
        if result.verdict is Verdict.PROVED or n in tried.wrong:
            return result
        if n in tried.sums:
            type_, sharding = self.logical.result_types[n], self.logical.result_shardings[n]
            assert sharding is not None
            return _left_open(result, unreduced(type_.rank, sharding.devices), ", as far as inputs were tried")
        if n in self.unreduced:
            return _left_open(result, self.unreduced[n])
        if result.verdict is not Verdict.REFUTED:
            return result
        withdrawn = self._withdrawn(result)
        return withdrawn if tried.late is None else late(withdrawn, tried.late)

    def _withdrawn(self, result: Result) -> Result:
        """A result that is refuted only where everything lies as was inferred."""
        assert result.witness is not None
        nearest = f"; {result.reason}" if result.reason else ""
        return replace(
            result,
            verdict=Verdict.UNKNOWN,
            reason=(
                f"differs with {self.under}, which was inferred: {result.witness.point}{nearest}. Nothing says that "
                "this is what is meant: state it with --shardings FILE"
            ),
            code=Annotation.GUESSED_PLACEMENT,
            witness=None,
        )


def _left_open(result: Result, sharding: Sharding, so_far: str = "") -> Result:
    """A result that comes out as a sum that nobody completes; `so_far` says by what that is known."""
    return replace(
        result,
        verdict=Verdict.UNKNOWN,
        reason=(
            f"comes out unreduced: the logical result is the sum of what {sharding.addend_count} devices hold{so_far}, "
            "and nothing says that it should be; if no all_reduce was forgotten, give --results FILE with "
            f'[results] {result.index} = "{_asked(sharding)}"'
        ),
        code=Annotation.UNREDUCED_RESULT,
        witness=None,
    )


def _asked(sharding: Sharding) -> str:
    """What a shardings file says of such a result."""
    plain = sharding.addend_count == sharding.devices
    return "{unreduced}" if plain else hlo_text(sharding)


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What there is to say: how arguments lie that were inferred, and which results were."""

    module: Module
    arguments: Mapping[int, Choice]
    results: Collection[int]

    def sides(self) -> Iterator[tuple[str, Mapping[int, Choice], Sequence[str], Sequence[TensorType]]]:
        module = self.module
        yield "argument", self.arguments, module.argument_names, module.main.argument_types
        shardings = {n: sharding for n in self.results if (sharding := module.result_shardings[n]) is not None}
        choices = {n: Choice(sharding) for n, sharding in shardings.items()}
        yield "result", choices, module.result_names, module.result_types


def said(told: Told) -> tuple[str, ...]:
    """What was inferred: of arguments, then of results, those of one kind together."""
    lines = []
    for what, choices, names, types in told.sides():
        together: dict[str, list[str]] = {}
        for n, choice in choices.items():
            together.setdefault(choice.lies(types[n].shape), []).append(names[n])
        lines += [f"{what}{'s' if len(each) > 1 else ''} {', '.join(each)}: {text}" for text, each in together.items()]
    return tuple(lines)


def under(told: Told) -> str:
    """The same in a line; what is replicated comes last, by its number where there is much of it."""
    parts: list[str] = []
    copies: list[str] = []
    for what, choices, names, types in told.sides():
        together: dict[str, list[str]] = {}
        for n, choice in choices.items():
            together.setdefault(choice.placed(types[n].shape), []).append(names[n])
        whole = together.pop("replicated", [])
        copies += [f"{len(whole)} {what}s"] if len(whole) > NAMED else whole
        parts += [f"{', '.join(each)} {text}" for text, each in together.items()]
    if copies:
        parts.append(f"{', '.join(copies)} replicated")
    return "; ".join(parts)


NAMED = 4
"""More arguments or results than this that are replicated are counted, not named, in a line."""
