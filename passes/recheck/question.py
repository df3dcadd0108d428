"""A question of the second check: whether pairs of formulas are equal."""

from __future__ import annotations

from dataclasses import dataclass

from hlo_verify.passes.recheck.formulas import Graph
from hlo_verify.passes.recheck.graph import Node


@dataclass(frozen=True, slots=True)
class Formulas:
    """Pairs of formulas that should be equal: nodes of a graph (`formulas`)."""

    graph: Graph
    pairs: tuple[tuple[Node, Node], ...]
