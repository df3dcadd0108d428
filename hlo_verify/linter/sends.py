"""Sends and receives: each has another end, of the same shape, and no two wait for each other.

A send of device s to t on a channel meets the receive of t from s on that channel, the first the first. Between devices
the pairs (`_xla_send_recv_source_target_pairs`) say who; transfers of a runtime through the host are matched by their
rendezvous instead. Where no channel has both a send and a receive, channels tell nothing, and the order alone counts. A
done waits until the other end has been posted; a device goes on in the order of its schedule. In a collective it waits
for all that it meets there. What stands in a loop is looked at as to whether there is another end at all: how often it
runs is not known.

Source: docs/operation_semantics.md (Send, Recv), XLA's hlo_verifier.cc.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hlo_verify.diagnostics import Collective, Ranks
from hlo_verify.hlo.groups import COLLECTIVES, Groups, parse_lists
from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.module import HloModule, Instruction, parts
from hlo_verify.hlo.shapes import same
from hlo_verify.linter.course import Courses
from hlo_verify.linter.finding import Finding, at
from hlo_verify.linter.rendezvous import Communicator

RUNTIMES = ("xla_megascale_runtime",)
"""Handlers of host transfers of which both ends are in programs; another's other end is code on the host."""

ENDS = ("send", "recv", "send-done", "recv-done")
_DONES = tuple(f"{one.removesuffix('-start')}-done" for one in sorted(COLLECTIVES) if one.endswith("-start"))


@dataclass(frozen=True, slots=True)
class Program:
    """What some devices run."""

    module: HloModule
    devices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Post:
    """A send or a receive that a device posts: its other end is on `peer`."""

    instruction: Instruction
    device: int
    peer: int
    channel: int | None

    @property
    def is_send(self) -> bool:
        return self.instruction.opcode == "send"

    @property
    def meets(self) -> tuple[int | None, int, int]:
        """The channel, the source and the target: those of its other end."""
        ends = (self.device, self.peer) if self.is_send else (self.peer, self.device)
        return self.channel, *ends


def pairs_of(instruction: Instruction) -> Groups:
    """The sources and targets of a send or a receive."""
    pairs = parse_lists(instruction.frontend("_xla_send_recv_source_target_pairs") or "{}")
    return tuple(pair for pair in pairs or () if len(pair) == 2)


def devices_of(module: HloModule) -> tuple[int, ...]:
    """The devices that run a module: as many as it says, or else those that its sends and receives name."""
    if module.says_devices:
        return tuple(range(max(module.partitions, module.replicas)))
    ends = (one for one in module.instructions() if one.opcode in ("send", "recv"))
    return tuple(sorted({device for end in ends for pair in pairs_of(end) for device in pair}))


def check(module: HloModule) -> Iterator[Finding]:
    """What is wrong with the sends and receives of one program, whoever runs it."""
    ends = [one for one in module.instructions() if one.opcode in ("send", "recv")]
    for end in ends:
        pairs = pairs_of(end)
        for place, what in ((0, "source"), (1, "target")):
            twice = [device for device, times in Counter(pair[place] for pair in pairs).items() if times > 1]
            if twice:
                yield at(end, Ranks.SEND_RECV_ILLEGAL, f"device {min(twice)} is a {what} twice in one {end.opcode}")
    yield from _on_one_channel([end for end in ends if _is_of_host(end)])
    yield from _rendezvous([end for end in ends if end.frontend("_xla_host_transfer_handler_name") in RUNTIMES])


def _is_of_host(end: Instruction) -> bool:
    return end.attributes.get("is_host_transfer") == "true"


def _on_one_channel(ends: list[Instruction]) -> Iterator[Finding]:
    """Transfers through the host that share a channel are the same in everything."""
    first: dict[tuple[str, int | None], Instruction] = {}
    for end in ends:
        other = first.setdefault((end.opcode, end.channel), end)
        said = {one.attributes.get("frontend_attributes", "") for one in (end, other)}
        if other is not end and (len(said) > 1 or not same(end.shape, other.shape)):
            message = f"is on channel {end.channel} like {other}, and not the same transfer"
            yield at(end, Collective.CHANNEL_ILLEGAL, message, other)


def _rendezvous(ends: list[Instruction]) -> Iterator[Finding]:
    """Each rendezvous has both ends."""
    names = {opcode: {_name(end) for end in ends if end.opcode == opcode} for opcode in ("send", "recv")}
    sends = [end for end in ends if end.opcode == "send" and _name(end) not in names["recv"]]
    receives = [end for end in ends if end.opcode == "recv" and _name(end) not in names["send"]]
    for send in sends:
        alike = [one for one in receives if same(parts(one.shape)[0], parts(send.shape)[0])]
        if alike:
            receives.remove(alike[0])
            said = f"goes to the rendezvous {_name(send)!r}, and {alike[0]} waits at {_name(alike[0])!r}"
            yield at(send, Ranks.RENDEZVOUS_MISMATCH, said, alike[0])
        else:
            yield at(send, Ranks.SEND_WITHOUT_RECV, f"nobody receives at the rendezvous {_name(send)!r}")
    for receive in receives:
        yield at(receive, Ranks.RECV_WITHOUT_SEND, f"nobody sends to the rendezvous {_name(receive)!r}")


