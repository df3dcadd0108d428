"""What is wrong with a schedule is found where it was made, and deadlocks are those of every order of events."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import hlo_verify
from hlo_verify import cli
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.schedules import Action, Schedule, check, gpipe, one_f_one_b, parse, run, with_transfers, zb_h1
from hlo_verify.schedules.simulate import stuck
from hlo_verify.schedules.transfers import homes
from hlo_verify.schedules.waits import cycle


def names(text: str, *, buffered: bool = False) -> list[str]:
    return [fault.code.name for fault in check(parse(text), buffered=buffered)]


RIGHT = "0F0 0SEND_F0 0RECV_B0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (RIGHT, []),
        ("0F0 0F1\n1F0 1F1", []),  # forward alone
        ("rank 0: 0F0,0I0,0W0 # a comment\n", []),
        ("0F0 0B0 0F1", ["SCHEDULE_INCOMPLETE"]),
        ("0F0 0I0", ["SCHEDULE_INCOMPLETE"]),
        ("0F0 0W0", ["SCHEDULE_INCOMPLETE", "SCHEDULE_ORDER"]),
        ("0F0 0F0 0B0", ["SCHEDULE_REPEATED"]),
        ("0F0 0B0 0B0", ["SCHEDULE_REPEATED"]),
        ("0F0 0B0 0W0", ["SCHEDULE_REPEATED", "SCHEDULE_ORDER"]),
        ("0B0 0F0", ["SCHEDULE_ORDER"]),
        ("0F0 0W0 0I0", ["SCHEDULE_ORDER"]),
        ("1F0 0F0 1B0 0B0", ["SCHEDULE_ORDER"]),
        ("0F0 1F0 0B0 1B0", ["SCHEDULE_ORDER"]),
        (RIGHT.replace("1RECV_F0 1F0", "1F0 1RECV_F0"), ["SCHEDULE_ORDER"]),
        (RIGHT.replace("0F0 0SEND_F0", "0SEND_F0 0F0"), ["SCHEDULE_ORDER"]),
        (RIGHT.replace("0SEND_F0 ", ""), ["SCHEDULE_TRANSFER"]),
        (RIGHT.replace("1RECV_F0 ", ""), ["SCHEDULE_ORDER", "SCHEDULE_TRANSFER"]),
        ("0F0 0F1 0SEND_F0 0SEND_F1\n1RECV_F1 1RECV_F0 1F0 1F1", ["SCHEDULE_TRANSFER"]),
        ("0F0 0SEND_F0", ["SCHEDULE_TRANSFER"]),
        (RIGHT.replace("0SEND_F0 0RECV_B0", "0RECV_B0 0SEND_F0"), ["SCHEDULE_DEADLOCK"]),
        ("0F0 1B0\n1F0 0B0", ["SCHEDULE_APART", "SCHEDULE_APART"]),
        ("0F0 0B0 0U 0F1 0B1 0U", []),
        ("0F0 0F1 0B0 0U 0B1 0U", ["WEIGHTS_VERSION"]),
        ("0F0 0I0 0U 0W0", ["WEIGHTS_VERSION"]),
    ],
)
def test_faults(text: str, wanted: list[str]) -> None:
    assert names(text) == wanted


def test_computations_that_wait_for_each_other() -> None:
    """No transfers are written out: rank 0 wants the second microbatch back first, rank 1 gives the first."""
    text = "0F0 0B0 0F1 0B1\n1F1 1F0 1B0 1B1"
    assert names(text) == ["SCHEDULE_DEADLOCK"]
    with pytest.raises(ValueError, match="wait for each other"):
        with_transfers(parse(text))


@pytest.mark.parametrize("text", ["", "# nothing", "0F", "0X1", "F0", "0F0+0B0", "0U1", "0F0;0F1"])
def test_what_is_no_schedule(text: str) -> None:
    with pytest.raises(InputError):
        parse(text)


def comes_through(schedule: Schedule, *, buffered: bool) -> tuple[bool, bool]:
    """Whether some order of events, and whether every one, brings all ranks to their end: all are gone through.

    A state is, for each rank, how many of its events are over: to post a step, and to be done with it."""
    home = homes(schedule)
    lists = schedule.ranks

    def ends(rank: int, action: Action) -> tuple[int, int]:
        other = home[action.stage + (1 if action.kind in ("SEND_F", "RECV_B") else -1), action.microbatch]
        return (rank, other) if action.kind.is_send else (other, rank)

    def count(state: tuple[int, ...], channel: tuple[int, int], *, sends: bool) -> int:
        rank = channel[0] if sends else channel[1]
        steps = lists[rank][: (state[rank] + 1) // 2]
        return sum(
            1 for s in steps for a in s if a.kind.is_transfer and a.kind.is_send is sends and ends(rank, a) == channel
        )

    def may_go(state: tuple[int, ...], rank: int) -> bool:
        if state[rank] % 2 == 0:
            return state[rank] < 2 * len(lists[rank])
        place = state[rank] // 2
        for action in lists[rank][place]:
            if action.kind.is_transfer and not (buffered and action.kind.is_send):
                channel, is_send = ends(rank, action), action.kind.is_send
                mine = [a for s in lists[rank][: place + 1] for a in s if a.kind.is_transfer]
                mine = [a for a in mine if a.kind.is_send is is_send and ends(rank, a) == channel]
                if count(state, channel, sends=not is_send) <= mine.index(action):
                    return False
        return True

    start = (0,) * len(lists)
    goal = tuple(2 * len(steps) for steps in lists)
    seen, todo, stops = {start}, [start], set()
    while todo:
        state = todo.pop()
        ahead = [(*state[:r], state[r] + 1, *state[r + 1 :]) for r in range(len(lists)) if may_go(state, r)]
        if not ahead:
            stops.add(state)
        for one in ahead:
            if one not in seen:
                seen.add(one)
                todo.append(one)
    return goal in stops, stops == {goal}


def shuffled(seed: int) -> Schedule:
    """A small schedule whose transfers stand at wrong places on some ranks, each once, in the order of its channel or
    not."""
    random_ = random.Random(seed)
    small = [one_f_one_b(2, 2), gpipe(2, 2), one_f_one_b(3, 1), zb_h1(2, 2), one_f_one_b(3, 2)]
    lists = [list(steps) for steps in with_transfers(random_.choice(small), late=random_.random() < 0.5).ranks]
    for _ in range(random_.randint(0, 4)):
        steps = random_.choice(lists)
        place = random_.randrange(len(steps))
        step = steps.pop(place)
        steps.insert(max(0, min(len(steps), place + random_.choice([-3, -2, -1, 1, 2, 3]))), step)
    return Schedule(tuple(map(tuple, lists)))


def test_deadlocks_are_those_of_every_order_of_events() -> None:
    counts = {True: 0, False: 0}
    for seed in range(150):
        schedule = shuffled(seed)
        for buffered in (True, False):
            some, every = comes_through(schedule, buffered=buffered)
            assert some is every, seed  # it does not matter who goes first
            assert (not cycle(schedule, buffered=buffered)) is some, seed
            assert (not stuck(schedule, buffered=buffered)) is some, seed
            counts[some] += 1
    assert min(counts.values()) > 20


def test_what_is_left_out_of_a_schedule_is_missed() -> None:
    """Each action of a right schedule, left out, is one fault at least; so is each that is done twice."""
    schedule = with_transfers(zb_h1(3, 3))
    for rank, steps in enumerate(schedule.ranks):
        for place in range(len(steps)):
            for changed in ((*steps[:place], *steps[place + 1 :]), (*steps[: place + 1], *steps[place:])):
                mutant = Schedule((*schedule.ranks[:rank], changed, *schedule.ranks[rank + 1 :]))
                assert check(mutant), steps[place]


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "schedule.txt"
    path.write_text(str(with_transfers(one_f_one_b(2, 3))))
    assert cli.main(["lint", "--pipeline", str(path)]) == 0
    assert "looked at 2 ranks, 2 stages, 3 microbatches, 24 actions" in capsys.readouterr().out
    path.write_text(RIGHT.replace("0SEND_F0 0RECV_B0", "0RECV_B0 0SEND_F0"))
    assert cli.main(["lint", "--pipeline", str(path)]) == 1
    said = capsys.readouterr().out
    assert "error[HV814] 0RECV_B0: is one of a ring: rank 0 waits in 0RECV_B0; rank 1 waits in 1RECV_F0" in said
    path.write_text("0F0 what")
    assert cli.main(["lint", "--pipeline", str(path)]) == 2
    assert cli.main(["lint", "--pipeline", "--ranks", str(path)]) == 2
    assert cli.main(["lint", "--pipeline", str(path), "--buffers", str(path)]) == 2


def test_in_python() -> None:
    report = hlo_verify.lint_pipeline(one_f_one_b(4, 8))
    assert not report.findings and report.looked_at["microbatches kept at most on a rank"] == 4
    assert [one.name for one in hlo_verify.lint_pipeline("0F0\n0B0\n").findings] == ["schedule_apart"]
    assert run(parse("0F0 1F0")) is not None
