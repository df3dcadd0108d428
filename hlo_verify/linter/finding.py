"""What is said of a module."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_verify.diagnostics import Code, Severity
from hlo_verify.hlo.module import Instruction


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect: where it is, what it is, and the other instructions that take part."""

    code: Code
    message: str
    instruction: str
    location: str = ""
    related: tuple[str, ...] = ()
    severity: Severity = Severity.ERROR
    line: int = 0

    @property
    def name(self) -> str:
        """The class of the defect in words: `use_before_done`."""
        return self.code.name.lower()


def at(instruction: Instruction, code: Code, message: str, *related: Instruction | str) -> Finding:
    """A defect of an instruction."""
    others = tuple(dict.fromkeys(one if isinstance(one, str) else one.name for one in related))
    return Finding(code, message, instruction.name, instruction.location, others, line=instruction.line)