def _name(end: Instruction) -> str:
    return end.frontend("_xla_host_transfer_rendezvous")


def between(programs: Sequence[Program], *, buffered: bool = False, collectives: bool = True) -> Iterator[Finding]:
    """What is wrong with the sends and receives of all devices together. `buffered`: a send need not wait. Unless
    `collectives` are known to be wrong, devices wait in them too, where all stand in the order of the schedule."""
    events = {program: _events(program.module) for program in programs}
    channels = [{e.channel for found in events.values() for e in found if e.opcode == end} for end in ("send", "recv")]
    by_channel = bool(channels[0] & channels[1])
    schedules = {device: found for program, found in events.items() for device in program.devices}
    posts = [p for device, found in schedules.items() for e in found for p in _posts(e, device, by_channel=by_channel)]
    straight = all(event.computation.is_entry for found in events.values() for event in found)
    faults = list(_without_another_end(posts, counted=straight))
    yield from faults
    if straight and not faults and posts:
        known = collectives and all(_is_straight(program.module) for program in programs)
        turns = {program: _turns(program.module, collectives=known) for program in programs}
        yield from _Running({d: turns[p] for p in programs for d in p.devices}, by_channel, buffered).stuck()


def _is_straight(module: HloModule) -> bool:
    """Whether all collectives of a module stand in its entry."""
    return all(one.computation.is_entry for one in module.instructions() if one.opcode in COLLECTIVES)


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    """What a device comes to: it posts an instruction, or waits for the other ends of what `awaits` has posted."""

    instruction: Instruction
    awaits: tuple[Instruction, ...] = ()
    communicators: Mapping[int, tuple[Communicator, ...]] = field(default_factory=dict)
    """By device, whom a collective that is posted brings together."""


def _turns(module: HloModule, *, collectives: bool) -> list[_Turn]:
    """The turns of a device in the order in which it comes to them."""
    courses = Courses(Meetings(module))
    found = []
    for one in module.in_turn():
        if one.opcode in ENDS and not _is_of_host(one):
            is_done = one.opcode.endswith("-done")
            found.append(_Turn(one, tuple(one.sources) if is_done else ()))
        elif collectives and one.opcode in COLLECTIVES:
            found.append(_Turn(one, (), courses.communicators(one)))
            if not one.opcode.endswith("-start"):
                found.append(_Turn(one, (one,)))
        elif collectives and one.opcode in _DONES:
            found.append(_Turn(one, tuple(each for each in one.sources if each.opcode in COLLECTIVES)))
    return found


def _events(module: HloModule) -> list[Instruction]:
    """Sends, receives and their dones in the order in which a device comes to them."""
    return [one for one in module.in_turn() if one.opcode in ENDS and not _is_of_host(one)]


def _posts(event: Instruction, device: int, *, by_channel: bool) -> Iterator[Post]:
    if event.opcode in ("send", "recv"):
        mine, other = (0, 1) if event.opcode == "send" else (1, 0)
        for pair in pairs_of(event):
            if pair[mine] == device:
                yield Post(event, device, pair[other], event.channel if by_channel else None)


def _without_another_end(posts: Sequence[Post], *, counted: bool) -> Iterator[Finding]:
    """The first end with the first, and so on: those that are left over, or of another shape, are wrong. Where not
    `counted`, one at the other end is enough."""
    sends, receives = _by_ends(posts, send=True), _by_ends(posts, send=False)
    said: set[tuple[str, str]] = set()
    for meets in dict.fromkeys((*sends, *receives)):
        here, there = sends.get(meets, []), receives.get(meets, [])
        _, source, target = meets
        if not counted and here and there:
            continue
        for send, receive in zip(here, there, strict=False):
            data, wanted = parts(send.instruction.shape)[0], parts(receive.instruction.shape)[0]
            if not same(data, wanted):
                message = f"device {source} sends {data} {_on(send)}, and device {target} receives {wanted}"
                yield from _once(said, send, Ranks.SEND_RECV_SHAPE_MISMATCH, message, receive.instruction)
        for send in here[len(there) :]:
            others = _otherwise(posts, send)
            code = Ranks.SEND_RECV_PAIRS_MISMATCH if others else Ranks.SEND_WITHOUT_RECV
            message = f"device {source} sends {_on(send)}, and device {target} does not receive it"
            yield from _once(said, send, code, message, *others)
        for receive in there[len(here) :]:
            others = _otherwise(posts, receive)
            code = Ranks.SEND_RECV_PAIRS_MISMATCH if others else Ranks.RECV_WITHOUT_SEND
            message = f"device {target} receives {_on(receive)}, and device {source} does not send it"
            yield from _once(said, receive, code, message, *others)


