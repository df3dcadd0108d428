"""Forgetting: the tables that make equal terms one object live as long as one verification.

Hash-consing needs one table a process, not an argument of every function that builds a term. It would
grow without end, so `forget` empties it before a verification starts; terms made earlier must not be
mixed with later ones.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

from hlo_verify.index import interned, tables
from hlo_verify.terms import definitions, products, term


def forget() -> None:
    """Empty the tables of interned terms, index expressions and definitions."""
    for table in (interned.TABLES, tables.TABLES, definitions.TABLES, products.TABLES):
        for entries in table:
            entries.clear()
    term.forget()


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Do without the garbage collector: operations and terms have no cycles, and it would walk them all, often."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
