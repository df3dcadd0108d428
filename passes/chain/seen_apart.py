"""Whether two modules that would be equal but for roundings are seen to differ by more than these, for a few inputs.

Nothing is proved by it: it takes a proof back that leans on roundings, where they do not stay such.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo_verify.evaluate.state import Limits
from hlo_verify.passes.refute.draws import Draw, Drawing
from hlo_verify.passes.refute.trial import NOTICED, Trial, beyond_noise, run
from hlo_verify.program.element_types import is_float, mantissa_bits
from hlo_verify.program.ir import Module, value_types
from hlo_verify.program.pair import pair_of
from hlo_verify.session import Session

APART = 1e-4
"""What results may differ by, of the largest element."""

DRAWS = (Draw(1.0, 128, 8), Draw(4.0, 128, 40, positive=True), Draw(1.0, 128, 1000))
"""With as many different elements as there are: sums of equal ones may be 0 where a table says that they nearly are."""

GROWN = 64
"""How many roundings of the narrowest type results may differ by, if that is more."""

SHARE = 8
"""The part of what a glance may take that is enough to look at numbers that were read otherwise."""


def are_seen_to_differ(logical: Module, partitioned: Module, session: Session) -> bool:
    """Whether some result of the pair differs for inputs that are drawn. Of what takes long to evaluate, nothing is
    seen: a number that is read as another is looked at in what is computed of it (`amplified`), too."""
    results = range(len(logical.result_names))
    types = {type_.dtype for module in (logical, partitioned) for type_ in value_types(module.main).values()}
    digits = min((mantissa_bits(dtype) + 1 for dtype in types if is_float(dtype)), default=mantissa_bits("f64") + 1)
    least = max(APART, GROWN * 2.0**-digits)
    trials = _trials(logical, partitioned, session, session.limits.glance_work / SHARE)
    return any(trial.differences(results, least) for trial in trials)


def are_seen_apart(logical: Module, partitioned: Module, session: Session) -> bool:
    """Whether some result of the pair differs for inputs that are drawn, or none of them could be evaluated for any."""
    results = range(len(logical.result_names))
    seen: dict[int, bool] = {}
    for trial in _trials(logical, partitioned, session, session.limits.glance_work):
        if trial.differences(results, APART):
            return True
        trial.note_seen(seen, results)
    return not all(seen.get(n) for n in results)


def are_alike(logical: Module, partitioned: Module, session: Session) -> bool | None:
    """Whether results are seen to be one another's to the last digits of double precision, for inputs that are drawn;
    None where they could not be evaluated. What differs by the rounding of a constant differs by more."""
    results = range(len(logical.result_names))
    seen: dict[int, bool] = {}
    for trial in _trials(logical, partitioned, session, session.limits.glance_work / SHARE):
        differing = trial.differences(results, NOTICED)
        if differing and beyond_noise(trial, differing)[0]:
            return False
        trial.note_seen(seen, results)
    return True if all(seen.get(n) for n in results) else None


def _trials(logical: Module, partitioned: Module, session: Session, work: float) -> Iterator[Trial]:
    """What both modules compute of each draw, with so much work for either."""
    pair = pair_of(logical, partitioned)
    drawing, limits = Drawing(pair), Limits(work=work, heed=session.check)
    return (run(pair, drawing.draw(draw, seed), limits=limits) for seed, draw in enumerate(DRAWS))
