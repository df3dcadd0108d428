"""What became of a case, and what is surprising about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Outcome:
    """`truth`: equal, differs, refused (XLA or its runtime raise an error), abort (XLA ends its process), slow, or
    invalid (JAX does not take the program). `by_steps` says whether the whole program, jitted, computes what its
    operations do one by one. `confirmed` is the verdict where XLA may deny a witness."""

    truth: str
    why: str = ""
    draw: int = 0
    by_steps: str = ""
    verdict: str = ""
    reason: str = ""
    seconds: float = 0.0
    codes: tuple[str, ...] = ()
    operation: str = ""
    confirmed: str = ""

    def but(self, **given: Any) -> Outcome:
        return replace(self, **given)


WRONG = "wrong result"
ABORT = "abort"
REFUSED = "refused"
FALSE_PROOF = "false proof"
FALSE_REFUTATION = "false refutation"
MISSED = "wrong result, not refuted"
WHOLE = "wrong without sharding"
CRASH = "crash of hlo-verify"
UNREAD = "not read by hlo-verify"

OURS = (FALSE_PROOF, FALSE_REFUTATION, CRASH, UNREAD)
"""Defects of hlo-verify, all others being of XLA or JAX, or a gap."""

BY_VERDICT = (FALSE_PROOF, FALSE_REFUTATION, MISSED, CRASH, UNREAD)
"""What needs a verdict to be seen again."""


def kind(outcome: Outcome) -> str | None:
    """What is surprising, if anything. A refutation of what was equal for the inputs that were drawn is none where XLA
    confirms its witness: then the result is wrong."""
    if outcome.truth in (ABORT, REFUSED, "slow"):
        return outcome.truth
    if outcome.truth == "differs":
        if outcome.by_steps == "unlike":
            return WHOLE
        if outcome.verdict in ("", "REFUTED"):
            return WRONG
        return FALSE_PROOF if outcome.verdict == "PROVED" else MISSED
    if outcome.truth == "equal":
        if outcome.verdict == "REFUTED":
            return FALSE_REFUTATION if outcome.confirmed in ("", "UNKNOWN", "PROVED") else WRONG
        return {"crash": CRASH, "error": UNREAD}.get(outcome.verdict)
    return None
