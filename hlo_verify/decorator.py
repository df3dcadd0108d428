"""`hlo_verify.jit`: `jax.jit` that proves, before it runs what it compiled, that it computes what a reference does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from threading import RLock, Thread
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

from hlo_verify.cache.store import Store, named, usual
from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.executed import Question, Settings, decide, question, undecided
from hlo_verify.limits import TIME_LIMIT, Effort, Limits
from hlo_verify.report import Verdict
from hlo_verify.session import check_seconds
from hlo_verify.shown import NotProvedError, Report

if TYPE_CHECKING:
    from hlo_verify.program.approximations import Declared
    from hlo_verify.program.preconditions import Assumed
    from hlo_verify.traced.functions import Function
    from hlo_verify.traced.interception import Executable

OnFailure: TypeAlias = "Literal['raise', 'warn'] | Callable[[Report], object]"


class NotProvedWarning(UserWarning):
    """A function under `hlo_verify.jit` is REFUTED or UNKNOWN, and runs all the same."""


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *others: Any,
    reference: Any = None,
    assume: Assumed | None = None,
    approximations: Declared | None = None,
    on_failure: OnFailure = "raise",
    background: bool = False,
    cache: bool | str | Path = True,
    effort: Effort = "normal",
    time_limit: float | None = TIME_LIMIT,
    **options: Any,
) -> Any:
    """`jax.jit`, with the same arguments, that verifies what it runs: `@hlo_verify.jit(reference=plain_step)`.

    Whenever something is compiled for arguments of another signature, it is verified first: that the module that the
    backend made computes, on all devices, what `reference` says, a function of the same arguments without any
    distribution; without a reference, what the function itself says. Later calls are calls of `jax.jit`.

    What is REFUTED or UNKNOWN raises `NotProvedError` before it runs. With `on_failure="warn"` it runs after a
    `NotProvedWarning`; a function in its place is called with the `Report`. In the `background`, it runs meanwhile, and
    a failure is a warning at first, which `f.verification.wait()` raises. `f.verification.reports` has all reports.

    Verdicts are kept on disk by what was asked, unless `cache` is false; it may name a folder. `assume`,
    `approximations` (of a reference's values), `effort` and `time_limit` are as for `check`.

    The function that comes back is one of `jax.jit`: `lower`, `trace`, `clear_cache`, donation, static arguments and
    transformations of it are JAX's. Where another transformation calls it (`grad`, `vmap`, an outer `jit`), what is
    compiled is not this function, and not verified; what `lower(...).compile()` gives is, where
    `f.verification.check(...)` is asked for the same arguments.
    """
    if others:
        raise InputError("a reference goes by its name: hlo_verify.jit(step, reference=plain_step)", Input.USAGE)
    if not (on_failure in ("raise", "warn") or callable(on_failure)):
        raise InputError(f"on_failure is 'raise', 'warn' or a function of the report, not {on_failure!r}", Input.USAGE)
    if function is None:
        own = locals()
        given = {name: own[name] for name in _OWN}
        return lambda function: jit(function, **given, **options)
    import jax

    from hlo_verify.program import approximations as declarations
    from hlo_verify.program import preconditions
    from hlo_verify.traced.functions import Function
    from hlo_verify.traced.interception import intercepted

    if not (reference is None or callable(reference)):
        raise InputError(
            f"reference is a {type(reference).__name__}: it is a function of the same arguments", Input.USAGE
        )
    check_seconds(time_limit)
    Limits.of(effort)
    declared = declarations.read(approximations)
    if declared and reference is None:
        raise InputError("approximations go with a reference: hlo_verify.jit(reference=...)", Input.USAGE)
    jitted = jax.jit(function, **options)
    static = {name: options[name] for name in _STATIC if options.get(name) is not None}
    verification = Verification(
        getattr(function, "__name__", type(function).__name__),
        None if reference is None else lambda: Function(_afresh(reference, static), "the reference"),
        Settings(preconditions.read(assume), effort, time_limit, _store(cache), declared),
        on_failure,
        background,
        jitted,
    )
    found = intercepted(jitted, verification.compiled)
    found.verification = verification
    return found


_OWN = ("reference", "assume", "approximations", "on_failure", "background", "cache", "effort", "time_limit")
_STATIC = ("static_argnums", "static_argnames")


def _afresh(reference: Any, static: dict[str, Any]) -> Any:
    """A plain reference under `jax.jit`, as it computes now.

    JAX keeps what it traced by the function, and what the function reads beside its arguments (globals, attributes,
    what it closes over) may have changed since. One under `jax.jit` already computes what JAX kept.
    """
    import jax

    if hasattr(reference, "trace"):
        return reference

    @wraps(reference, updated=())
    def called(*args: Any, **kwargs: Any) -> Any:
        return reference(*args, **kwargs)

    if not hasattr(reference, "__name__"):
        called.__name__ = "<lambda>"  # messages do not name it
    return jax.jit(called, **static)


def _store(cache: bool | str | Path) -> Store | None:
    if isinstance(cache, bool):
        return usual() if cache else None
    return named(Path(cache))


@dataclass(slots=True)
class _Found:
    """What is known of an executable: a report, once there is one, and whether a failure was handed on."""

    report: Report | None = None
    is_told: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to do before it runs: it is being verified, is proved, or somebody was told."""
        return self.report is None or self.report.verdict is Verdict.PROVED or self.is_told


@dataclass(eq=False)
class Verification:
    """What was found of a function under `hlo_verify.jit`, for each signature that it was compiled for."""

    name: str
    _reference: Callable[[], Function] | None
    """As it computes when it is asked for."""
    _settings: Settings
    _on_failure: OnFailure
    _background: bool
    _jitted: Callable[..., object]
    _lock: AbstractContextManager[object] = field(default_factory=RLock)
    _found: WeakKeyDictionary[Any, _Found] = field(default_factory=WeakKeyDictionary)
    """By executable."""
    _reports: list[Report] = field(default_factory=list)
    _running: list[Thread] = field(default_factory=list)

    @property
    def reports(self) -> tuple[Report, ...]:
        """The reports that there are, in the order in which they came about."""
        return tuple(self._reports)

    def wait(self) -> tuple[Report, ...]:
        """All reports, once those are there that are worked on. Raises `NotProvedError` for the first that is not
        proved, if failures are to be raised."""
        while self._running:
            self._running.pop().join()
        if self._on_failure == "raise":
            for report in self._reports:
                report.raise_for_verdict()
        return self.reports

    def check(self, *args: Any, **kwargs: Any) -> Report:
        """The report for arguments, or for their shapes: what a call with them would be verified to, without one."""
        from hlo_verify.traced.interception import executable_of

        found = self._found_of(executable_of(self._jitted, (args, kwargs)), False)
        while found.report is None:  # in the background
            self._running.pop().join()
        return found.report

    def compiled(self, runs: Executable) -> None:
        """Verify an executable before it runs, if it was not; in the background, begin to."""
        found = self._found_of(runs, self._background)
        if not found.is_settled:
            self._fail(found)

    def _found_of(self, runs: Executable, background: bool) -> _Found:
        from hlo_verify.traced.executables import identity_of

        which = identity_of(runs.compiled)
        with self._lock:  # another thread that calls the function waits for the verdict
            found = self._found.get(which)
            if found is None:
                found = _Found()
                self._verify(found, runs, background)
                self._found[which] = found
            return found

    def _verify(self, found: _Found, runs: Executable, background: bool) -> None:
        try:  # here, where the caller's mesh and settings of JAX are on
            asked = question(None if self._reference is None else self._reference(), runs)
        except Exception as error:
            self._note(found, _gone_wrong(self.name, error))
            return
        if not background:
            self._note(found, self._decided(asked))
            return
        thread = Thread(target=self._verify_meanwhile, args=(found, asked), name=f"hlo-verify {self.name}")
        self._running.append(thread)
        thread.start()

    def _verify_meanwhile(self, found: _Found, asked: Question) -> None:
        self._note(found, self._decided(asked))
        if not found.is_settled:
            self._fail(found, meanwhile=True)

    def _decided(self, asked: Question) -> Report:
        try:
            return decide(asked, self._settings)
        except Exception as error:
            return _gone_wrong(self.name, error)

    def _note(self, found: _Found, report: Report) -> None:
        found.report = report
        self._reports.append(report)

    def _fail(self, found: _Found, meanwhile: bool = False) -> None:
        """Hand a failure on. What raises does so whenever the function is called so."""
        assert found.report is not None
        if callable(self._on_failure):
            self._on_failure(found.report)
            found.is_told = True
        elif self._on_failure == "raise" and not meanwhile:
            raise NotProvedError(found.report)
        else:
            found.is_told = self._on_failure == "warn"
            said = NotProvedWarning(f"{self.name} is not proved:\n{found.report}")
            code = getattr(getattr(self._jitted, "__wrapped__", None), "__code__", None)
            if meanwhile and code is not None:  # nobody is calling it here
                warnings.warn_explicit(said, None, code.co_filename, code.co_firstlineno)
            else:
                warnings.warn(said, stacklevel=_CALLER)


_CALLER = 4
"""Frames from a warning to the call of the function."""


def _gone_wrong(name: str, error: Exception) -> Report:
    """What is reported where nothing could be decided."""
    if isinstance(error, InputError):
        return undecided(name, str(error), error.code)
    from hlo_verify.defects import diagnose

    said = diagnose(error)
    return undecided(name, said.message, said.code)
