"""Saying where hlo-verify itself went wrong, without a traceback."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

from hlo_verify.diagnostics import Diagnostic, Internal, Severity
from hlo_verify.diagnostics.errors import DisagreementError
from hlo_verify.program.ir import Op

_PACKAGE = Path(__file__).resolve().parent
_HOMES = (_PACKAGE, _PACKAGE.parent / "passes")


def diagnose(error: BaseException) -> Diagnostic:
    """What is said of an exception that nothing foresaw."""
    code = Internal.DISAGREEMENT if isinstance(error, DisagreementError) else Internal.DEFECT
    return Diagnostic(code, Severity.ERROR, _describe(error))


def _describe(error: BaseException) -> str:
    """What was raised, in which function of hlo-verify, while it worked on which operation, and what to do."""
    said = traceback.format_exception_only(error)[-1].strip()
    place = ""
    operation = ""
    trace = error.__traceback__
    while trace is not None:  # innermost last
        path = Path(trace.tb_frame.f_code.co_filename).resolve()
        if any(path.is_relative_to(home) for home in _HOMES):
            place = f" in {path.parent.name}/{path.name}:{trace.tb_lineno} ({trace.tb_frame.f_code.co_name})"
        operation = _operation(trace) or operation
        trace = trace.tb_next
    return (
        f"{said}{place}{operation}. This is a defect of hlo-verify, not of your module, and nothing was decided. "
        "Please report it with the module and with what --traceback prints"
    )


def _operation(trace: TracebackType) -> str:
    """The operation that a frame had in hand."""
    for value in trace.tb_frame.f_locals.values():
        if isinstance(value, Op):
            return f", at {value.name} from {value.location}"
    return ""
