"""Differences that hang on what floats decide of numbers that are no argument's.

A bucket `int(log(i / 8) / log(16) * 8)` of a relative position is a whole number at some places, and the next less one
there for all that enclosures say: nothing is certain of what is looked up by it, however wrong the offset of a device
is. Where results differ clearly if it is decided as real numbers are, XLA is asked: what it computes differently, and
as it was predicted, does differ.
"""

from __future__ import annotations

from collections.abc import Collection

from hlo_verify.evaluate import Limits
from hlo_verify.passes.refute import trial as trials
from hlo_verify.passes.refute.draws import EVEN
from hlo_verify.passes.refute.search import Search
from hlo_verify.passes.refute.trial import Counterexample
from hlo_verify.passes.refute.xla_replay import is_small
from hlo_verify.program.ir import IN_FLOATS, operations


def counterexample(search: Search, results: Collection[int]) -> Counterexample | None:
    """The first draw, where results differ for it that looked different before, and floats have something to decide."""
    pair, bounds = search.pair, search.session.limits
    left = sorted(search.open.keys() & set(results) - search.found(results))
    modules = pair.logical.main, pair.partitioned.main
    is_open = any(IN_FLOATS in op.attributes for main in modules for op in operations(main))
    if not left or not is_open or not is_small(pair):
        return None
    limits = Limits(bounds.evaluation_elements, bounds.glance_work, room=bounds.evaluation_room)
    trial = trials.run(pair, search.drawing.draw(EVEN[0], 0), limits=limits, only=left)
    seen = trial.differences(left, trials.CLEAR)
    found = search.confirmer.where_decided(trial.inputs, seen.keys()) if seen else {}
    return Counterexample(trial, found) if found else None
