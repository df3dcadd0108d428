"""What hlo-verify says of a pair, in this process."""

from __future__ import annotations

import contextlib
import functools
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import hlo_verify
from hlo_verify import jaxlib_api
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.evaluate import dense
from hlo_verify.limits import Limits
from hlo_verify.passes.refute import refute as refuting
from hlo_verify.passes.refute.witness_file import read
from tools.unread import unread

LIMIT = 10.0
"""Seconds of this process for one verdict; most take a hundredth of it."""

PROVER_ALONE = Limits(countersigned_work=0)
"""It is the prover that is judged: no evaluation takes back what it proves."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, or `error` for input that is refused, `crash` or `slow`; with the whole arguments of a witness, and
    what is not proved: codes, and the operation of the first finding."""

    verdict: str
    reason: str = ""
    seconds: float = 0.0
    witness: tuple[Any, ...] | None = None
    codes: tuple[str, ...] = ()
    operation: str = ""


@functools.cache
def _context() -> Any:
    """One context for all modules: making one takes longer than a small proof."""
    return jaxlib_api.make_context()


@contextlib.contextmanager
def _plain() -> Iterator[None]:
    """Keep one context, make no reports for people, and ask no XLA.

    The fuzzer knows the truth, and a refutation that XLA would take back is one to be seen.
    """
    context = _context()
    with (
        patch.object(jaxlib_api, "make_context", lambda: context),
        patch.object(refuting, "is_small", lambda _: False),
        unread(),
    ):
        yield


class Slow(BaseException):
    """It takes too long. Not an `Exception`, so that nothing on the way takes it for one of its own."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `Slow` after so many seconds of this process (where it can be interrupted: in its main thread)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    rang = False

    def stop(*_: Any) -> None:
        nonlocal rang
        rang = True
        raise Slow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except Exception as error:
        # Where it is raised while arguments of a call into C are converted, ctypes makes an ArgumentError of it.
        if rang:
            raise Slow from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def verify(logical: str, partitioned: str | None, refute: bool, limit: float = LIMIT) -> Judgement:
    """Of a pair, or of one module that XLA is to partition."""
    started, witness = time.monotonic(), None
    try:
        with contextlib.ExitStack() as stack, _plain(), limited(limit):
            # Making a folder and removing it takes a tenth of a small proof.
            folder = stack.enter_context(tempfile.TemporaryDirectory()) if refute else None
            file = None if folder is None else Path(folder) / "witness"
            report = hlo_verify.verify(logical, partitioned, refute=refute, witness=file, limits=PROVER_ALONE)
            if file is not None and file.exists():
                witness = tuple(dense(blocks, 0) for blocks in read(file).inputs)
    except Slow:
        return Judgement("slow", f"more than {limit:g} s", time.monotonic() - started)
    except InputError as error:
        return Judgement("error", str(error)[:600], time.monotonic() - started)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
        return Judgement("crash", why[:600], time.monotonic() - started)
    reasons = [result.reason for result in report.results if result.verdict != "PROVED"]
    reasons += [str(each) for each in report.unsupported[:2]]
    open_ = [result for result in report.results if result.verdict != "PROVED"]
    codes = tuple(dict.fromkeys(str(result.code) for result in open_ if result.code is not None))
    operation = next((each.finding.operation for each in open_ if each.finding is not None), "")
    seconds = time.monotonic() - started
    return Judgement(str(report.verdict), " | ".join(reasons)[:600], seconds, witness, codes, operation)
