"""Comparisons in a few steps, which are on no account."""

from __future__ import annotations

from hlo_verify.equality import cases
from hlo_verify.equality.effort import Effort
from hlo_verify.equality.networks import same_network
from hlo_verify.equality.summands import Steps
from hlo_verify.session import Session
from hlo_verify.terms.term import Poly


def equal_briefly(found: Poly, expected: Poly, inside: Poly, session: Session) -> bool:
    """Whether two terms are seen to be equal where an element exists, case by case or as sums of products."""
    limits = session.limits
    effort, steps = Effort(limits.brief_steps, session=session), Steps(limits.brief_network_steps)
    is_equal = cases.equal(found, expected, inside, effort, limits.brief_steps, "brief_steps")
    return is_equal or same_network(found, expected, session, inside, steps)
