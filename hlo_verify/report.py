"""The result model: what was decided, for which results, and why. Renderers know nothing of the prover."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hlo_verify.diagnostics import Code, Diagnostic, Mismatch, Severity, Solver
from hlo_verify.limits import that_matter
from hlo_verify.scene import Scene
from hlo_verify.witness import Witness

FEW = 6
"""Inputs that so many arguments share are told once."""


class Verdict(enum.StrEnum):
    """PROVED: equal for all inputs. REFUTED: a witness exists. UNKNOWN: neither."""

    PROVED = "PROVED"
    REFUTED = "REFUTED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Finding:
    """The operation of the partitioned module at which the meaning of a result is lost.

    Its operands are shards of logical values, its own value is none. `operation` is its
    StableHLO line, `location` the user's source line at fault (of the operation, or of what
    was left out before it), `found` its term, `expected` what the logical module has there,
    `nearest` the logical tensor that nearly matches, with what differs. `code` is the kind of mismatch: known of a
    refuted result, suspected of an unknown one. `suggestion` is an edit that was proved to make the
    results right, where one was found. `module` is the module of a network that the line belongs to, `frames` the whole
    stack of it, innermost first, libraries too. Results that fail for one reason have equal findings.
    """

    operation: str
    location: str
    found: str
    expected: str = ""
    nearest: str = ""
    code: Mismatch = Mismatch.DIFFERS
    suggestion: str = ""
    module: str = ""
    frames: tuple[str, ...] = ()
    scene: Scene | None = field(default=None, compare=False)
    """What is around it, of the first findings of a report."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was done in vain for a result that is not proved.

    `limits` are those that were run into, by the names that they have in `Limits`, `candidates` how many values of the
    devices were compared with logical ones case by case, `inputs` for how many inputs both modules were evaluated,
    `not_evaluated` operations that could not be, with location and why. `phase` says what was being done when the time
    was up; it is empty where it was not.
    """

    limits: tuple[str, ...] = ()
    candidates: int = 0
    inputs: int = 0
    not_evaluated: tuple[str, ...] = ()
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict for one result of the module.

    `code` says of a refuted result which mismatch it is (its finding's), of an unknown one which kind of unknown; a
    proved one has none. A refuted one has a witness, an unknown one what was spent on it.
    """

    index: int
    name: str
    verdict: Verdict
    reason: str = ""
    location: str = ""
    finding: Finding | None = None
    code: Code | None = None
    witness: Witness | None = None
    spent: Spent | None = None
    by_device: bool = False
    """Whether it is proved for each device by itself, and not for all of them at once."""
    seems_to_differ: bool = False
    """Whether numbers were seen to differ for some inputs, of an unknown result that could not be refuted by these."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A cut point: the partitioned value of `operation` was found to be a shard of a logical tensor.

    `lineage` says which, as index notation; `shared` is true where an equal stage had been proved before.
    """

    operation: str
    location: str
    lineage: str
    shared: bool = False


