"""Published schedules: what each rank computes, in order. `transfers` adds sends and receives."""

from __future__ import annotations

from collections import deque

from hlo_verify.schedules.schedule import Action, Kind, Schedule, of

F, B, INPUT, WEIGHT = Kind.FORWARD, Kind.BACKWARD, Kind.BACKWARD_INPUT, Kind.BACKWARD_WEIGHT


def gpipe(stages: int, microbatches: int) -> Schedule:
    """All forwards, then all backwards, the last one first: Huang et al., GPipe, NeurIPS 2019, figure 2c."""
    order = range(microbatches)
    return of([[Action(r, F, m) for m in order] + [Action(r, B, m) for m in reversed(order)] for r in range(stages)])


def one_f_one_b(stages: int, microbatches: int) -> Schedule:
    """As many forwards as there are stages behind, then a forward and a backward in turn: Narayanan et al., Memory-
    Efficient Pipeline-Parallel DNN Training, ICML 2021 (PipeDream-Flush); Fan et al., DAPPLE, PPoPP 2021."""
    return of([_in_turn(rank, stages, microbatches) for rank in range(stages)])


def _in_turn(stage: int, stages: int, microbatches: int) -> list[Action]:
    ahead = min(stages - stage - 1, microbatches)
    actions = [Action(stage, F, m) for m in range(ahead)]
    for m in range(microbatches - ahead):
        actions += [Action(stage, F, m + ahead), Action(stage, B, m)]
    return actions + [Action(stage, B, m) for m in range(microbatches - ahead, microbatches)]


def interleaved_1f1b(ranks: int, microbatches: int, chunks: int) -> Schedule:
    """Each rank holds `chunks` stages, `ranks` apart, and goes through as many microbatches as there are ranks on each
    in turn: Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, SC 2021,
    section 2.2.2. The microbatches are a multiple of the ranks. Raises ValueError."""
    if microbatches % ranks:
        raise ValueError(f"{microbatches} microbatches are no multiple of {ranks} ranks")
    total = microbatches * chunks

    def action(rank: int, number: int, kind: Kind) -> Action:
        turn, within = divmod(number, ranks * chunks)
        chunk = within // ranks if kind is F else chunks - 1 - within // ranks
        return Action(chunk * ranks + rank, kind, turn * ranks + within % ranks)

    found = []
    for rank in range(ranks):
        ahead = min((ranks - rank - 1) * 2 + (chunks - 1) * ranks, total)
        actions = [action(rank, number, F) for number in range(ahead)]
        for number in range(total - ahead):
            actions += [action(rank, number + ahead, F), action(rank, number, B)]
        found.append(actions + [action(rank, number, B) for number in range(total - ahead, total)])
    return of(found)


def zb_h1(stages: int, microbatches: int) -> Schedule:
    """1F1B with the backward for weights apart, and later by as many microbatches as there are stages in front, so that
    all ranks keep as many microbatches as the first: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section
    2.1 (ZB-H1)."""
    found = []
    for rank in range(stages):
        behind = 0
        actions: list[Action] = []
        for action in _in_turn(rank, stages, microbatches):
            if action.kind is F:
                actions.append(action)
                continue
            actions.append(Action(rank, INPUT, action.microbatch))
            if action.microbatch >= rank:
                actions.append(Action(rank, WEIGHT, behind))
                behind += 1
        found.append(actions + [Action(rank, WEIGHT, m) for m in range(behind, microbatches)])
    return of(found)


def dualpipe(ranks: int, microbatches: int) -> Schedule:
    """Microbatches from both ends: the first half goes from rank 0 up, the second from the last rank down, and each
    rank holds a stage of either way. DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.2.1 (figure 5), with
    the eight phases of github.com/deepseek-ai/DualPipe. What is overlapped there stands one behind the other here.

    An even number of ranks, and at least two microbatches a rank, an even number. Raises ValueError."""
    if ranks % 2 or microbatches % 2 or microbatches < 2 * ranks:
        raise ValueError("DualPipe takes an even number of ranks, and of microbatches, two a rank or more")
    return of([_DualPipe(rank, ranks, microbatches).actions() for rank in range(ranks)])


class _DualPipe:
    """One rank. Way 0 is that of the microbatches whose first stage is nearer, way 1 the other."""

    def __init__(self, rank: int, ranks: int, microbatches: int) -> None:
        self.rank, self.ranks, self.half = rank, ranks, microbatches // 2
        self.done: list[Action] = []
        self.left: deque[Action] = deque()
        self.counts = {(kind, way): 0 for kind in (F, B) for way in (0, 1)}

    def run(self, kind: Kind, way: int, *, apart: bool = False) -> None:
        """The next forward or backward of a way; `apart`: of the inputs alone, and of the weights later."""
        number = self.counts[kind, way]
        self.counts[kind, way] += 1
        is_down = (way == 1) != (self.rank >= self.ranks // 2)
        stage = self.ranks - 1 - self.rank if is_down else self.rank
        microbatch = number + (self.half if is_down else 0)
        self.done.append(Action(stage, INPUT if apart else kind, microbatch))
        if apart:
            self.left.append(Action(stage, WEIGHT, microbatch))

    def weight(self) -> None:
        self.done.append(self.left.popleft())

    def actions(self) -> list[Action]:
        inner = min(self.rank, self.ranks - 1 - self.rank)
        outer = self.ranks // 2 - inner - 1
        for _ in range(2 * outer):
            self.run(F, 0)
        for _ in range(inner + 1):
            self.run(F, 0)
            self.run(F, 1)
        for _ in range(outer):
            self.run(B, 1, apart=True)
            self.weight()
            self.run(F, 1)
        for _ in range(self.half - self.ranks + inner + 1):
            for way in (0, 1):
                self.run(F, way)
                self.run(B, 1 - way)
        for _ in range(outer):
            self.run(B, 1)
            self.run(F, 1)
            self.run(B, 0)
        self._finish(inner, outer)
        return self.done

    def _finish(self, inner: int, outer: int) -> None:
        """The backwards that are left; from the middle on, the weights apart."""
        apart = False
        for number in range(inner + 1):
            apart = apart or (number == (inner + 1) // 2 and inner % 2 == 1)
            self.run(B, 1, apart=apart)
            apart = apart or (number == (inner + 1) // 2 and inner % 2 == 0)
            self.run(B, 0, apart=apart)
        for _ in range(outer):
            self.weight()
            self.run(B, 0, apart=True)
        for _ in range(inner + 1):
            self.weight()
