"""Published schedules have what their papers say: nothing wrong, their bubbles, what their ranks keep."""

from __future__ import annotations

import pytest

from hlo_verify.schedules import (
    Kind,
    Schedule,
    check,
    draw,
    dualpipe,
    gpipe,
    interleaved_1f1b,
    one_f_one_b,
    parse,
    run,
    with_transfers,
    zb_h1,
)

SIZES = [(1, 1), (1, 4), (2, 1), (2, 6), (4, 2), (4, 4), (4, 12), (5, 10)]
ALL = {
    **{f"gpipe {p} {m}": gpipe(p, m) for p, m in SIZES},
    **{f"1f1b {p} {m}": one_f_one_b(p, m) for p, m in SIZES},
    **{f"zb_h1 {p} {m}": zb_h1(p, m) for p, m in SIZES},
    **{
        f"interleaved {p} {m} {v}": interleaved_1f1b(p, m, v)
        for p, m, v in [(2, 2, 2), (4, 8, 2), (4, 12, 3), (1, 3, 2)]
    },
    **{f"dualpipe {p} {m}": dualpipe(p, m) for p, m in [(2, 4), (4, 8), (4, 14), (8, 20)]},
}


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_wrong(name: str) -> None:
    schedule = ALL[name]
    assert check(schedule) == []
    full = with_transfers(schedule)
    assert check(full) == check(full, buffered=True) == []
    assert parse(str(full)) == full
    assert "waits forever" not in draw(schedule)


@pytest.mark.parametrize(("stages", "microbatches"), SIZES)
def test_bubbles_and_memory(stages: int, microbatches: int) -> None:
    """Times of 1 for a forward and 2 for a backward. Megatron-LM (SC 2021), section 2.2: (p-1)(F+B); Zero Bubble (ICLR
    2024), table 2: (p-1)(F+B-2W) where B counts both parts."""
    for schedule in (gpipe(stages, microbatches), one_f_one_b(stages, microbatches)):
        timeline = run(schedule)
        assert timeline is not None and timeline.idle == ((stages - 1) * 3,) * stages
    flushed, all_kept = run(one_f_one_b(stages, microbatches)), run(gpipe(stages, microbatches))
    assert flushed is not None and all_kept is not None
    assert flushed.stored == tuple(min(stages - rank, microbatches) for rank in range(stages))
    assert all_kept.stored == (microbatches,) * stages
    if microbatches >= 2 * stages:
        timeline = run(zb_h1(stages, microbatches))
        assert timeline is not None
        assert timeline.idle == (stages - 1,) * stages
        assert max(timeline.stored) == stages  # as 1F1B's first rank


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_chunks_divide_the_bubble(chunks: int) -> None:
    """Megatron-LM (SC 2021), section 2.2.2: the bubble is that of 1F1B over the number of chunks. A chunk's forward
    takes 1 here, so a rank's takes as many."""
    timeline = run(interleaved_1f1b(4, 12, chunks))
    assert timeline is not None and timeline.idle == ((4 - 1) * 3,) * 4
    if chunks == 1:
        assert interleaved_1f1b(4, 12, 1).stages == 4


def test_one_chunk_warms_up_longer_than_1f1b() -> None:
    assert interleaved_1f1b(1, 3, 1) == one_f_one_b(1, 3)


@pytest.mark.parametrize(("ranks", "microbatches"), [(2, 4), (4, 8), (8, 20), (8, 16)])
def test_dualpipe_keeps_one_more_than_there_are_ranks(ranks: int, microbatches: int) -> None:
    """github.com/deepseek-ai/DualPipe: activations of PP + 1 microbatches on a device; two stages on each."""
    schedule = dualpipe(ranks, microbatches)
    timeline = run(schedule)
    assert timeline is not None and max(timeline.kept) <= ranks + 1
    held = [{action.stage for _, action in mine} for mine in timeline.ranks]
    assert held == [{rank, ranks - 1 - rank} for rank in range(ranks)]


def test_receives_just_before_they_are_needed() -> None:
    """Megatron-LM's 1F1B posts a send and a receive at once and goes through; DualPipe and chunks need more."""
    assert check(with_transfers(one_f_one_b(4, 8), late=True)) == []
    chunks = with_transfers(interleaved_1f1b(4, 8, 2), late=True)
    assert [one.code.name for one in check(chunks)] == ["SCHEDULE_DEADLOCK"]
    assert check(chunks, buffered=True) == []
    assert {one.code.name for one in check(with_transfers(dualpipe(8, 20), late=True))} == {"SCHEDULE_TRANSFER"}


def test_without_joining_1f1b_hangs() -> None:
    joined = with_transfers(one_f_one_b(4, 8), late=True)
    apart = Schedule(tuple(tuple((one,) for step in steps for one in step) for steps in joined.ranks))
    [fault] = check(apart)
    assert fault.code.name == "SCHEDULE_DEADLOCK"
    assert "rank 2 waits in 2SEND_F1; rank 3 waits in 3SEND_B0" in fault.message
    assert check(apart, buffered=True) == []


@pytest.mark.parametrize("make", [lambda: interleaved_1f1b(4, 6, 2), lambda: dualpipe(3, 12), lambda: dualpipe(4, 6)])
def test_sizes_that_a_schedule_does_not_have(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match="microbatches"):
        make()


def test_other_times() -> None:
    times = {Kind.FORWARD: 2, Kind.BACKWARD: 3}
    timeline = run(one_f_one_b(3, 6), times)
    assert timeline is not None and timeline.idle == (2 * 5,) * 3
