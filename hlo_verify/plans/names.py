"""The values that a plan names: whether each is made before it is taken, and made once, and taken at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from hlo_verify.plans.kinds import shown, wrong
from hlo_verify.plans.steps import (
    Accumulate,
    Join,
    Names,
    Receive,
    Run,
    Send,
    Step,
    given,
    names,
    said,
    taken,
    transfers,
)

EVERY = "*"
"""In the place of a rank: on each of them."""

_PART = re.compile(r"(.*)\[(\d+)(/|:)(\d+)\]", re.DOTALL)


def bare(name: str) -> str:
    """The name without what part of the value is meant: `x` of `x[2/4]`."""
    found = _PART.fullmatch(name)
    return found[1] if found else name


def is_of(name: str, arguments: Sequence[str]) -> bool:
    """Whether a name is an argument, or a part of one."""
    return bare(name).partition("/")[0] in arguments


def part(name: str, value: Any, slices: Any) -> Any:
    """What a name means of the value of its first word: `params/0/w`, `x[2/4]`. `slices` gives rows `(value, low, high,
    of)` of arrays, from `low` to `high` of so many; all of them where `of` is None."""
    _, *path = bare(name).split("/")
    for word in path:
        value = _inner(name, value, word)
    found = _PART.fullmatch(name)
    if found is None:
        return value
    low, high = int(found[2]), int(found[4])
    return slices(name, value, low, low + 1, high) if found[3] == "/" else slices(name, value, low, high, None)


def _inner(name: str, value: Any, word: str) -> Any:
    if isinstance(value, Mapping) and word in value:
        return value[word]
    if isinstance(value, tuple | list) and word.isdecimal() and int(word) < len(value):
        return value[int(word)]
    if word.isidentifier() and hasattr(value, word):
        return getattr(value, word)
    raise wrong(f"{name}: there is no {word} in it")


def place_of(result: str) -> tuple[str, str | None]:
    """The name and the rank of a result: `y@0`, `y@*`, or `y` where one rank alone has it."""
    name, _, rank = result.partition("@")
    return name, rank or None


def check(arguments: Sequence[str], ranks: Sequence[Sequence[Step]], returns: Names) -> None:
    """Raise `InputError` unless each value is made once on its rank, before it is taken, and is taken by somebody."""
    if not ranks or not any(ranks):
        raise wrong("the plan has no steps: give a list of steps for each rank")
    twice = [name for name, count in Counter(arguments).items() if count > 1]
    if twice:
        raise wrong(f"the plan takes {twice[0]} twice; arguments have names of their own")
    made = [_made(rank, steps, arguments) for rank, steps in enumerate(ranks)]
    used: list[set[str]] = [set() for _ in ranks]
    for rank, steps in enumerate(ranks):
        _check_order(rank, steps, arguments, made, used[rank])
    for result in names(returns):
        for rank in _ranks_of(result, arguments, made):
            used[rank].add(place_of(result)[0])
    _check_channels(ranks)
    for rank, mine in enumerate(made):
        for name, place in mine.items():
            if name not in used[rank]:
                step = ranks[rank][place]
                raise wrong(
                    f"{_where(rank, place)}: nobody takes {name} ({said(step)}); take it, send it, return it, or call "
                    "it _ where it is not needed"
                )


def _made(rank: int, steps: Sequence[Step], arguments: Sequence[str]) -> dict[str, int]:
    """By name, the step that makes a value on a rank."""
    found: dict[str, int] = {}
    for place, step in enumerate(steps):
        if not isinstance(step, Run | Accumulate | Join) and not (
            transfers(step) and all(isinstance(each, Send | Receive) for each in transfers(step))
        ):
            raise wrong(
                f"{_where(rank, place)}: {shown(step)} is no step: Run, Send, Receive, Accumulate or Join, or a "
                "tuple of sends and receives that are posted at once"
            )
        for name in given(step):
            if name in found:
                raise wrong(
                    f"{_where(rank, place)}: {name} is made there already by step {found[name] + 1}; each "
                    "value has a name of its own"
                )
            if is_of(name, arguments):
                raise wrong(f"{_where(rank, place)}: {name} is an argument of the plan; call what is made otherwise")
            if re.search(r"[\[\]/@]", name):
                raise wrong(f"{_where(rank, place)}: what is made cannot be called {name}: names have no /, @ or [")
            found[name] = place
    return found


def _check_order(
    rank: int, steps: Sequence[Step], arguments: Sequence[str], made: Sequence[Mapping[str, int]], used: set[str]
) -> None:
    for place, step in enumerate(steps):
        for name in taken(step):
            word = bare(name).partition("/")[0]
            if word in arguments:
                continue
            if word not in made[rank]:
                raise wrong(f"{_where(rank, place)}: {said(step)}, and {_elsewhere(word, rank, arguments, made)}")
            if made[rank][word] >= place:
                raise wrong(
                    f"{_where(rank, place)}: {said(step)}, and {word} is made by step {made[rank][word] + 1} only"
                )
            used.add(word)


def _elsewhere(word: str, rank: int, arguments: Sequence[str], made: Sequence[Mapping[str, int]]) -> str:
    others = [other for other, mine in enumerate(made) if word in mine]
    if others:
        return f"rank {others[0]} has {word} and rank {rank} has not: send and receive it"
    near = get_close_matches(word, [*arguments, *made[rank]], n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"nobody makes {word}, and it is no argument of the plan ({', '.join(arguments)}){hint}"


def _ranks_of(result: str, arguments: Sequence[str], made: Sequence[Mapping[str, int]]) -> list[int]:
    """The ranks whose value a result is; none of an argument that is handed through."""
    name, rank = place_of(result)
    if rank is None and is_of(name, arguments):
        return []
    having = [other for other, mine in enumerate(made) if name in mine]
    if rank == EVERY:
        lacking = [other for other in range(len(made)) if other not in having]
        if lacking:
            raise wrong(f"the plan returns {result}, and rank {lacking[0]} makes no {name}")
        return having
    if rank is not None:
        if not rank.isdecimal() or int(rank) not in having:
            raise wrong(f"the plan returns {result}: there is no such value; {name} is on {_listed(having)}")
        return [int(rank)]
    if len(having) != 1:
        raise wrong(
            f"the plan returns {name}, which nobody makes"
            if not having
            else f"the plan returns {name}, which is made on {_listed(having)}: {name}@{having[0]} is that of one, "
            f"{name}@* says that all have to be right"
        )
    return having


def _check_channels(ranks: Sequence[Sequence[Step]]) -> None:
    """Raise `InputError` for a send that nobody receives, and a receive of what nobody sends."""
    ends: dict[tuple[int, int, bool], list[tuple[int, int, str]]] = {}
    for rank, steps in enumerate(ranks):
        for place, step in enumerate(steps):
            for each in transfers(step):
                other = each.to if isinstance(each, Send) else each.source
                if not 0 <= other < len(ranks) or other == rank:
                    raise wrong(
                        f"{_where(rank, place)} {each}: "
                        + ("that is itself" if other == rank else f"the ranks are 0 to {len(ranks) - 1}")
                    )
                channel = (rank, other, True) if isinstance(each, Send) else (other, rank, False)
                ends.setdefault(channel, []).append((rank, place, str(each)))
    for (source, target, is_send), mine in ends.items():
        others = ends.get((source, target, not is_send), [])
        if len(mine) > len(others):
            rank, place, text = mine[len(others)]
            lacks = f"rank {target} receives {len(others)} of the {len(mine)} values that rank {source} sends it"
            if not is_send:
                lacks = f"rank {source} sends rank {target} {len(others)} values and not {len(mine)}"
            raise wrong(f"{_where(rank, place)} {text}, and nobody {'receives' if is_send else 'sends'} it: {lacks}")


def _where(rank: int, place: int) -> str:
    return f"rank {rank}, step {place + 1}"


def _listed(ranks: Sequence[int]) -> str:
    return f"ranks {', '.join(map(str, ranks))}" if ranks else "no rank"
