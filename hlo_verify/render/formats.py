"""Reports in each of the formats that may be asked for; each renderer is imported when it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.render import Outcome
from hlo_verify.render.output import write
from hlo_verify.render.text import Style


@dataclass(frozen=True, slots=True)
class Printing:
    """How reports are printed. `several` says that more than one module may have been asked for, `unknown` is what
    becomes of a case of JUnit that is UNKNOWN. Of Markdown and pages, `arguments` are those of the command line, with
    its `paths` and its `witness`, and `issue` is the project that a bug report is for."""

    style: Style
    several: bool = False
    unknown: str = "failure"
    issue: str | None = None
    arguments: Sequence[str] = ()
    paths: Sequence[Path] = ()
    witness: Path | None = None

    def rendered(self, outcomes: Sequence[Outcome], format_: str) -> str:
        """The reports in a format, one of `FORMATS`."""
        if format_ == "json":
            from hlo_verify.render import json

            return json.render(outcomes, several=self.several)
        if format_ == "sarif":
            from hlo_verify.render import sarif

            return sarif.render(outcomes)
        if format_ == "junit":
            from hlo_verify.render import junit

            return junit.render(outcomes, unknown=junit.Became(self.unknown))
        if format_ == "markdown":
            return self._markdown(outcomes)
        if format_ == "html":
            from hlo_verify.render import html, origin

            made = origin.of_command(self.arguments, self.paths, self.witness)
            return html.render(outcomes, made, several=self.several)
        from hlo_verify.render import text

        return text.render(outcomes, self.style, several=self.several)

    def _markdown(self, outcomes: Sequence[Outcome]) -> str:
        from hlo_verify.render import issues, markdown, origin

        made = origin.of_command(self.arguments, self.paths, self.witness)
        if self.issue is not None:
            return issues.issue(outcomes, self.issue, made, several=self.several)
        return markdown.render(outcomes, made, several=self.several)

    def show(self, outcome: Outcome) -> None:
        """Print the text of one of several modules."""
        from hlo_verify.render import text

        write(text.one_of_several(outcome, self.style), None)

    def write(
        self, outcomes: Sequence[Outcome], format_: str, output: Path | None, more: Sequence[tuple[str, Path]] = ()
    ) -> None:
        """Write the reports to a file or standard output, and in `more` formats to files. Raises `InputError` for what
        cannot be written, once the others are. A bug report is the first of them alone; beside it, Markdown is the
        report."""
        plain = replace(self, style=replace(self.style, color=False, width=0), issue=None)
        failed: InputError | None = None
        for printing, other, path in (*((plain, *each) for each in more), (self, format_, output)):
            try:
                write(printing.rendered(outcomes, other), path, other)
            except InputError as error:
                failed = failed or error
        if failed is not None:
            raise failed
