"""hlo-verify: prove that a partitioned StableHLO program computes what the logical one says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlo_verify.version import __version__

if TYPE_CHECKING:
    from hlo_verify.api import replay, verify
    from hlo_verify.checking import check
    from hlo_verify.custom_calls import forget_custom_call, register_custom_call
    from hlo_verify.decorator import NotProvedWarning, jit
    from hlo_verify.diagnostics.errors import InputError
    from hlo_verify.linter.lint import lint, lint_pipeline, lint_ranks
    from hlo_verify.plans import Plan
    from hlo_verify.report import Result, Verdict
    from hlo_verify.session import Session
    from hlo_verify.shown import NotProvedError, Report

__all__ = [
    "InputError",
    "NotProvedError",
    "NotProvedWarning",
    "Plan",
    "Report",
    "Result",
    "Session",
    "Verdict",
    "__version__",
    "check",
    "forget_custom_call",
    "jit",
    "lint",
    "lint_pipeline",
    "lint_ranks",
    "register_custom_call",
    "replay",
    "verify",
]

_HOMES = {
    "InputError": "hlo_verify.diagnostics.errors",
    "NotProvedError": "hlo_verify.shown",
    "NotProvedWarning": "hlo_verify.decorator",
    "Plan": "hlo_verify.plans",
    "Report": "hlo_verify.shown",
    "Result": "hlo_verify.report",
    "Session": "hlo_verify.session",
    "Verdict": "hlo_verify.report",
    "check": "hlo_verify.checking",
    "forget_custom_call": "hlo_verify.custom_calls",
    "jit": "hlo_verify.decorator",
    "lint": "hlo_verify.linter.lint",
    "lint_pipeline": "hlo_verify.linter.lint",
    "lint_ranks": "hlo_verify.linter.lint",
    "register_custom_call": "hlo_verify.custom_calls",
    "replay": "hlo_verify.api",
    "verify": "hlo_verify.api",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `hlo-verify --version` need not wait for jaxlib."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
