"""How far a sum of names is taken apart: not without end, where names hold names.

    sum v. t[v]  =  (sum v. a[v]) + (sum v. b[v])          of t[v] = a[v] + b[v], which is opened

If `a` is a product with a sum of a name in it, that name is opened as well, and so on: of names that lie d deep in each
other, each with k addends, there are k**d sums in the end. A gradient through a few layers has such ones. So no more
than `opened_names` are opened for one sum. If they are not enough, those that were opened most often keep their names,
and the sum is made once more.

A name is kept over some of its parameters: what was opened for a sum over `v` is too much for one over `v, w`, too. A
sum of a name that was kept has the name alone in it. Where such a sum is added up itself, as an all_reduce does it, the
name is kept there as well: else shards would be added up to another form than the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from hlo_verify.index.expr import Var
from hlo_verify.limits import allows
from hlo_verify.memory import per_session
from hlo_verify.terms.term import Guard, Monomial, Number, Poly, Read, Tensor

_SHARE = 4
"""Names that were opened at least a fourth as often as the one that was opened most often are kept; where that is not
enough a sixteenth, and so on, so that a sum is made a few times at most."""

Place = tuple[Tensor, frozenset[int]]
"""A name, and which of its parameters a sum is over."""


class _TooMany(Exception):
    """More names were opened for one sum than may be."""


class _Account:
    """The names that are opened for one sum, and those that are not."""

    def __init__(self, kept: Collection[Place]) -> None:
        self.opened: Counter[Place] = Counter()
        self.kept = set(kept)

    def keeps(self, source: Tensor, over: frozenset[int]) -> bool:
        return any(other is source and some <= over for other, some in self.kept)

    def note(self, place: Place) -> None:
        self.opened[place] += 1
        if not allows("opened_names", self.opened.total()):
            raise _TooMany

    def most_opened(self, time: int) -> set[Place]:
        """The names to keep, where too many were opened for the first time, the second, …"""
        most = max(self.opened.values())
        return {place for place, count in self.opened.items() if count * _SHARE**time >= most}


class _Sums:
    """The account of the sum that is made in this session, and which names others had to keep."""

    def __init__(self) -> None:
        self.account: _Account | None = None
        self.kept: dict[tuple[tuple[Place, Number], ...], set[Place]] = {}


_sums: Callable[[], _Sums] = per_session("names opened in sums", _Sums)


def opening_within_bounds(make: Callable[[], Poly], bound: Sequence[Var], mono: Monomial) -> Poly:
    """What `make` makes, the sum of a product; again with more names kept, where too many are opened for it."""
    sums = _sums()
    if sums.account is not None:  # for a sum inside of another
        return make()
    key = tuple((_place(bound, atom), n) for atom, n in mono if isinstance(atom, Read))
    for time in count(1):
        sums.account = account = _Account(sums.kept.get(key, ()))
        try:
            return make()
        except _TooMany:
            sums.kept[key] = account.kept | account.most_opened(time)
        finally:
            sums.account = None
    raise AssertionError("it ends where all names are kept")


def keeps_its_name(bound: Sequence[Var], name: Read) -> bool:
    """Whether a named term that is all of what is summed up is not opened. If it is, that is counted."""
    account = _sums().account
    place = _place(bound, name)
    if account is None or account.keeps(*place):
        return account is not None
    account.note(place)
    return False


@contextmanager
def as_it_is_added_up(body: Poly) -> Iterator[None]:
    """Keep a name that is alone in the sum that is opened meanwhile, as it was kept there."""
    account = _sums().account
    place = _alone(body)
    if account is None or place is None or place in account.kept:
        yield
        return
    account.kept.add(place)
    try:
        yield
    finally:
        account.kept.discard(place)


def _alone(body: Poly) -> Place | None:
    """The named term that is the only factor of a sum, but for conditions."""
    if len(body.items) != 1:
        return None
    factors = [item for item in body.items[0][0] if not isinstance(item[0], Guard)]
    atom, n = factors[0] if len(factors) == 1 else (None, 0)
    is_name = n == 1 and isinstance(atom, Read) and atom.tensor.kind == "term"
    return (atom.tensor, frozenset()) if is_name and isinstance(atom, Read) else None


def _place(bound: Sequence[Var], atom: Read) -> Place:
    over = frozenset(n for n, e in enumerate(atom.indices) if not e.free.isdisjoint(bound))
    return atom.tensor, over