def _on(post: Post) -> str:
    return f"on channel {post.instruction.channel}" if post.instruction.channel is not None else "to it"


def _by_ends(posts: Sequence[Post], *, send: bool) -> dict[tuple[int | None, int, int], list[Post]]:
    found: dict[tuple[int | None, int, int], list[Post]] = {}
    for post in posts:
        if post.is_send is send:
            found.setdefault(post.meets, []).append(post)
    return found


def _otherwise(posts: Sequence[Post], post: Post) -> list[Instruction]:
    """The other ends of the same channel in the same program, which name other pairs."""
    module = post.instruction.computation.module
    alike = (
        one.instruction
        for one in posts
        if one.channel == post.channel
        and one.is_send is not post.is_send
        and one.instruction.computation.module is module
        and pairs_of(one.instruction) != pairs_of(post.instruction)
    )
    return list(dict.fromkeys(alike))


def _once(said: set[tuple[str, str]], post: Post, code: Ranks, message: str, *others: Instruction) -> Iterator[Finding]:
    key = post.instruction.computation.module.name, post.instruction.name
    if key not in said:
        said.add(key)
        yield at(post.instruction, code, message, *others)


@dataclass(eq=False)
class _Running:
    """All devices, each as far as it comes."""

    schedules: dict[int, list[_Turn]]
    by_channel: bool
    buffered: bool
    reached: dict[int, int] = field(default_factory=dict)
    posted: dict[tuple[bool, tuple[int | None, int, int]], int] = field(default_factory=lambda: defaultdict(int))
    numbers: dict[tuple[int, str, tuple[int | None, int, int]], int] = field(default_factory=dict)
    arrived: dict[tuple[Communicator, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    """Who has posted the collective of a number on a communicator."""
    joined: dict[int, Counter[Communicator]] = field(default_factory=lambda: defaultdict(Counter))
    meeting: dict[tuple[int, str], list[tuple[Communicator, int]]] = field(default_factory=dict)
    """By device and collective, where it is awaited, and by which number."""

    def stuck(self) -> Iterator[Finding]:
        """Who waits for whom when nobody can go on; nothing if all come to their end."""
        self.reached = dict.fromkeys(self.schedules, 0)
        moved = True
        while moved:
            moved = sum(map(self._go, self.schedules)) > 0  # every device in each round
        waiting = {d: turns[self.reached[d]] for d, turns in self.schedules.items() if self.reached[d] < len(turns)}
        if not waiting:
            return
        chain = self._chain(waiting)
        device = chain[0]
        ahead = zip(chain, [*chain[1:], device], strict=True)
        lines = [f"device {one} waits in {waiting[one].instruction} for device {other}" for one, other in ahead]
        about = (each for one in chain for each in (*waiting[one].awaits, waiting[one].instruction))
        yield at(waiting[device].instruction, Ranks.SEND_RECV_DEADLOCK, "; ".join(lines), *dict.fromkeys(about))

    def _go(self, device: int) -> bool:
        """Let a device go on; whether it did."""
        turns, began = self.schedules[device], self.reached[device]
        while self.reached[device] < len(turns) and not self._waits_for(device, turns[self.reached[device]]):
            turn = turns[self.reached[device]]
            if not turn.awaits:
                self._post(device, turn)
            self.reached[device] += 1
        return self.reached[device] > began

    def _post(self, device: int, turn: _Turn) -> None:
        for post in _posts(turn.instruction, device, by_channel=self.by_channel):
            self.numbers[device, post.instruction.name, post.meets] = self.posted[post.is_send, post.meets]
            self.posted[post.is_send, post.meets] += 1
        for on in turn.communicators.get(device, ()):
            number = self.joined[device][on]
            self.joined[device][on] += 1
            self.arrived[on, number].add(device)
            self.meeting.setdefault((device, turn.instruction.name), []).append((on, number))

    def _waits_for(self, device: int, turn: _Turn) -> list[int]:
        """The devices whose other end a turn still lacks."""
        if self.buffered and turn.instruction.opcode == "send-done":
            return []
        found = []
        for start in turn.awaits:
            for post in _posts(start, device, by_channel=self.by_channel):
                number = self.numbers.get((device, start.name, post.meets))
                if number is not None and self.posted[not post.is_send, post.meets] <= number:
                    found.append(post.peer)
            for on, number in self.meeting.get((device, start.name), ()):
                here = self.arrived[on, number]
                if len(here) < len(on[1]):
                    found += [one for one in on[1] if one not in here and one in self.schedules]
        return found

    def _chain(self, waiting: dict[int, _Turn]) -> list[int]:
        """Devices of which each waits for the next, and the last for the first, where there is such a ring."""
        device, seen = min(waiting), list[int]()
        while device not in seen:
            seen.append(device)
            ahead = [one for one in self._waits_for(device, waiting[device]) if one in waiting]
            if not ahead:
                return seen
            device = ahead[0]
        return seen[seen.index(device) :]
