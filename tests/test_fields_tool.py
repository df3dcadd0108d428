"""The table of what reading HLO loses: complete, accounted for, and what jaxlib does."""

from __future__ import annotations

import random

import pytest

from hlo_verify.jaxlib_hlo import jaxlib_version
from hlo_verify.passes.read import fields
from hlo_verify.passes.read.fields import CARRIED, NOT_UNDERSTOOD, WITHOUT_MEANING, why_lost
from tools.fields import table
from tools.fields.observe import observe
from tools.schema import INSTRUCTION, schema

QUICK = "add all-reduce compare constant fusion gather pad reduce-window select slice sort transpose while".split()
"""Opcodes whose fields do not end jaxlib's process, which takes its time."""

LOST = [
    (version, opcode, path) for version, every in table.versions().items() for opcode in every for path in every[opcode]
]


def test_the_installed_jaxlib_has_a_table() -> None:
    assert jaxlib_version() in table.versions()
    assert len(table.read()) > 120


@pytest.mark.parametrize("version", table.versions())
def test_everything_that_is_lost_is_accounted_for(version: str) -> None:
    assert not [(opcode, path) for of, opcode, path in LOST if of == version and why_lost(opcode, path) is None]


def test_nothing_else_is_accounted_for() -> None:
    """A reason that nothing needs would hide what is lost later."""
    lost = {(opcode, path) for _, opcode, path in LOST}
    for opcode, names in (*CARRIED.items(), *NOT_UNDERSTOOD.items()):
        assert {name for name in names if not any(of == opcode and _within(path, name) for of, path in lost)} == set()
    assert {name for name in WITHOUT_MEANING if not any(_within(path, name) for _, path in lost)} == set()


def _within(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")


def test_every_field_of_the_installed_jaxlib_was_tried() -> None:
    assert max(schema().messages[INSTRUCTION]) <= fields._LAST
    numbers = {field.name: number for number, field in schema().messages[INSTRUCTION].items()}
    for name, number in (fields._CARRIED | fields._UNKNOWN).items():
        assert numbers.get(name, number) == number


def test_opcodes_that_forget_frontend_attributes_carry_nothing() -> None:
    forget = {opcode for _, opcode, path in LOST if path.startswith("frontend_attributes")}
    assert forget <= fields.CARRIES_NOTHING


def test_jaxlib_forgets_what_the_table_says(seed: int) -> None:
    """Of two opcodes that matter, and of another one in each run; `python -m tools.fields` looks at all of them."""
    opcodes = ["custom-call", "convolution", random.Random(seed).choice(QUICK)]
    found = {opcode: table.lost(fates) for opcode, fates in observe(opcodes).items()}
    assert found == {opcode: table.read()[opcode] for opcode in opcodes}