@dataclass(frozen=True, slots=True)
class LawUse:
    """A law by which terms were made equal: its name, what it says, and how often it was used in both modules."""

    name: str
    says: str
    times: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A step of a proof that is wrong, which is a defect of hlo-verify: the operation, where it is from, and an
    element with values for which the step does not hold."""

    operation: str
    location: str
    model: str


@dataclass(frozen=True, slots=True)
class Recheck:
    """What became of the steps of a proof when they were checked a second time.

    A step is the meaning of one result of an operation, an argument or a result of the module. Of `steps`, `agreed`
    were shown again (`by_solver` by the solver, the others had the same formulas on both sides; `bounded` at an
    instance that keeps a large size), and `unchecked` were not: operation and reason, with how many. `partly` agree at
    the elements that were looked at, of more than can be. `questions` is how many steps differ from one another,
    `ended` is why it ended early: interrupted, or the time was up. `limits` are those that were run into, by the names
    that they have in `Limits`.
    """

    steps: int
    questions: int
    agreed: int
    by_solver: int
    bounded: int
    unchecked: tuple[tuple[str, int], ...]
    disagreements: tuple[Disagreement, ...]
    seconds: float
    ended: str = ""
    partly: int = 0
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Preconditions that integers lie inside of the dimensions that they index.

    `results` are those that differ for other inputs alone, as far as any were found, `proved` those of them that are
    proved under the preconditions. The verdict without them stays what it is. Where no inputs were `found` at all, the
    results are unknown.
    """

    preconditions: tuple[str, ...]
    results: tuple[str, ...]
    proved: tuple[str, ...]
    found: bool = True

    def __str__(self) -> str:
        under = ", ".join(f"`{each}`" for each in self.preconditions)
        if not self.found:
            names = ", ".join(self.proved)
            return f"integers may lie outside of the dimensions that they index; {names} PROVED under {under}"
        broken = f"only inputs were found that lie outside of the dimensions that they index, which break {under}"
        if not self.proved:
            return f"{broken}; under that it is not proved either"
        if self.proved == self.results:
            return f"{broken}; PROVED under {under}"
        return f"{broken}; {', '.join(self.proved)} PROVED under {under}"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a renderer needs. `seconds` is wall time from loaded modules to verdict."""

    name: str
    results: tuple[Result, ...]
    assumptions: tuple[str, ...]
    devices: int
    seconds: float
    stages: tuple[Stage, ...] = ()
    unsupported: tuple[Diagnostic, ...] = ()
    """Operations that were treated as opaque, each once, with its location and why."""
    inferred: tuple[str, ...] = ()
    """Where arguments and results lie that neither module says: an assumption, and a demand."""
    under: str = ""
    """The same in one line, which a verdict has in its own."""
    recheck: Recheck | None = None
    """What a second check of the proof found, where one was asked for."""
    compared: str = ""
    """What was compared, where it is not just the two modules of a pair."""
    left_open: tuple[str, ...] = ()
    """Where the compiler put arguments and results of which the module does not say where they lie: taken as it is."""
    laws: tuple[LawUse, ...] = ()
    """What the terms of both modules were rewritten by, in the order of names."""

    preconditions: tuple[str, ...] = ()
    """What the user says of the values of arguments (`tokens in [0, 32000)`): the question is about no others."""
    suggestion: Suggestion | None = None
    """Where a refutation needs integers that lie outside of what they index: what holds without these."""
    hints: tuple[Diagnostic, ...] = ()
    """Where nothing was decided, defects of the partitioned module that it shows by itself."""
    approximations: tuple[str, ...] = ()
    """The values that the user declared to stand for others, and for which: the question is about what is around."""
    kept: bool = False
    """Whether it was decided by an earlier run, and kept; `seconds` are that run's."""

    @property
    def verdict(self) -> Verdict:
        """REFUTED if any result is, PROVED if all are, else UNKNOWN; a module without results proves nothing."""
        return worst(result.verdict for result in self.results)

    @property
    def headline(self) -> str:
        """The verdict with what it is subject to: declared approximations, and the placements that were inferred, under
        which alone a proof holds. Empty if there are none."""
        count = len(self.approximations)
        several = "s" if count > 1 else ""
        declared = f"{count} declared approximation{several}: {'; '.join(self.approximations)}" if count else ""
        if self.verdict is Verdict.PROVED and self.under:
            return f"{self.verdict} with {self.under} (inferred){f' and with {declared}' if declared else ''}"
        found = f"{self.verdict}{f' with {declared}' if declared else ''}"
        if self.verdict is Verdict.REFUTED and self.under:
            return f"{found}{',' if declared else ''} under every placement that the shapes allow"
        return found if declared else ""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What a person should look at: what is not proved, each reason once, then what was not understood."""
        return (*map(diagnostic, self.stopped()), *self.unsupported)

    def stopped(self) -> Iterator[tuple[Result, ...]]:
        """The results that are not proved, those of one verdict and finding together."""
        together: dict[object, list[Result]] = {}
        for result in self.results:
            if result.verdict is not Verdict.PROVED:
                key = result.index if result.finding is None else (result.verdict, result.finding)
                together.setdefault(key, []).append(result)
        return map(tuple, together.values())


@dataclass(frozen=True, slots=True)
class Step:
    """One dump of a chain: the program after a pass.

    `verdict` says whether it computes what the first program of the chain does or, once it is partitioned, what the one
    does that the partitioner was given. `how` is by what that was decided, `reason` why it is not proved and `code` the
    kind of reason. `file` is the dump's name, `compared_with` that of the one by which it was decided.
    """

    number: int
    pipeline: str
    after: str
    file: str
    verdict: Verdict
    how: str
    reason: str
    code: str
    compared_with: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What was decided of a program after each pass.

    `report` is that of the first step that is REFUTED, or else of the first that is UNKNOWN; `missing` says how many
    dumps were not looked at, because someone interrupted.
    """

    name: str
    steps: tuple[Step, ...]
    assumptions: tuple[str, ...]
    devices: int
    seconds: float
    report: Report | None = None
    missing: int = 0
    kept: bool = False
    """As of a `Report`."""

    @property
    def verdict(self) -> Verdict:
        found = worst(step.verdict for step in self.steps)
        return Verdict.UNKNOWN if self.missing and found is Verdict.PROVED else found

    @property
    def first(self) -> Step | None:
        """The first step that is not proved."""
        return next((step for step in self.steps if step.verdict is not Verdict.PROVED), None)

    @property
    def reported(self) -> Step | None:
        """The step that the report is about."""
        refuted = (step for step in self.steps if step.verdict is Verdict.REFUTED)
        unknown = (step for step in self.steps if step.verdict is Verdict.UNKNOWN and step.compared_with)
        return next(refuted, None) or next(unknown, None)


