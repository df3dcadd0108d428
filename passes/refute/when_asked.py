"""What evaluates modules, imported and made when something is first asked of it.

What is equal by construction is proved without any inputs: of a module that is not small, nothing is evaluated then.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING

from hlo_verify.program.ir import Module, operations
from hlo_verify.report import Report, Verdict
from hlo_verify.session import Session

if TYPE_CHECKING:
    from hlo_verify.passes.diagnose.examine import Examination
    from hlo_verify.passes.refute.refute import Refutation, Refuter


OPERATION = 20_000
"""The work of an operation on few elements."""


def countersigned(report: Report, logical: Module, partitioned: Module, session: Session) -> Report:
    """As `countersign.countersigned`, where both modules are so small that it takes next to nothing."""
    is_proved = any(result.verdict is Verdict.PROVED for result in report.results)
    if not is_proved or not _take_less(session.limits.countersigned_work, logical, partitioned):
        return report
    from hlo_verify.passes.refute import countersign

    return countersign.countersigned(report, logical, partitioned, session)


def _take_less(work: float, *modules: Module) -> bool:
    """Whether evaluating those modules takes less than that, as far as they say. A large one is not gone through."""
    for op in chain.from_iterable(operations(module.main) for module in modules):
        work -= OPERATION + sum(math.prod(type_.shape) for type_ in op.types)
        if work < 0:
            return False
    return True


@dataclass(slots=True)
class WhenAsked:
    """What `refute.refuter` gives for a pair, and as that a context manager."""

    logical: Module
    partitioned: Module
    session: Session
    _made: Refuter | None = None

    def __enter__(self) -> WhenAsked:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._made is not None:
            self._made.__exit__(error_type, error, trace)

    def differing(
        self, results: Collection[int], *, in_earnest: bool = False, work: float = math.inf, is_large: bool = False
    ) -> set[int]:
        """As `Refuter.differing`."""
        return self._refuter().differing(results, in_earnest=in_earnest, work=work, is_large=is_large)

    def refute(self, examination: Examination) -> Refutation:
        """As `Refuter.refute`."""
        return self._refuter().refute(examination)

    def _refuter(self) -> Refuter:
        if self._made is None:
            from hlo_verify.passes.refute.refute import refuter

            self._made = refuter(self.logical, self.partitioned, self.session)
        return self._made
