"""Pieces of modules in HLO text."""

from __future__ import annotations


def reducer(name: str, opcode: str, dtype: str = "f32") -> str:
    """A computation of two numbers, as `to_apply=NAME` asks for."""
    number = f"{dtype}[]"
    lines = (f"a = {number} parameter(0)", f"b = {number} parameter(1)", f"ROOT s = {number} {opcode}(a, b)")
    return "\n  ".join((f"{name} {{", *lines)) + "\n}\n"


ADD, MAX = reducer("add", "add"), reducer("max", "maximum")
