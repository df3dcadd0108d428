"""What a look at one module may take: steps and elements, never seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LintLimits:
    """The limits of `lint`. What runs into one is not known, and no error is made of it."""

    table_elements: int = 1 << 16
    """Elements, over all devices, of an integer that is computed for each: axis indices and offsets have one a device,
    the tables that they are looked up in as many again."""
    pairs: int = 256
    """Pairs of devices, of other choices and in one group, whose collectives are compared in one conditional. Meshes
    repeat: the first group shows what the others do."""
    turns: int = 64
    """Turns of a loop that devices are followed through where they leave it, or branch in it, each in its own turn."""
    steps: int = 200_000
    """Instructions that are followed to see devices wait for one another: as many as the largest modules have."""
    replays: int = 64
    """Ways in which other choices of devices, on their data, could make up for one: all are gone through, and three
    other conditionals have as many."""
