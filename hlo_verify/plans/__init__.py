"""Several programs that together make one, and what they hand each other: `Plan` (docs/decisions/plans.md)."""

from hlo_verify.plans.plan import Plan
from hlo_verify.plans.steps import Accumulate, Join, Receive, Run, Send

__all__ = ["Accumulate", "Join", "Plan", "Receive", "Run", "Send"]
