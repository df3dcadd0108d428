"""Search for inputs for which the modules differ, and make them readable.

Inputs are drawn block by block (`hlo_verify.evaluate`), so that whole modules are evaluated at their own sizes and on
all their devices; nothing is assumed of values in between. A search that ends without a counterexample says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from hlo_verify.evaluate import Difference, Dimension, Limits, allows
from hlo_verify.evaluate.intervals import INTERVALS
from hlo_verify.evaluate.needed import elements, least, part
from hlo_verify.evaluate.state import WEIGHTS
from hlo_verify.passes.refute import trial as trials
from hlo_verify.passes.refute.confirm import Confirmed, Confirmer, asked_first, faintly
from hlo_verify.passes.refute.draws import EVEN, SEEDS, STRONG, WITHOUT_ZEROS, Drawing
from hlo_verify.passes.refute.granularity import Granularities, Granularity, longest
from hlo_verify.passes.refute.plainer import plainest
from hlo_verify.passes.refute.trial import Counterexample, Inputs, Trial
from hlo_verify.program.pair import Pair
from hlo_verify.program.preconditions import assumed
from hlo_verify.session import EnoughError, Session

CLEARER = 10
"""How much farther apart values have to be than those that intervals left open, with inputs as large."""

GIVEN_UP = "whether it does was not looked at more closely, as enough was done for a module that is not proved"
"""Why it is open whether a result differs, where `wrong_work` is over."""

POSTPONED = "whether it does was not looked at more closely, as others differ for certain"
"""Why it is open whether a result differs, where `confirming_work` is over."""


@dataclass(slots=True)
class Search:
    """The search for one pair. It goes on where it stopped."""

    pair: Pair
    session: Session = field(default_factory=Session)
    _tried: int = 0
    _hardest: float = 0.0
    """The work of the draw that took most."""
    _foreseen: float = 0.0
    """About what the next draw takes: as much as the last one, or what made it too large."""
    _spent: float = 0.0
    _found_after: float = 0.0
    """The work of all searches so far, and how much it was when the first result was found to differ."""
    _drawn: float = 0.0
    """The work of evaluations in floating point alone, and how much it was then."""
    _drawn_before: float = 0.0
    _best: dict[int, tuple[Difference, Trial]] = field(default_factory=dict)
    open: dict[int, str] = field(default_factory=dict)
    """Results that looked different, and why that is not certain."""
    evident: set[int] = field(default_factory=set)
    """Those of them that differ by more than roundings explain, where enclosures take too much."""
    confirmer: Confirmer = field(init=False)
    _vain: list[int] = field(default_factory=lambda: [0, 0])
    """How many differences that floating point showed were none for certain: faint ones, and evident ones."""
    _too_large: float = math.inf
    """The values of the largest tensor of what could not be evaluated on enclosures."""
    _left_open: float = 0.0
    """How far apart values were there, where enclosures had an answer, but were too wide: what is no clearer is not
    looked at again."""
    _dear: int = 0
    """How many draws in vain were no smaller than one that enclosures could not decide."""
    _faint: Trial | None = None
    """What a choice of few different elements showed, faintly: others show it better: it is kept for the end."""
    _first: Search | None = None
    """The search for the one result that takes least."""
    _confirming: float = 0.0
    """What enclosures took last."""
    drawing: Drawing = field(init=False)
    _granularities: Granularities = field(init=False)
    _longest: int = field(init=False)
    """The longest dimension of a tensor; an evaluation has a number for each of its indices."""
    _spared: list[int] = field(default_factory=lambda: [*range(WITHOUT_ZEROS + 1)])
    """Choices of inputs of which there are few different elements, that were not tried yet."""
    _is_spared: bool = False
    """Whether a difference was found where nothing hangs on what is too large: one is enough of such a module."""

    def __post_init__(self) -> None:
        self.confirmer = Confirmer(self.pair, self.session)
        self.drawing = Drawing(self.pair)
        dimensions = {dimension for each in self.drawing.dimensions for dimension in each if dimension[0] > 1}
        self._granularities = Granularities(tuple(sorted(dimensions)), self.session.limits.cutting_work)
        self._longest = max(map(longest, (self.pair.logical.main, self.pair.partitioned.main)))

    def find(
        self, results: Collection[int], *, draws: int | None = None, work: float | None = None, within: bool = False
    ) -> set[int]:
        """Which of those results differ for some inputs, after so many draws in all, or so much work; `within` it, what
        takes as much as the hardest draw before has to fit in. So it has to once some differ: the others are searched
        for with no more work than it took to draw the first, and `further_work`."""
        bounds = self.session.limits
        if self._longest > bounds.evaluation_elements:
            self.session.reached("evaluation_elements")
            return set()
        begun, work = self._spent, bounds.search_work if work is None else work
        draws = 2 * len(self.drawing.draws) if draws is None else draws
        while (self._spared or self._tried < draws) and not self._is_enough(results):
            end = begun + (work if self._tried < len(EVEN) else min(work, bounds.repeated_work))
            if is_known := not self._best.keys().isdisjoint(results):
                end = min(end, self._found_after + self._drawn_before + bounds.further_work)
            end -= self._hardest if is_known or within else 0
            if self._is_spared or (self._tried >= len(self.drawing.draws) and self._granularities.all_fit):
                break
            if not self.session.affords(self._foreseen):
                break
            if self._dear >= bounds.dear_draws:
                self.session.reached("dear_draws")
                break
            if self._spent > end or (self._hardest > bounds.single_work and not self._best):
                if not within:
                    self.session.reached("search_work" if self._spent > end else "single_work")
                break
            before, known, is_first = self._spent, len(self._best), not self._best
            limits = self._limits(end - self._spent)
            left = len(self._spared)
            trial = self._sparse(results, limits) if self._spared else None
            if trial is None:
                if self._tried >= draws or not self.session.affords(self._foreseen):
                    break
                trial = self._trial(self._tried, results, limits, end)
                self._tried += 1
            self._note(trial, results)
            self._is_spared = bool(self._best) and left == WITHOUT_ZEROS + 1 > len(self._spared) == WITHOUT_ZEROS
            need = max(trial.largest, trial.exceeded)
            self._dear += need >= self._too_large and len(self._best) == known
            if is_first and self._best:
                self._found_after, self._drawn_before = self._spent, self._drawn
            self._hardest = max(self._hardest, self._spent - before)
            if trial.is_known_for_none:
                self._tried = 2 * len(self.drawing.draws)  # nothing of it can be evaluated, whatever the inputs
        if self._faint is not None and self._best.keys().isdisjoint(results):
            self._spared, faint, self._faint = [], self._faint, None
            self._note(faint, results)
        return self.found(results)

    def find_first(
        self, results: Collection[int], *, draws: int, work: float, share: float = 0.5, in_any_case: bool = False
    ) -> set[int]:
        """Whether the one of those results differs that takes least, if that is a small share of what all of them take,
        or `in_any_case`. A loss is seen long before the gradients, for which all is kept that the layers made."""
        main = self.pair.logical.main
        first = least(main, results)
        alone, together = (elements(part(main, {main.results[n] for n in some})) for some in ([first], results))
        if len(set(results)) < 2 or (not in_any_case and (together <= work or alone > share * together)):
            return set()
        if self._first is None:
            self._first = Search(self.pair, self.session)
            self._first.confirmer = self.confirmer
        one, before = self._first, (self._first._spent, self._first._drawn)
        one.find([first], draws=draws, work=work)
        self._hardest = max(self._hardest, one._hardest)
        self._best.update(one._best)
        self._is_spared = one._is_spared
        self.open.update(one.open)
        self._spent = self._found_after = self._spent + one._spent - before[0]
        self._drawn = self._drawn_before = self._drawn + one._drawn - before[1]
        return self.found([first])

    def found(self, results: Collection[int]) -> set[int]:
        """Which of those results were found to differ so far."""
        return {n for n in results if n in self._best}

    def _limits(self, left: float) -> Limits:
        """What one evaluation may take where so much work is left."""
        bounds = self.session.limits
        most = max(self.session.meter.left / 2, bounds.glance_work)  # two modules are evaluated
        work = min(max(left, bounds.evaluation_work), most)
        return Limits(bounds.evaluation_elements, work, heed=self.session.check, room=bounds.evaluation_room)

    def _run(
        self,
        inputs: Inputs,
        limits: Limits,
        results: Collection[int],
        *,
        is_cheap: bool = False,
        is_telling: bool = True,
    ) -> Trial:
        """Both modules, as far as those results need; a cheap attempt ends where none can be had. Zeros tell little."""
        needed = results if is_cheap else None
        trial = trials.run(self.pair, inputs, limits=limits, needed=needed, only=results)
        self._spent += trial.work
        self._drawn += trial.work
        self.session.meter.charge(trial.work)
        self._foreseen = trial.foreseen
        self.session.inputs += 1
        bounds = self.session.limits
        if max(trial.whole.work, trial.local.work) > limits.work:
            self.session.reached("evaluation_work")
        if trial.exceeded > bounds.evaluation_elements:
            self.session.reached("evaluation_elements")
        self.session.not_evaluated |= dict.fromkeys((*trial.whole.unknown, *trial.local.unknown))
        self.session.lacks_meanings |= trial.lacks_meanings
        trial.note_seen(self.session.values_seen, results, is_telling)
        return trial

    def _trial(self, number: int, results: Collection[int], limits: Limits, end: float) -> Trial:
        """Both modules for the draw of that number, cheap if need be and there are such inputs.

        What is too large is found out before it is computed, and mostly early.
        """
        draw = self.drawing.draws[number % len(self.drawing.draws)]
        while number < len(self.drawing.draws) and self._granularities.elements < limits.elements:
            cheap = replace(limits, elements=self._granularities.elements)
            for granularity in self._granularities.choices(number, draw.detail):
                before = self._spent
                inputs = self.drawing.draw(replace(draw, detail=granularity.detail), number, granularity.plain)
                trial = self._run(inputs, cheap, results, is_cheap=True)
                need = trial.exceeded
                self._granularities.note(granularity, need, self._spent - before)
                if not need or self._spent > end:
                    return trial
                self._note(trial, results)
                if self._is_enough(results) or not self.session.affords(self._foreseen):
                    return trial
            self._granularities.relax()
        return self._run(self.drawing.draw(draw, number), limits, results)

    def _sparse(self, results: Collection[int], limits: Limits) -> Trial | None:
        """Both modules for inputs that have few different elements; where they have few in any case, for the first
        draw. None where that is not enough.

        By the last choice no argument is 0 (`Drawing.zeros_for` has the others): the smallest dimensions are not split,
        and tables are split finely.
        """
        choice, zero, plain = self._spared.pop(0), frozenset[int](), frozenset[Dimension]()
        most = self._granularities.sparse if choice < WITHOUT_ZEROS else self._granularities.elements
        limits = replace(limits, elements=min(limits.elements, most))
        draw = EVEN[max(0, choice - 1)]
        if choice == WITHOUT_ZEROS:
            draw, plain = STRONG, self._granularities.smallest()
        while True:
            before = self._spent
            if zero and not self.session.affords(self._foreseen):
                return None
            # zeros leave less of a difference: what is not 0 is larger
            drawn = replace(draw, scale=STRONG.scale * draw.scale) if zero else draw
            inputs = self.drawing.draw(drawn, SEEDS[choice], plain, zero=zero, is_table_fine=bool(plain))
            trial = self._run(inputs, limits, results, is_cheap=True, is_telling=not zero)
            need = trial.exceeded
            if not need:
                if not zero and not plain:
                    self._granularities.note(Granularity(draw.detail), 0, self._spent - before)
                    self._spared, self._tried = [], 1
                return trial
            if plain:
                return None
            found, work = self.drawing.zeros_for(trial.whole.refused, results, choice)
            self.session.meter.charge(work)
            if found <= zero:
                return self._sparse(results, limits) if choice == 0 and self._spared else None
            zero |= found

    def _note(self, trial: Trial, results: Collection[int]) -> None:
        """Keep where results surely differ, of those that look different and are not known to differ clearly."""
        if not all(map(allows, assumed(self.pair.logical), trial.inputs)):
            return
        size = trial.largest
        is_small = size <= self.session.limits.clear_elements
        unclear = [n for n in results if n not in self._best or (is_small and not trials.is_clear(self._best[n][0]))]
        seen = trial.differences(unclear, trials.NOTICED)
        seen = {n: d for n, d in seen.items() if n not in self._best or d.relative > self._best[n][0].relative}
        is_evident = bool(trials.evident(seen))
        far = max((apart.relative for apart in seen.values()), default=0.0)
        if not seen or (size >= self._too_large and far <= CLEARER * self._left_open) or self._is_vain(is_evident):
            return
        if self._spared and not is_small and not is_evident:
            self._faint = self._faint or trial
            return
        first = seen if is_small else asked_first(trial, seen, self.session.limits.confirming_work)
        others = {n: apart for n, apart in seen.items() if n not in first}
        self._look_closer(trial, first, is_evident, far)
        if not self._best.keys().isdisjoint(first):
            left = others.keys() - self._best.keys()
            if left:
                self.session.reached("confirming_work")
            self.open |= dict.fromkeys(left, POSTPONED)
            self.evident |= left & trials.evident(others) - faintly(others)
        elif size < self._too_large:
            self._look_closer(trial, others, is_evident, far)

    def _look_closer(self, trial: Trial, seen: Mapping[int, Difference], is_evident: bool, far: float) -> None:
        """Keep which of those results surely differ."""
        size, work = trial.largest, 0.0
        if seen and not self._may_confirm(trial, seen):
            self.open |= dict.fromkeys(seen, GIVEN_UP)
            self.evident |= trials.evident(seen) - faintly(seen)
            self.session.seems_wrong |= bool(trials.evident(seen))
            return
        if seen and size > self.session.limits.clear_elements:
            seen, work = trials.beyond_noise(trial, dict(seen))
            self._spent += work
            self.session.meter.charge(work)
        if not seen:
            return
        bounds = self.session.limits
        is_dear = work / 2 * WEIGHTS[INTERVALS] > bounds.interval_work
        if is_dear:
            self.session.reached("interval_work")
        said = Confirmed(is_too_large=True, is_dear=True) if is_dear else self._confirm(trial, seen)
        if said.is_too_large:
            end = self._end_of_shrinking()
            simpler = self._shrunk(Counterexample(trial, dict(seen)), end, is_certain=False)
            trial = simpler.trial
            if trial.largest < size:
                said = self._confirm(trial, simpler.differences)
            if said.is_too_large:
                self._too_large, self._left_open = size, math.inf if said.is_dear else far
                self.evident |= trials.evident(seen) - faintly(seen)
        self._vain[is_evident] += not said.differences
        self.open.update(said.open)
        for n, apart in said.differences.items():
            if n not in self._best or apart.relative > self._best[n][0].relative:
                self._best[n] = apart, trial

    def _may_confirm(self, trial: Trial, seen: Mapping[int, Difference]) -> bool:
        """Whether enclosures are asked: where nothing is known to differ, in any case about what clearly seems to."""
        if self._is_first_clear(seen):
            return True
        if self._best and not seen.keys() - faintly(seen) and seen.keys() <= self.open.keys():
            return False  # the module is wrong, and more inputs hardly ever tell what is as faint as a rounding
        return self.session.affords((1 + WEIGHTS[INTERVALS]) * trial.work)

    def _is_first_clear(self, seen: Mapping[int, Difference]) -> bool:
        """Whether something clearly seems to differ where nothing is known to: then it is confirmed in any case."""
        return not self._best and bool(seen.keys() - faintly(seen))

    def _end_of_shrinking(self) -> float:
        """How much work there may be in all when inputs are as plain as they get."""
        return self._spent + min(self.session.limits.shrinking_work, self.session.meter.left)

    def _confirm(self, trial: Trial, seen: Mapping[int, Difference]) -> Confirmed:
        """What enclosures say; what was too large for floating point, and so makes no such difference, is for them."""
        room = self.session.limits.enclosed_room
        elements = min(room * trial.elements, trial.exceeded - 1) if trial.exceeded else None
        most = math.inf if self._is_first_clear(seen) else max(0.0, self.session.meter.left)
        said = self.confirmer.confirm(trial.inputs, seen, seen, elements, most)
        self._spent += said.work
        self.session.meter.charge(said.work)
        self._confirming = said.work
        return said

    def _is_vain(self, is_evident: bool) -> bool:
        """Whether too many differences were none for certain."""
        name = "vain_differences" if is_evident else "faint_differences"
        if self._vain[is_evident] < getattr(self.session.limits, name):
            return False
        self.session.reached(name)
        return True

    def _is_enough(self, results: Collection[int]) -> bool:
        """Whether every result differs clearly, or after a few draws at all, or for inputs too large to be replaced."""
        return all(
            n in self._best and (self._tried >= self.session.limits.clear_draws or not self._is_unclear(n))
            for n in results
        )

    def _is_unclear(self, n: int) -> bool:
        """Whether a difference is small, of inputs that are small too."""
        apart, trial = self._best[n]
        size = trial.largest
        return not trials.is_clear(apart) and size <= self.session.limits.clear_elements

    def counterexamples(self, results: Collection[int]) -> list[Counterexample]:
        """What was found for those results, of as few different inputs as can be, as plain as can be."""
        end = self._end_of_shrinking()
        by_trial: dict[int, Counterexample] = {}
        for n, (apart, trial) in sorted(self._best.items()):
            if n in results:
                by_trial.setdefault(id(trial), Counterexample(trial, {})).differences[n] = apart
        return [self._shrunk(each, end) for each in by_trial.values()]

    def _shrunk(self, found: Counterexample, end: float, *, is_certain: bool = True) -> Counterexample:
        """The counterexample with every argument as plain as it can be while no result that differs agrees: surely, or
        as floating point shows it."""
        logical, partitioned = self.pair.logical, self.pair.partitioned

        def simpler(found: Counterexample, inputs: Inputs) -> Counterexample | None:
            left = end - self._spent
            if left < found.trial.work + self._confirming * is_certain:
                raise EnoughError
            return self._still(found, inputs, self._limits(left), is_certain)

        size = len(logical.main.ops) + len(partitioned.main.ops)
        return plainest(found, logical.main.argument_types, assumed(logical), size, simpler)

    def _still(self, found: Counterexample, inputs: Inputs, limits: Limits, is_certain: bool) -> Counterexample | None:
        """The counterexample with other inputs, if it is still as clear a one."""
        trial = self._run(inputs, limits, found.differences)
        still = Counterexample(trial, trial.differences(found.differences))
        if is_certain and trials.is_as_good(still, found):
            still = Counterexample(trial, self._confirm(trial, still.differences).differences)
        return still if trials.is_as_good(still, found) else None
