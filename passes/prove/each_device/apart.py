"""Results that are asked about for each device by itself: where everything else has failed, and not without end."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from hlo_verify.index.interned import made
from hlo_verify.memory import Memory
from hlo_verify.meter import TERM
from hlo_verify.passes.prove.cut_points import Guesses
from hlo_verify.passes.prove.each_device.compare import EachDevice, each_device, is_by_hand, is_small
from hlo_verify.passes.prove.prove import Outcome
from hlo_verify.program.ir import Module
from hlo_verify.session import EnoughError, Session

SHARE_BRIEF = 2
"""The part of all operations on each device that are worked out before comparisons that may take many steps; and of
the terms of small modules, how many more than these may be made to see a result: what is seen takes up to 37,000."""


@dataclass(slots=True)
class Apart:
    """The question for each device by itself, which is only asked where it has to be.

    Terms of all devices are remembered by themselves: they end while one is made where they become too many, and what
    was half made then is forgotten.
    """

    logical: Module
    partitioned: Module
    session: Session
    left: Collection[int]
    """The results that were not proved at first, and are not known to be wrong."""
    seems_wrong: bool = False
    """Whether the module is known to be wrong, or seems so: then all of this is on the account, as it is for what a
    compiler partitioned."""
    guesses: Guesses = field(default_factory=dict)
    """What values of the partitioned module seem to be."""
    first: Outcome | None = None
    """What a walk over all devices at once found, in which no value was compared."""
    _memory: Memory = field(default_factory=Memory)
    _walked: bool = False
    _looked: bool = False
    """Whether as little was tried as a brief look takes."""
    _found: EachDevice | None = None
    _seen: dict[int, bool] = field(default_factory=dict)
    """What a brief look showed of results."""
    _proved: Collection[int] = ()
    """Those that are proved of what a compiler partitioned."""

    def proves(self, n: int) -> bool:
        """Whether the n-th result is proved so."""
        before = self.session.phase
        self.session.phase = "each device was looked at by itself"
        is_proved = self._proves_by_hand(n) if is_by_hand(self.partitioned) else self._proves_compiled(n)
        self.session.phase = before
        return is_proved

    @property
    def may_be_brief(self) -> bool:
        """Whether a brief look may show that results are right."""
        return not self.seems_wrong and is_by_hand(self.partitioned) and (not self._looked or self._found is not None)

    def proves_briefly(self, n: int) -> bool:
        """Whether the n-th result is seen to be right at once, of what a person wrote by hand that does not seem to be
        wrong, if that takes few operations. Pipelines and rings on few devices are proved so, and as one sum for all
        devices in many steps.

        Of what a compiler partitioned, whether it is right on each device, where many values are no shards as they
        stand: an associative scan comes out in pieces, and most comparisons of them are in vain."""
        if not is_by_hand(self.partitioned):
            return self.is_in_pieces and self.proves(n)
        if not self.may_be_brief:
            return False
        if n not in self._seen:
            self._seen[n] = self._sees(n)
        return self._seen[n]

    @property
    def is_in_pieces(self) -> bool:
        """Whether so many values of what a compiler partitioned, that does not seem to be wrong, were not matched that
        it takes less to look at each device by itself."""
        if self.first is None or self.seems_wrong or is_by_hand(self.partitioned):
            return False
        stages, most = self.first.stages, self.session.limits.unmatched_values
        values = (value.term for step in stages.partitioned for value in step.values)
        return len(list(islice(filter(stages.needs_match, values), most))) == most

    def _sees(self, n: int) -> bool:
        """Look briefly at what a result is on each device."""
        before, self.session.phase = self.session.phase, "each device was looked at by itself"
        proved = False
        with self._memory.resumed():
            try:
                with within_terms("terms_apart", self.session):
                    if not self._looked:
                        self._looked = True
                        most = self.session.limits.operations_apart // SHARE_BRIEF
                        found = each_device(self.logical, self.partitioned, self.session, self.guesses, most)
                        self._found, self._walked = found, found is not None
                    beside = made() + self.session.limits.small_terms_apart // SHARE_BRIEF
                    with within_terms("small_terms_apart", self.session, beside=beside):
                        proved = self._found is not None and self._found.proves(n, briefly=True)
            except EnoughError:
                self._found, self._walked = None, False
        if self._found is None:
            self._memory.forget()
        self.session.phase = before
        return proved

    def _proves_by_hand(self, n: int) -> bool:
        session = self.session
        if (self._walked and self._found is None) or (self.seems_wrong and not session.affords()):
            return False
        proved = False
        with self._memory.resumed():
            terms = made()
            try:
                with within_terms("terms_apart", session):
                    if not self._walked:
                        self._walked = True
                        self._found = each_device(self.logical, self.partitioned, session, self.guesses)
                    proved = self._found is not None and self._found.proves(n)
            except EnoughError:
                self._found = None
            if self.seems_wrong and not proved:
                session.meter.charge_terms(made() - terms)
        if self._found is None:
            self._memory.forget()
        return proved

    def _proves_compiled(self, n: int) -> bool:
        """The same of what a compiler partitioned: all results at the first question. What is right takes few terms."""
        if not self._walked and self.session.affords():
            self._walked = True
            if is_small(self.logical, self.partitioned, self.session):
                with self._memory.resumed():
                    self._proved = self._within_small_terms([n, *(k for k in self.left if k != n)])
                self._memory.forget()
        return n in self._proved

    def _within_small_terms(self, results: Sequence[int]) -> Collection[int]:
        """Which of some results are proved with no more terms than there may be."""
        session, proved = self.session, set[int]()
        most = session.meter.left / TERM
        try:
            with within_terms("small_terms_apart", session, most):
                found = each_device(self.logical, self.partitioned, session)
            with within_terms("small_terms_apart", session, most, beside=made()):
                for n in results:
                    if found is not None and found.proves(n):
                        proved.add(n)
        except EnoughError:
            pass
        finally:
            session.meter.charge_terms(made())
        return proved


@contextmanager
def within_terms(limit: str, session: Session, most: float | None = None, beside: int = 0) -> Iterator[None]:
    """What is done meanwhile ends with `EnoughError`, in the middle of a term too, where more terms are remembered than
    the limit of that name says `beside` some that are there, or `most`. Nothing that it left may be used then."""
    allowed = getattr(session.limits, limit) + beside
    try:
        with session.at_most(allowed if most is None else min(allowed, most), made), session.interruptible():
            yield
    except EnoughError:
        session.reached(limit)
        raise
