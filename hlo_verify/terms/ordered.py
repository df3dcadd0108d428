"""Definitions of elements in order, from the least one on (`ops.in_order` has their laws)."""

from __future__ import annotations

from typing import TypeGuard

from hlo_verify.terms.term import Atom, Read

Kind = tuple[str, bool, int]

UPWARDS = "upwards"
"""The comparator of definitions that count from the least element on."""

VALUES: Kind = (UPWARDS, True, 0)
ORDER: Kind = (UPWARDS, True, 1)


def is_ordered(atom: Atom | None, kind: Kind) -> TypeGuard[Read]:
    """Whether an atom is a value, or an element's number, at a place in order."""
    return isinstance(atom, Read) and atom.tensor.kind == "sort" and atom.tensor.attributes == kind
