"""A report as the bug report that another project asks for: what happens, a program, both values, versions, platform.

What JAX asks for is in its `.github/ISSUE_TEMPLATE/bug-report.yml`: a description with code that reproduces it, and the
versions of Python, jax and jaxlib, the accelerator and the system. XLA has no template; what its maintainers ask for
first are the module as it was before optimizations, the flags and the platform.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo_verify.render import Outcome
from hlo_verify.render.markdown import NAME, fitting, named, names, render, report_parts, reproduction, shortened, terms
from hlo_verify.render.origin import Origin
from hlo_verify.render.quoting import block, code, folded, prose, table
from hlo_verify.render.text import changed_in
from hlo_verify.report import ChainReport, Report, Result, Step, Verdict, diagnostic

_SYSTEM = {"xla": "Versions and platform", "jax": "System info (python version, jaxlib version, accelerator, etc.)"}


def issue(outcomes: Sequence[Outcome], project: str, origin: Origin, *, several: bool = False) -> str:
    """The issue about the first module that is refuted. Where none is, the report, which says so first."""
    for outcome in outcomes:
        report = outcome.report if isinstance(outcome, ChainReport) else outcome
        if isinstance(report, Report) and report.verdict is Verdict.REFUTED:
            step, by = None, ""
            if isinstance(outcome, ChainReport) and outcome.reported is not None:
                step, by = outcome.reported, changed_in(outcome, outcome.reported)
            return fitting(list(_parts(report, step, by, origin)), list(_system(report, project, origin)))
    nothing = "Nothing to report: no module was shown to be wrong."
    return f"{nothing}\n\n{render(outcomes, origin, several=several)}"


def _parts(report: Report, step: Step | None, by: str, origin: Origin) -> Iterator[str]:
    first, *others = [held for held in report.stopped() if held[0].verdict is Verdict.REFUTED]
    said = diagnostic(first)
    at = by or f"at {said.location or report.name}"
    yield f"**Title:** Wrong value on {report.devices} devices {prose(shortened(at, NAME))}: {prose(said.code.summary)}"
    yield "### Description"
    yield _description(report, step, by, origin)
    yield (
        f"It is wrong at {named(said.location or report.name)}, found by hlo-verify, which proves the two modules "
        f"equal or shows inputs for which they differ: {prose(shortened(said.message))}."
    )
    yield from terms(said)
    yield "### Minimal reproduction"
    yield from modules(origin)
    yield from reproduction(Origin(origin.command, (), origin.witness), refuted=True)
    if step is not None and not origin.witness:
        pair = f"hlo-verify {step.compared_with} {step.file} --witness FILE.zip"
        yield f"If the partitioner is between them, {code(pair)} saves both dumps and the inputs in a file to attach."
    yield "### Expected and actual values"
    yield from _values([first, *others])
    if report.headline:
        yield prose(shortened(report.headline))
    if report.preconditions:
        yield f"For inputs with {prose(shortened('; '.join(report.preconditions)))}."
    yield folded("The whole report of hlo-verify", *report_parts(report, 4))


def _description(report: Report, step: Step | None, by: str, origin: Origin) -> str:
    if step is not None:
        return (
            f"The value of the program is changed {prose(shortened(by, NAME))}: {named(step.file)} computes something "
            f"else than {named(step.compared_with)}."
        )
    if origin.partitioned_here:
        return (
            f"The XLA of this jaxlib partitions {named(report.name)} for {report.devices} devices, and the partitioned "
            "module computes something else than the one that it was given."
        )
    return (
        f"The partitioned module of {named(report.name)}, for {report.devices} devices, computes something else than "
        "the logical one."
    )


def modules(origin: Origin) -> Iterator[str]:
    """The modules that are short, whole."""
    if not origin.modules:
        yield "*The smallest program that shows it goes here (a function of JAX with its shardings, or a module).*"
    for name, text in origin.modules:
        yield f"{code(name)}:"
        yield block(text, "mlir" if "module @" in text or "func.func" in text else "text")


def _values(held: Sequence[Sequence[Result]]) -> Iterator[str]:
    """A row for each reason: where, what should be there and what is. The inputs are in the report and the witness."""
    rows, inputs = [], ""
    for results in held[:20]:
        witness = results[0].witness
        if witness is None:
            continue
        point = witness.point
        element = f", element {list(point.local_element)} of its shard" if point.local_element else ""
        beside = "" if point.beside is None else f"; expected is what device {point.beside} has, which holds the same"
        where = f"device {point.device}{element}{beside}"
        rows.append([names(results), prose(where), f"{point.logical:.9g}", f"{point.partitioned:.9g}"])
        inputs = inputs or "; ".join(f"{name} = {text}" for name, text in witness.inputs[:12])
    yield table(("result", "where", "expected", "actual"), rows)
    if inputs:
        yield f"For the inputs {code(shortened(inputs))} (in real arithmetic, so that no rounding explains it)."


def _system(report: Report, project: str, origin: Origin) -> Iterator[str]:
    yield f"### {_SYSTEM[project]}"
    yield table(("", "version"), [[prose(name), code(value)] for name, value in origin.versions])
    if origin.partitioned_here:
        yield f"No accelerator: XLA partitioned the module for {report.devices} virtual CPU devices, and nothing ran."
    else:
        yield (
            "These are the versions that checked the modules. *The version, flags (`XLA_FLAGS`) and backend (CPU, GPU, "
            "TPU) that compiled them go here.*"
        )
    if project == "jax":
        yield "*The output of `python -c 'import jax; jax.print_environment_info()'` goes here.*"