def diagnostic(results: Sequence[Result]) -> Diagnostic:
    """Why some results that one reason stopped (`Report.stopped`) are not proved."""
    first, finding = results[0], results[0].finding
    refuted = first.verdict is Verdict.REFUTED
    code = first.code or (finding.code if refuted and finding is not None else Solver.NO_PROOF)
    notes = {"results": ", ".join(result.name or f"result {result.index}" for result in results)}
    if finding is not None:
        if finding.code is not code:
            notes["suspected" if first.seems_to_differ else "looks like"] = f"{finding.code}: {finding.code.summary}"
        notes |= {
            "module": finding.module,
            "term": finding.found,
            "expected": finding.expected,
            "nearest": finding.nearest,
        }
    if first.witness is not None:
        notes |= _of_witness(first.witness)
    if first.spent is not None:
        notes |= _of_spent(first.spent, first.seems_to_differ)
    if finding is not None and finding.suggestion:
        notes["repair"] = f"{finding.suggestion} makes it PROVED"
    return Diagnostic(
        code,
        Severity.ERROR if refuted else Severity.WARNING,
        first.reason or code.summary,
        first.location,
        finding.operation if finding is not None else "",
        tuple((label, text) for label, text in notes.items() if text),
    )


def _of_spent(spent: Spent, seems_to_differ: bool) -> dict[str, str]:
    """The notes about what was spent in vain: the inputs, if all of them could be evaluated, the limits, and why no
    input was found."""
    are_evaluated = not (spent.not_evaluated or {"evaluation_work", "evaluation_elements"} & set(spent.limits))
    notes = {}
    if spent.inputs and are_evaluated and not seems_to_differ:
        notes["tried"] = f"no difference was seen for {spent.inputs} input{'s' * (spent.inputs > 1)}"
    notes |= {"limits": ", ".join(that_matter(spent.limits))}
    if spent.not_evaluated:
        more = len(spent.not_evaluated) - 1
        notes["not evaluated"] = spent.not_evaluated[0] + (f", and {more} more" if more else "")
    return notes


def _of_witness(witness: Witness) -> dict[str, str]:
    """The notes about a witness. Of its inputs, those are told that are not what most of them are."""
    notes = {"witness": str(witness.point)}
    if witness.lost is not None:
        notes["there"] = str(witness.lost)
    said = [text for _, text in witness.inputs]
    usual = max(said, key=said.count, default="")
    if said.count(usual) > FEW:
        told = [f"{name} = {text}" for name, text in witness.inputs if text != usual]
        told.append(f"{'all others' if told else 'all'} = {usual}")
    else:
        told = [f"{name} = {text}" for name, text in witness.inputs]
    return {**notes, "inputs": "; ".join(told), "replayed": witness.replayed}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """REFUTED if there is one, PROVED if there are only such, else UNKNOWN; of none, UNKNOWN."""
    found = set(verdicts)
    if Verdict.REFUTED in found:
        return Verdict.REFUTED
    return Verdict.PROVED if found == {Verdict.PROVED} else Verdict.UNKNOWN
