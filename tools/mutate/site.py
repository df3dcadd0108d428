"""What an edit may know besides its operation: the devices, and where its random choices come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tools.mutate.mlir import NotHereError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Site:
    """`mesh` has the sizes of the mesh's axes."""

    mesh: tuple[int, ...]
    rng: np.random.Generator

    def choose(self, among: Sequence[T]) -> T:
        """One of them, each as likely. Raises `NotHereError` where there are none."""
        if not among:
            raise NotHereError
        return among[int(self.rng.integers(len(among)))]

    def permutation(self, count: int) -> list[int]:
        """An order of `count` things that is not the one they are in. Raises `NotHereError` where there is none."""
        if count < 2:
            raise NotHereError
        while True:
            order: list[int] = self.rng.permutation(count).tolist()
            if order != sorted(order):
                return order
