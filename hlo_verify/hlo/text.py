"""Read HLO text: what XLA dumps (`*after_optimizations.txt`), and what people write in tests.

A reader of its own, since every line is wanted with its number, final modules of one XLA are no text for the parser of
another, and that parser rejects some of what is to be found (an instruction before its control predecessor).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.hlo.module import Computation, HloModule, Instruction
from hlo_verify.hlo.shapes import split

_INSTRUCTION = re.compile(r"\s*(ROOT\s+)?%?([\w.-]+)\s*=\s*(?=[\w(])")
_OPCODE = re.compile(r"(?<![,{(\[])\s([a-z][\w-]+)\(")
_COMPUTATION = re.compile(r"\s*(ENTRY\s+)?%?([\w.-]+)\s*(\(.*)?\{\s*$", re.DOTALL)
_MODULE = re.compile(r"\s*HloModule\s+([^\s,]+)\s*,?(.*)", re.DOTALL)
_BRACKET = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[()\[\]{}]")
_LINE_COMMENT = re.compile(r"(?m)^\s*//.*$|\s//(?=\s).*$")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


@dataclass(frozen=True, slots=True)
class _Statement:
    """Some lines that belong together, and the number of the first."""

    text: str
    line: int


def parse_hlo(text: str) -> HloModule:
    """A module from its text. Raises InputError where it is none."""
    statements = _statements(text)
    first = next(statements, None)
    header = _MODULE.fullmatch(first.text) if first is not None else None
    if header is None:
        raise InputError(
            "this is no HLO text, as XLA dumps it (--xla_dump_to): it does not begin with HloModule",
            Input.NOT_A_MODULE,
        )
    module = HloModule(header[1], dict(_attribute(piece) for piece in split(header[2])))
    tables: dict[str, dict[int, str]] = {}
    table: dict[int, str] | None = None
    computation: Computation | None = None
    for statement in statements:
        if computation is not None:
            computation = _within(statement, computation)
        elif statement.text.strip() in _TABLES:
            table = tables.setdefault(statement.text.strip(), {})
        elif (opened := _COMPUTATION.fullmatch(statement.text)) is not None:
            computation = Computation(opened[2], module, is_entry=opened[1] is not None)
            module.computations[computation.name] = computation
        elif table is not None and (entry := re.match(r"\s*(\d+)\s+(.*)", statement.text)):
            table[int(entry[1])] = entry[2]
        else:
            raise _unreadable(statement, "neither a computation nor an instruction")
    if computation is not None or not module.computations:
        raise InputError("the HLO text ends in the middle of a computation", Input.DAMAGED)
    module.frames = _frames(tables)
    return module


def _within(statement: _Statement, computation: Computation) -> Computation | None:
    """Add a line of a computation; None where it was its end."""
    if statement.text.lstrip().startswith("}"):
        return None
    instruction, is_root = _instruction(statement, computation)
    computation.instructions.append(instruction)
    if is_root:
        computation.root = instruction
    return computation


def _instruction(statement: _Statement, computation: Computation) -> tuple[Instruction, bool]:
    text = statement.text
    head = _INSTRUCTION.match(text)
    opcode = _OPCODE.search(text, head.end() - 1) if head is not None else None
    if head is None or opcode is None:
        raise _unreadable(statement, "no instruction")
    end = _closing(text, opcode.end())
    if end is None:
        raise _unreadable(statement, "a parenthesis is never closed")
    return Instruction(
        name=head[2],
        shape_text=text[head.end() : opcode.start()].strip(),
        opcode=opcode[1],
        given=text[opcode.end() : end],
        rest=text[end + 1 :].strip().removeprefix(",").strip(),
        line=statement.line,
        number=len(computation.instructions),
        computation=computation,
    ), head[1] is not None


def _closing(text: str, start: int) -> int | None:
    """Where the parenthesis closes that was opened just before."""
    plain = text.find(")", start)
    inside = text[start:plain]
    if plain >= 0 and not any(c in inside for c in "([{\"'"):
        return plain
    depth = 1
    for found in _BRACKET.finditer(text, start):
        c = found[0]
        depth += (c in "([{") - (c in ")]}") if len(c) == 1 else 0
        if depth == 0:
            return found.start() if c == ")" else None
    return None


def _statements(text: str) -> Iterator[_Statement]:
    """Lines, those put together that one statement is written on."""
    pending, first, depth = "", 0, 0
    for number, line in enumerate(_LINE_COMMENT.sub("", text).splitlines(), start=1):
        if not pending:
            if not line.strip():
                continue
            first = number
        pending = f"{pending}\n{line}" if pending else line
        depth += _depth(line)
        opens = depth == 1 and line.rstrip().endswith("{") and "=" not in line.split("(", 1)[0]
        if opens or (depth <= 0 and not _goes_on(pending)):
            yield _Statement(pending, first)
            pending, depth = "", 0
    if pending and depth > 0:
        raise _unreadable(_Statement(pending.splitlines()[0], first), "a bracket is never closed")
    if pending:
        yield _Statement(pending, first)


def _depth(line: str) -> int:
    """How many brackets a line leaves open."""
    if '"' in line or "'" in line:
        line = _BRACKET.sub(lambda found: found[0] if len(found[0]) == 1 else "", line)
    return sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))


def _goes_on(text: str) -> bool:
    """Whether a text ends where a statement cannot: behind a comma, or before the opcode of an instruction."""
    bare = text.rstrip()
    if bare.endswith((",", "=")):
        return True
    head = _INSTRUCTION.match(bare)
    return head is not None and _OPCODE.search(bare, head.end() - 1) is None


def _attribute(piece: str) -> tuple[str, str]:
    key, _, value = piece.partition("=")
    return key.strip(), value.strip()


def _unreadable(statement: _Statement, why: str) -> InputError:
    shown = statement.text.strip()
    shown = shown if len(shown) <= 80 else f"{shown[:77]}…"
    return InputError(f"line {statement.line} of the HLO text is not understood ({why}): {shown}", Input.DAMAGED)


def _frames(tables: dict[str, dict[int, str]]) -> dict[int, str]:
    """By number of a stack frame, `FILE:LINE`."""
    files = {number: name.strip('"') for number, name in tables.get("FileNames", {}).items()}
    locations = {}
    for number, entry in tables.get("FileLocations", {}).items():
        file, line = re.search(r"file_name_id=(\d+)", entry), re.search(r"\bline=(\d+)", entry)
        if file and line:
            locations[number] = f"{files.get(int(file[1]), '?')}:{line[1]}"
    found = {}
    for number, entry in tables.get("StackFrames", {}).items():
        place = re.search(r"file_location_id=(\d+)", entry)
        if place:
            found[number] = locations.get(int(place[1]), "")
    return found
