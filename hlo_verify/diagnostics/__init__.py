"""Diagnostics: what a person is told, under stable codes that `hlo-verify --explain` explains."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from hlo_verify.diagnostics.annotation import Annotation
from hlo_verify.diagnostics.code import Code, Diagnostic, Severity
from hlo_verify.diagnostics.collective import Collective
from hlo_verify.diagnostics.inputs import Input
from hlo_verify.diagnostics.internal import Internal
from hlo_verify.diagnostics.mismatch import Mismatch
from hlo_verify.diagnostics.placement import Placement
from hlo_verify.diagnostics.precision import Precision
from hlo_verify.diagnostics.ranks import Ranks
from hlo_verify.diagnostics.schedule import Schedule
from hlo_verify.diagnostics.solver import Solver
from hlo_verify.diagnostics.unsupported import Unsupported

__all__ = [
    "CODES",
    "FAMILIES",
    "Annotation",
    "Code",
    "Collective",
    "Diagnostic",
    "Input",
    "Internal",
    "Mismatch",
    "Placement",
    "Precision",
    "Ranks",
    "Schedule",
    "Severity",
    "Solver",
    "Unsupported",
    "near",
]

FAMILIES: Mapping[str, type[Code]] = {
    "HV0": Mismatch,
    "HV1": Annotation,
    "HV2": Unsupported,
    "HV3": Solver,
    "HV4": Input,
    "HV5": Placement,
    "HV55": Precision,
    "HV6": Collective,
    "HV7": Schedule,
    "HV8": Ranks,
    "HV9": Internal,
}
"""The families by the beginning of their codes."""

CODES: Mapping[str, Code] = {code.value: code for family in FAMILIES.values() for code in family}
"""Every code by its name, in order."""


def near(text: str) -> list[str]:
    """Codes that a person who wrote `text` may have meant, the likeliest first."""
    wanted = text.upper()
    alike = get_close_matches(wanted, CODES, n=len(CODES), cutoff=0.6)
    return sorted(alike, key=lambda code: code[:3] != wanted[:3])[:4]
