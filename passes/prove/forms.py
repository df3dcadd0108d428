"""Forms of values: what was computed, apart from the leaves that it was computed of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hlo_verify.index.expr import Digit, Index
from hlo_verify.ops.values import Value
from hlo_verify.terms.definitions import define
from hlo_verify.terms.term import Guard, Read, Tensor

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """A value as a form of leaves."""

    form: int
    leaves: tuple[Tensor, ...] = ()


@dataclass(frozen=True, slots=True)
class Derived:
    """A leaf that stands for the boundary form of other leaves: positions among an operation's leaves, or tensors."""

    boundary: Key
    leaves: tuple[int | Tensor, ...]


Selector = int | Derived
"""How a result's leaf is found: a position among the leaves of the operands, or the leaf of a boundary."""


@dataclass(frozen=True, slots=True)
class Template:
    """A form's first value."""

    value: Value
    leaves: tuple[Tensor, ...]
    rigid: frozenset[Tensor]


def definition(value: Value) -> Read | None:
    """The one definition that a value reads, by a new name if need be."""
    atom = value.term.atom
    if atom is None and value.term.constant is None:
        atom = define("term", (), (value.term,)).atom
    return atom if isinstance(atom, Read) and atom.tensor.bodies else None


def together(values: Sequence[Shared]) -> tuple[Key, tuple[Tensor, ...]]:
    """The forms of some values and which leaves they have in common; and the leaves."""
    merged: dict[Tensor, int] = {}
    pattern = tuple([(v.form, *[merged.setdefault(leaf, len(merged)) for leaf in v.leaves]) for v in values])
    return pattern, tuple(merged)


def simple(value: Value) -> tuple[tuple[Tensor, ...], Key] | None:
    """The tensors that a value moves about, and how; None where it computes with them."""
    reads = [a for mono, _ in value.term.items for a, _ in mono if isinstance(a, Read)]
    leaves = tuple(sorted({a.tensor for a in reads}, key=lambda leaf: leaf.uid))
    if not leaves or any(leaf.bodies or leaf.values is not None for leaf in leaves):
        return None
    number = {leaf: n for n, leaf in enumerate(leaves)}
    skeleton = []
    for mono, c in value.term.items:
        parts: list[Any] = [c]
        for atom, power in mono:
            if isinstance(atom, Read) and all(map(_plain, atom.indices)):
                parts.append((number[atom.tensor], atom.indices, power))
            elif isinstance(atom, Guard) and _plain(atom.form):
                parts.append((atom, power))
            else:
                return None
        skeleton.append(tuple(parts))
    forms = tuple((leaf.kind, leaf.dtype, leaf.shape, leaf.assumed) for leaf in leaves)
    return leaves, (forms, tuple(skeleton))


def _plain(e: Index) -> bool:
    """Whether an index expression has no term inside."""
    return all(isinstance(a, Digit) or (a.term is None and all(map(_plain, a.exprs))) for a, _ in e.items)
