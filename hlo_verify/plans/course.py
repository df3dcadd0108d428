"""Carry out a plan: all ranks go through their steps, and wait for each other at transfers and collectives.

Everything happens in one trace, on one device: a transfer hands a value on, and a collective is written out as what it
means. So what comes of it is one program, which is compared with the reference like any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.plans import names
from hlo_verify.plans.collectives import Meeting, Ranks, met
from hlo_verify.plans.kinds import shown, wrong
from hlo_verify.plans.plan import Plan
from hlo_verify.plans.program import Program
from hlo_verify.plans.steps import (
    NOTHING,
    Accumulate,
    Join,
    Names,
    Receive,
    Run,
    Send,
    Transfer,
    name_of,
    said,
    transfers,
)

Waiting = tuple[Transfer, ...] | Meeting
"""What a rank waits for: transfers that it posted, with the values it sends, or others at a collective."""


def carried_out(plan: Plan, arguments: Mapping[str, Any]) -> Any:
    """What a plan returns for its arguments. Raises `InputError` where ranks wait for each other."""
    course = _Course(plan, arguments)
    course.run()

    def result(name: str) -> Any:
        word, rank = names.place_of(name)
        if rank == names.EVERY:
            return _stacked(name, [each.values[word] for each in course.ranks])
        if rank is None and names.is_of(word, plan.takes):
            return names.part(word, arguments[names.bare(word).partition("/")[0]], _rows)
        return next(
            each.values[word]
            for each in course.ranks
            if word in each.values and (rank is None or int(rank) == each.number)
        )

    return _mapped(result, plan.returns)


def copies(plan: Plan, returned: Any) -> Any:
    """What a reference returns, as many times as the plan returns it."""

    def copied(name: str, value: Any) -> Any:
        if names.place_of(name)[1] != names.EVERY:
            return value
        return jax.tree.map(lambda leaf: jnp.stack([leaf] * len(plan.ranks)), value)

    try:
        return jax.tree.map(copied, plan.returns, returned)
    except ValueError as error:
        raise wrong(f"the plan returns {plan.returns}, and the reference something else: {error}") from error


def _mapped(function: Any, tree: Names) -> Any:
    if isinstance(tree, dict):
        return {key: _mapped(function, part) for key, part in tree.items()}
    if isinstance(tree, tuple | list):
        parts = [_mapped(function, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return function(tree)


def _stacked(name: str, values: list[Any]) -> Any:
    """The values of all ranks, one behind the other."""
    for rank, value in enumerate(values):
        if _types(value) != _types(values[0]):
            first, other = ", ".join(_types(values[0])), ", ".join(_types(value))
            raise wrong(f"the plan returns {name}, which is {first} on rank 0 and {other} on rank {rank}")
    return jax.tree.map(lambda *all_: jnp.stack(all_), *values)


@dataclass(slots=True)
class _Rank:
    """How far a rank is."""

    number: int
    values: dict[str, Any] = field(default_factory=dict)
    place: int = 0
    course: Generator[Waiting, Any, None] | None = None
    waits: Waiting | None = None
    left: int = 0
    """Transfers that it posted and that are not done."""
    done: bool = False


@dataclass(slots=True)
class _Course:
    plan: Plan
    arguments: Mapping[str, Any]
    ranks: list[_Rank] = field(default_factory=list)
    channels: dict[tuple[int, int, bool], deque[tuple[_Rank, Transfer, Any]]] = field(default_factory=dict)

    def run(self) -> None:
        self.ranks = [_Rank(number) for number in range(len(self.plan.ranks))]
        mesh = Ranks(tuple(self.plan.mesh), tuple(self.plan.mesh.values()))
        for rank in self.ranks:
            rank.course = self._steps(rank, mesh)
        moved = True
        while moved:
            moved = False
            for rank in self.ranks:
                while not rank.done and rank.waits is None:
                    self._go_on(rank, None)
                    moved = True
            moved |= self._deliver() or self._meet(mesh)
        if not all(rank.done for rank in self.ranks):
            for others, meetings in self._gathered(mesh):
                if len(meetings) == len(others):
                    met(meetings)  # says that they are different ones
            raise wrong(self._stuck())

    def _go_on(self, rank: _Rank, value: Any) -> None:
        assert rank.course is not None
        rank.waits = None
        try:
            waits = rank.course.send(value)
        except StopIteration:
            rank.done = True
            return
        rank.waits = waits
        if isinstance(waits, Meeting):
            return
        rank.left = 0
        for each in waits:
            is_send = isinstance(each, Send)
            channel = (rank.number, each.to, True) if isinstance(each, Send) else (each.source, rank.number, False)
            value = self._value(rank, each.value) if isinstance(each, Send) else None
            self.channels.setdefault(channel, deque()).append((rank, each, value))
            rank.left += not (is_send and self.plan.buffered_sends)
        if not rank.left:
            rank.waits = None

    def _deliver(self) -> bool:
        """Hand on what was sent and can be received; whether anything was."""
        moved = False
        for (source, target, is_send), sent in list(self.channels.items()):
            receives = self.channels.get((source, target, False))
            while is_send and sent and receives:
                (sender, send, value), (receiver, receive, _) = sent.popleft(), receives.popleft()
                assert isinstance(receive, Receive)
                _check_like(receive, send, value, receiver.number)
                receiver.values[receive.gives] = value
                for rank in (receiver,) if self.plan.buffered_sends else (receiver, sender):
                    rank.left -= 1
                    if not rank.left:
                        rank.waits = None
                moved = True
        return moved

    def _meet(self, mesh: Ranks) -> bool:
        """Let those go on who are at the same collective; whether anybody was. Who waits along other axes, with others,
        is not there yet."""
        for others, meetings in self._gathered(mesh):
            if len(meetings) == len(others) and len({frozenset(meeting.axes) for meeting in meetings}) == 1:
                for other, value in zip(others, met(meetings), strict=True):
                    self._go_on(other, value)
                return True
        return False

    def _gathered(self, mesh: Ranks) -> Iterator[tuple[list[_Rank], list[Meeting]]]:
        """For each rank at a collective, the ranks that it meets there, and the collectives that these are at."""
        for rank in self.ranks:
            if isinstance(rank.waits, Meeting):
                others = [self.ranks[n] for n in mesh.group(rank.number, rank.waits.axes)]
                yield others, [other.waits for other in others if isinstance(other.waits, Meeting)]

    def _stuck(self) -> str:
        lines = []
        for rank in self.ranks:
            if rank.done:
                lines.append(f"rank {rank.number} has ended")
            else:
                waits = rank.waits if isinstance(rank.waits, Meeting) else said(rank.waits or ())
                lines.append(f"rank {rank.number} waits in step {rank.place + 1} ({waits})")
        sends = any(isinstance(each, Send) for r in self.ranks if isinstance(r.waits, tuple) for each in r.waits)
        hint = "; a send waits for its receive: post both at once, as a tuple, or say buffered_sends=True" * sends
        return f"the plan never ends: {'; '.join(lines)}{hint}"

    def _steps(self, rank: _Rank, mesh: Ranks) -> Generator[Waiting, Any, None]:
        for place, step in enumerate(self.plan.ranks[rank.number]):
            rank.place = place
            if transfers(step):
                yield transfers(step)
            elif isinstance(step, Run):
                inputs = [self._value(rank, each) if isinstance(each, str) else each for each in step.inputs]
                with jax.named_scope(f"rank{rank.number}/{name_of(step.function)}"):
                    program = Program(step, f"rank {rank.number}, step {rank.place + 1}: {step}", mesh)
                    returned = program.begin(inputs)
                if mesh.axes:
                    returned = yield from program.through(rank.number)
                _named(step.gives, returned, rank.values, program.called)
            elif isinstance(step, Accumulate | Join):
                rank.values[step.gives] = self._together(step, [self._value(rank, name) for name in step.values])

    def _value(self, rank: _Rank, name: str) -> Any:
        word = names.bare(name).partition("/")[0]
        try:
            return names.part(name, self.arguments[word] if word in self.plan.takes else rank.values[word], _rows)
        except InputError as error:
            raise error.within(f"rank {rank.number}, step {rank.place + 1}") from error

    def _together(self, step: Accumulate | Join, values: list[Any]) -> Any:
        try:
            if isinstance(step, Join):
                return jax.tree.map(lambda *all_: jnp.concatenate(all_, axis=step.axis), *values)
            for value in values[1:]:
                if _types(value) != _types(values[0]):
                    raise ValueError(f"they are {_types(values[0])} and {_types(value)}")
            total = values[0]
            for value in values[1:]:
                total = jax.tree.map(jnp.add, total, value)
            return total if step.how == "sum" else jax.tree.map(lambda leaf: leaf / len(values), total)
        except (ValueError, TypeError) as error:
            raise wrong(f"{step}: they do not go together: {error}") from error


def _named(gives: Names, returned: Any, values: dict[str, Any], called: str) -> None:
    """Give what a program returned its names."""
    if isinstance(gives, str):
        if gives != NOTHING:
            values[gives] = returned
        return
    parts = list(gives.values()) if isinstance(gives, dict) else list(gives)
    if isinstance(gives, dict):
        fits = isinstance(returned, Mapping) and returned.keys() == gives.keys()
        found = [returned[key] for key in gives] if fits else []
    else:
        fits = isinstance(returned, tuple | list) and len(returned) == len(gives)
        found = list(returned) if fits else []
    if not fits:
        shown = f"{len(returned)} values" if isinstance(returned, tuple | list) else f"a {type(returned).__name__}"
        raise wrong(f"{called}: it returns {shown}, and names are given to {len(parts)}: {gives}")
    for part, value in zip(parts, found, strict=True):
        _named(part, value, values, called)


def _rows(name: str, value: Any, low: int, high: int, of: int | None) -> Any:
    """Some rows of each array."""

    def rows(leaf: Any) -> Any:
        size = leaf.shape[0] if getattr(leaf, "ndim", 0) else 0
        if of is not None and (not of or not size or size % of or not 0 <= low < of):
            raise wrong(f"{name}: {size} rows do not make {of} equal parts, of which this is number {low}")
        each = 1 if of is None else size // of
        if not 0 <= low * each < high * each <= size:
            raise wrong(f"{name}: there are {size} rows")
        return leaf[low * each : high * each]

    return jax.tree.map(rows, value)


def _types(value: Any) -> list[str]:
    leaves, tree = jax.tree.flatten(value)
    said_ = [f"{jnp.result_type(leaf)}[{','.join(map(str, jnp.shape(leaf)))}]" for leaf in leaves]
    return said_ if len(leaves) == 1 else [*said_, str(tree)]


def _check_like(receive: Receive, send: Transfer, value: Any, rank: int) -> None:
    if receive.like is None:
        return
    like = _types(_shapes(receive.like))
    try:
        found = _types(_shapes(value))
    except TypeError:  # what is no array, of an argument that was handed on
        found = [shown(value)]
    if found != like:
        raise wrong(
            f"rank {rank} {receive}, which has to be {', '.join(like)}, and what is sent ({send}) is {', '.join(found)}"
        )


def _shapes(tree: Any) -> Any:
    of: Any = jax.ShapeDtypeStruct
    return jax.tree.map(lambda leaf: of(jnp.shape(leaf), jnp.result_type(leaf)), tree)
