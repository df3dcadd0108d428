"""Where an operation's meaning is asked for: one element of one of its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hlo_verify.passes.recheck.plain import Affine, Expr
from hlo_verify.program.ir import Op, TensorType


class UnwrittenError(Exception):
    """An operation, or a use of it, whose meaning is not written down here."""


Reader = Callable[[int, Sequence[Affine], "Affine | None"], Expr]


@dataclass(frozen=True, slots=True)
class Site:
    """One element of one result of an operation, on a device."""

    op: Op
    result: int
    where: tuple[Affine, ...]
    operands: tuple[TensorType, ...]
    reader: Reader
    device: Affine | None = None
    partitions: int = 1
    replicas: int = 1

    @property
    def type(self) -> TensorType:
        """The type of the result."""
        return self.op.types[self.result]

    def read(self, n: int, where: Sequence[Affine]) -> Expr:
        """An element of an operand, on the same device."""
        return self.reader(n, where, None)

    def read_on(self, n: int, where: Sequence[Affine], device: Affine) -> Expr:
        """An element of an operand on another device."""
        return self.reader(n, where, device)

    def attribute(self, name: str) -> Any:
        return self.op.attributes[name]


Meaning = Callable[[Site], Expr]
