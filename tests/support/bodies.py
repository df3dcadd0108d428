"""Pairs of small modules of elementwise operations, written line by line."""

from __future__ import annotations

from hlo_verify.passes.load.load import load
from hlo_verify.program.pair import Pair, pair_of
from tests.support.pairs import elementwise


def body(*lines: str, **constants: float | str) -> str:
    """A body of elementwise operations: `%y = add %x, %c`; constants by name."""
    said = [f"%{name} = stablehlo.constant dense<{value}> : TYPE" for name, value in constants.items()]
    for line in lines:
        name, _, rest = line.partition(" = ")
        dialect = "" if rest.startswith("chlo.") else "stablehlo."
        count = rest.count("%")
        types = "TYPE" if dialect or count == 2 else "TYPE -> TYPE"
        said.append(f"{name} = {dialect}{rest} : {types}")
    return "\n    ".join(said)


def pair(kind: str, logical: str, partitioned: str) -> Pair:
    return pair_of(*map(load, elementwise(kind, logical, partitioned)))
