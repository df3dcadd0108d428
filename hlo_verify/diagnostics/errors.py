"""Errors that a user can act on."""

from __future__ import annotations

from hlo_verify.diagnostics import Code, Diagnostic, Severity


class InputError(ValueError):
    """The input cannot be verified as it stands: what is wrong, where, and what to do.

    `code` says which kind of error it is, and so does the last line of a traceback. The command line prints it as one
    message and exits with 2.
    """

    def __init__(self, message: str, code: Code) -> None:
        super().__init__(message, code)
        self.code = code
        self.add_note(f"{code}: `hlo-verify --explain {code}` says more")

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def diagnostic(self) -> Diagnostic:
        """The error as renderers show it."""
        return Diagnostic(self.code, Severity.ERROR, str(self))

    def within(self, place: str) -> InputError:
        """The same error, said of a place: `place: message`."""
        return InputError(f"{place}: {self}", self.code)


class DisagreementError(RuntimeError):
    """Two parts of hlo-verify contradict one another, so one of them is wrong (HV902): nothing may be decided."""
