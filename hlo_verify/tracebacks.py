"""Errors of input are told where the user called: what went on inside is no help with them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

from hlo_verify.diagnostics.errors import InputError

_HERE = str(Path(__file__).parent)

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def told_at_the_call(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """A function whose `InputError` has no frames of hlo-verify's own below the call, nor has what it was raised from:
    an error of the user's function, with his lines. What has no others is left out."""

    @wraps(function)
    def called(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except InputError as error:
            if error.__cause__ is not None:
                error.__cause__.__traceback__ = _of_others(error.__cause__.__traceback__)
                if error.__cause__.__traceback__ is None:
                    error.__cause__ = None
            told = error.with_traceback(None)
        raise told

    return called


def _of_others(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package."""
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        if not entry.tb_frame.f_code.co_filename.startswith(_HERE):
            kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept
