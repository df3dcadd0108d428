"""What several second checks found, as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hlo_verify.report import Recheck


def together(checks: Sequence[Recheck]) -> Recheck:
    """One account of several checks."""
    unchecked = Counter[str]()
    for check in checks:
        unchecked.update(dict(check.unchecked))
    return Recheck(
        sum(check.steps for check in checks),
        sum(check.questions for check in checks),
        sum(check.agreed for check in checks),
        sum(check.by_solver for check in checks),
        sum(check.bounded for check in checks),
        tuple(unchecked.most_common()),
        tuple(wrong for check in checks for wrong in check.disagreements),
        sum(check.seconds for check in checks),
        next((check.ended for check in checks if check.ended), ""),
        sum(check.partly for check in checks),
        tuple(dict.fromkeys(limit for check in checks for limit in check.limits)),
    )
