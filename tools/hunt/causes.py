"""Sort what was found by its cause: known ones by what they need, others by a signature."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.hunt.case import Case, Spec
from tools.hunt.kinds import ABORT, REFUSED, Outcome
from tools.hunt.placing import divides

_NUMBERS = re.compile(r"-?\d+")
_OPERATION = re.compile(r"stablehlo\.(\w+)")
_WINDOWED = frozenset({"convolution", "cumulative", "pad", "windows"})
_SAID = re.compile(r"([\w/]+\.(?:cc|h)):\d+\]? (.*)")


@dataclass(frozen=True, slots=True)
class Cause:
    """A known cause: of which kinds, which features a minimised case of it has and has not, and what XLA says.

    `page` is where it is written up, `upstream` where it is reported.
    """

    name: str
    kinds: tuple[str, ...]
    needs: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    text: str = ""
    page: str = ""
    upstream: str = ""

    def is_of(self, kind: str, features: frozenset[str], why: str) -> bool:
        said = not self.text or re.search(self.text, why) is not None
        return kind in self.kinds and self.needs <= features and not (self.without & features) and said


def features(case: Case, draw: int = 0) -> frozenset[str]:
    """What can be told of a case: its operations with what is unusual of them, its mesh, what is split."""
    return frozenset(_features(case, draw))


def _features(case: Case, draw: int) -> Iterator[str]:
    yield f"mesh:{len(case.mesh)}d"
    if case.explicit:
        yield "explicit"
    if case.pulled is not None:
        yield "gradient"
    first = len(case.arguments)
    axes = case.axes()
    for step in case.steps:
        yield step.op
        if step.spec is not None:
            yield "constraint"
        operand = case.arguments[step.inputs[0]] if step.inputs[0] < first else None
        yield from _unusual(step.op, step.attributes)
        if case.pulled is not None and case.pulled[0] in step.inputs:
            yield f"gradient:{step.op}:{step.inputs.index(case.pulled[0])}"
        if operand is not None and step.op == "convolution":
            spatial = slice(2, None) if step.attributes["channels_first"] else slice(1, -1)
            if any(operand.spec[spatial]):
                yield "convolution:spatial"
    over = [step.inputs[0] for step in case.steps if step.op in _WINDOWED]
    if len(set(over)) < len(over):
        yield "windowed:again"
    if not any(any(each.spec) for each in case.arguments):
        yield "arguments:whole"
    specs = [step.spec for step in case.steps] + [case.result]
    if any(spec is not None and any(spec) for spec in specs):
        yield "split:made"
    if any(len(names) > 1 for spec in (*specs, *(each.spec for each in case.arguments)) for names in spec or ()):
        yield "split:by two axes"
    if any(each.dtype in ("int8", "uint8", "int16") for each in case.arguments):
        yield "indices:narrow"
    if draw % 3 == 2 and any(each.below for each in case.arguments):
        yield "indices:outside"
    if case.result is None:
        yield "result:open"
    if any(_is_uneven(spec, case, axes) for spec in specs):
        yield "uneven"


def _is_uneven(spec: Spec | None, case: Case, axes: dict[str, int]) -> bool:
    from tools.hunt.maker import NoProgram, shapes

    if spec is None:
        return False
    try:
        types = shapes(case)
    except NoProgram:
        return False
    made = [(s.spec, types[k][1]) for k, s in enumerate(case.steps, len(case.arguments)) if s.spec == spec]
    return any(not divides(size, names, axes) for _, shape in made for size, names in zip(shape, spec, strict=False))


def _unusual(op: str, a: Any) -> Iterator[str]:
    if op == "pad":
        for low, high, inner in a["edges"]:
            if inner:
                yield "pad:inner"
            elif low and low == -high:
                yield "pad:shift"
            if low < 0 or high < 0:
                yield "pad:negative"
    if op == "windows":
        yield f"windows:{a['function']}"
        for name in ("base", "dilation", "strides"):
            if any(each != 1 for each in a[name]):
                yield f"windows:{name}"
    if op == "convolution":
        for name in ("feature_group_count", "batch_group_count"):
            if a[name] != 1:
                yield f"convolution:{name}"
        for name in ("strides", "lhs_dilation", "rhs_dilation"):
            if any(each != 1 for each in a[name]):
                yield f"convolution:{name}"
    if op in ("reduce", "cumulative", "scatter", "place", "scatter_rows"):
        yield f"{op}:{a['function']}"


def said(why: str) -> str:
    """What XLA says, without numbers: the same for all shapes."""
    found = _SAID.search(why)
    text = f"{found[1]}: {found[2]}" if found else why
    return _NUMBERS.sub("N", text.split("Dimension numbers")[0].split("Suspected")[0])[:160].strip()


def signature(kind: str, case: Case, outcome: Outcome) -> str:
    """One line that is the same for what most likely has one cause."""
    if kind in (ABORT, REFUSED):
        return f"{kind}: {said(outcome.why)}"
    telling = sorted(
        each for each in features(case, outcome.draw)
        if not each.startswith(("mesh", "result", "split", "arguments")) and each != "constraint"
    )  # fmt: skip
    code = ",".join(outcome.codes)
    at = _OPERATION.search(outcome.operation)
    return f"{kind}: {' '.join(telling)}" + (f" | {code} at {at[1] if at else '-'}" if code else "")


def cause_of(kind: str, case: Case, outcome: Outcome, known: tuple[Cause, ...]) -> Cause | None:
    """The first known cause that it fits."""
    found = features(case, outcome.draw)
    return next((each for each in known if each.is_of(kind, found, outcome.why)), None)
