"""What becomes of every field of an instruction when jaxlib converts HLO to StableHLO.

XLA itself reads a field for some opcodes alone, and forgets it for others: what it writes again tells which.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from hlo_verify import jaxlib_api
from hlo_verify.passes.read import proto_edits
from hlo_verify.workers import Lost, Pool
from tools.fields.examples import EXAMPLES
from tools.fields.variants import Variant, variants
from tools.schema import INSTRUCTION

_NAME = 1  # HloInstructionProto
_MODULE_ID = 5  # HloModuleProto
_SECONDS, _MEMORY = 20.0, 4 << 30


class Fate(enum.StrEnum):
    """UNREAD: XLA forgets every value. REFUSED: it takes none that it does not forget. KEPT: each of the others changes
    the StableHLO. LOST: one of them does not."""

    UNREAD = "unread"
    REFUSED = "refused"
    KEPT = "kept"
    LOST = "lost"


Fates: TypeAlias = dict[str, Fate]
"""By the path of a field."""

_Task: TypeAlias = tuple[str, tuple[int, ...]]
"""An opcode, and the numbers of some variants of its example."""

_CHUNK = 100
"""Variants of a task: jaxlib may end the process for one of them, and the others are tried again."""


def observe(opcodes: Iterable[str], jobs: int = 1) -> dict[str, Fates]:
    """The fate of each field, for each opcode that the installed jaxlib converts."""
    found: dict[str, dict[str, set[Fate]]] = {}
    paths: dict[str, list[str]] = {}
    tasks: list[_Task] = []
    for opcode in opcodes:
        module = _example(opcode)
        if module is not None and _converted(module) is not None:
            paths[opcode], found[opcode] = [path for path, _ in _variants(module)], {}
            count = len(paths[opcode])
            tasks += [(opcode, tuple(range(k, min(k + _CHUNK, count)))) for k in range(0, count, _CHUNK)]
    with Pool(fates, jobs=jobs, seconds=_SECONDS, memory=_MEMORY) as pool:
        while tasks:
            again: list[_Task] = []
            for number, answer in pool.answers(tasks):
                opcode, numbers = tasks[number]
                if isinstance(answer, Lost) and len(numbers) > 1:  # jaxlib ended the process for one of them
                    middle = len(numbers) // 2
                    again += [(opcode, numbers[:middle]), (opcode, numbers[middle:])]
                    continue
                seen = [Fate.REFUSED] if isinstance(answer, Lost) else answer
                for k, fate in zip(numbers, seen, strict=True):
                    found[opcode].setdefault(paths[opcode][k], set()).add(fate)
            tasks = again
    return {opcode: {path: _worst(seen) for path, seen in every.items()} for opcode, every in found.items()}


def _worst(seen: set[Fate]) -> Fate:
    return next(fate for fate in (Fate.LOST, Fate.KEPT, Fate.REFUSED, Fate.UNREAD) if fate in seen)


def fates(task: _Task) -> Sequence[Fate]:
    """The fate of some variants of an opcode's example."""
    opcode, numbers = task
    module = _example(opcode)
    assert module is not None
    written, converted = _written(module), _converted(module)
    every = _variants(module)
    return [_fate(_with_instruction(module, every[k][1]), written, converted) for k in numbers]


def _fate(module: bytes, written: bytes | None, converted: str | None) -> Fate:
    again = _written(module)
    if again is None:
        return Fate.REFUSED
    if again == written:
        return Fate.UNREAD
    text = _converted(module)
    if text is None:
        return Fate.REFUSED
    return Fate.LOST if text == converted else Fate.KEPT


def _example(opcode: str) -> bytes | None:
    try:
        return jaxlib_api.hlo_text_to_proto(EXAMPLES[opcode].text)
    except Exception:  # an opcode that this version of jaxlib does not have
        return None


def _written(module: bytes) -> bytes | None:
    """The module as XLA writes it again, without its own number, which is a new one each time."""
    try:
        again = jaxlib_api.proto_again(module)
    except Exception:
        return None
    return b"".join(raw for number, _, _, raw in proto_edits.fields_of(again) if number != _MODULE_ID)


def _converted(module: bytes) -> str | None:
    """The StableHLO of a module, without locations."""
    try:
        return str(jaxlib_api.parse_module(jaxlib_api.proto_to_stablehlo(module), jaxlib_api.shared_context()))
    except Exception:
        return None


def _variants(module: bytes) -> list[Variant]:
    found: list[Variant] = []

    def note(instruction: bytes) -> bytes:
        if _is_example(instruction):
            found.extend(variants(instruction, INSTRUCTION))
        return instruction

    proto_edits.edit_instructions(module, note)
    return found


def _with_instruction(module: bytes, changed: bytes) -> bytes:
    return proto_edits.edit_instructions(module, lambda each: changed if _is_example(each) else each)


def _is_example(instruction: bytes) -> bool:
    return any(number == _NAME and payload == b"op" for number, _, payload, _ in proto_edits.fields_of(instruction))
