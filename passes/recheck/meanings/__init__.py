"""What every operation means, written down a second time: one element of a result, as a plain term.

Each function follows the text of the StableHLO specification and nothing of `hlo_verify.ops`. It is given where the
element is (`site.where`) and reads operands at index expressions (`site.read`). What is not here is not re-checked.
"""

from hlo_verify.passes.recheck.meanings import collectives, elementwise, movement, reductions
from hlo_verify.passes.recheck.meanings.elementwise import free_function
from hlo_verify.passes.recheck.meanings.site import Meaning, Site, UnwrittenError

__all__ = ["MEANINGS", "Meaning", "Site", "UnwrittenError", "free_function"]

MEANINGS: dict[str, Meaning] = {
    **movement.MEANINGS,
    **elementwise.MEANINGS,
    **reductions.MEANINGS,
    **collectives.MEANINGS,
}
"""Meanings by operation name."""
