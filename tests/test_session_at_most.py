"""What takes more than there was for it ends, between two operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_verify.index.interned import made
from hlo_verify.passes.chain import precondition_search
from hlo_verify.passes.chain.between import Question
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove import prove
from hlo_verify.report import Verdict
from hlo_verify.session import EnoughError, Session

MODULES = [
    load(Path(__file__).resolve().parents[1] / "testdata" / "mlp_2d" / f"{name}.hlo.gz")
    for name in ("logical", "partitioned")
]


def test_no_more_is_done_than_so_much() -> None:
    session, done = Session(), list[int]()
    with pytest.raises(EnoughError), session.at_most(3, lambda: len(done)):
        while len(done) < 10:
            done.append(0)
            session.check()
    assert len(done) == 4
    session.check()  # it is over


def test_what_is_done_is_counted_on_where_terms_are_forgotten() -> None:
    """The count of a session's terms begins anew where its memory does."""
    session, counts = Session(), iter([2, 3, 1, 2, 3])
    with session.at_most(5, lambda: next(counts)):
        for _ in range(4):
            session.check()
        with pytest.raises(EnoughError):
            session.check()


@pytest.mark.parametrize(("outer", "inner"), [(5, 100), (100, 5)])
def test_one_inside_of_another(outer: int, inner: int) -> None:
    session, done = Session(), 0
    with session.at_most(outer, lambda: done):
        with pytest.raises(EnoughError), session.at_most(inner, lambda: done):
            done = 6
            session.check()
        done = 0 if outer == 100 else 6
        if outer == 5:  # the outer one still holds
            with pytest.raises(EnoughError):
                session.check()
    session.check()


def test_a_walk_ends_that_makes_more_terms_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def counted() -> int:
        counts.append(made())
        return counts[-1]

    monkeypatch.setattr(prove, "made", counted)
    assert prove.prove_at_once(*MODULES, session=Session(), most=1e9).verdict is Verdict.PROVED
    terms = max(counts)
    assert prove.prove_at_once(*MODULES, session=Session(), most=terms).verdict is Verdict.PROVED
    for most in (terms // 2, 0):
        counts.clear()
        with pytest.raises(EnoughError):
            prove.prove_at_once(*MODULES, session=Session(), most=most)
        assert max(counts) < most + terms / 4  # between two operations


def test_nothing_is_said_of_a_precondition_that_takes_too_much() -> None:
    """Neither that results are proved under it, nor anything of the question itself."""
    question = Question(MODULES[0], MODULES[1])
    session = Session()
    assert precondition_search._proved(question, session, 10.0, by_construction=True) == set()
    proved = precondition_search._proved(question, session, 1e9, by_construction=True)
    assert proved == set(range(len(MODULES[0].main.results)))
    session.check()
