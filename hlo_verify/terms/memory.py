"""Forgetting: the tables that make equal terms one object live as long as one verification.

Hash-consing needs one table a process, not an argument of every function that builds a term. It would
grow without end, so `forget` empties it before a verification starts; terms made earlier must not be
mixed with later ones.
"""

from __future__ import annotations

from hlo_verify.index import interned, tables
from hlo_verify.terms import definitions, finite, idle, poles, products, rotations, signs, substitution, term


def forget() -> None:
    """Empty the tables of interned terms, index expressions and definitions."""
    remembered = (interned, tables, definitions, finite, idle, poles, products, rotations, signs, substitution)
    for table in (module.TABLES for module in remembered):
        for entries in table:
            entries.clear()
    term.forget()
