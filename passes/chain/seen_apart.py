"""Whether two modules that would be equal but for roundings are seen to differ by more than these, for a few inputs.

Nothing is proved by it: it takes a proof back that leans on roundings, where they do not stay such.
"""

from __future__ import annotations

from hlo_verify.evaluate.state import Limits
from hlo_verify.passes.refute.draws import Draw, Drawing
from hlo_verify.passes.refute.trial import run
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import pair_of
from hlo_verify.session import Session

APART = 1e-4
"""What results may differ by, of the largest element."""

DRAWS = (Draw(1.0, 128, 8), Draw(4.0, 128, 40, positive=True), Draw(1.0, 128, 1000))
"""With as many different elements as there are: sums of equal ones may be 0 where a table says that they nearly are."""


def are_seen_apart(logical: Module, partitioned: Module, session: Session) -> bool:
    """Whether some result of the pair differs for inputs that are drawn, or none of them could be evaluated for any."""
    pair = pair_of(logical, partitioned)
    drawing, results = Drawing(pair), range(len(pair.results))
    limits = Limits(work=session.limits.glance_work, heed=session.check)
    seen: dict[int, bool] = {}
    for seed, draw in enumerate(DRAWS):
        trial = run(pair, drawing.draw(draw, seed), limits=limits)
        if trial.differences(results, APART):
            return True
        trial.note_seen(seen, results)
    return not all(seen.get(n) for n in results)
