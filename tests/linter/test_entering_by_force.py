"""Programs whose devices branch and loop by their own number: what is said of them against what they do, device by
device, with generators that share nothing with the linter."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from hlo_verify.linter.lint import lint

DEVICES = 4
GROUPINGS = (
    ((0, 1, 2, 3),),
    ((0, 1), (2, 3)),
    ((0, 2), (1, 3)),
    ((0, 3), (1, 2)),
)
KINDS = ("all-reduce", "all-gather")


@dataclass(frozen=True)
class Meet:
    groups: tuple[tuple[int, ...], ...]
    kind: str


@dataclass(frozen=True)
class Choose:
    """By digit `(device >> shift) & mask`: a branch, or of a loop so many turns and `extra`."""

    shift: int
    mask: int
    extra: int
    bodies: tuple[tuple[Meet | Choose, ...], ...]
    is_loop: bool

    def number(self, device: int) -> int:
        return ((device >> self.shift) & self.mask) + self.extra


Program = tuple[Meet | Choose, ...]


def draw(random_: random.Random, depth: int = 2, length: int = 3) -> Program:
    found: list[Meet | Choose] = []
    for _ in range(random_.randint(1, length)):
        if depth and random_.random() < 0.5:
            is_loop = random_.random() < 0.35
            shift, mask = random_.choice([(0, 1), (1, 1), (0, 3), (0, 0)])
            count = 1 if is_loop else 2 if mask < 3 else 4
            bodies = tuple(draw(random_, depth - 1, 2) if random_.random() < 0.8 else () for _ in range(count))
            if not is_loop and random_.random() < 0.3:
                bodies = (bodies[0],) * count
            found.append(Choose(shift, mask, random_.choice([0, 0, 1]), bodies, is_loop))
        else:
            found.append(Meet(random_.choice(GROUPINGS), random_.choice(KINDS)))
    return tuple(found)


def run(program: Program, device: int) -> Iterator[tuple[tuple[int, ...], str]]:
    """What a device comes to, in order."""
    for one in program:
        if isinstance(one, Meet):
            yield next(group for group in one.groups if device in group), one.kind
        elif one.is_loop:
            for _ in range(one.number(device)):
                yield from run(one.bodies[0], device)
        else:
            yield from run(one.bodies[min(one.number(device), len(one.bodies) - 1)], device)


def finishes(program: Program) -> bool:
    """Whether all devices come to their end: a group goes on together when all of it stand at the same."""
    devices = [run(program, device) for device in range(DEVICES)]
    standing = [next(device, None) for device in devices]
    while any(standing):
        ready = [
            group for group in {one[0] for one in standing if one} if len({standing[device] for device in group}) == 1
        ]
        if not ready:
            return False
        for device in ready[0]:
            standing[device] = next(devices[device], None)
    return True


@dataclass
class Text:
    """Write a program as HLO."""

    computations: list[str] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def body(self, program: Program, start: str) -> tuple[list[str], str]:
        lines: list[str] = []
        for one in program:
            name = self.name()
            if isinstance(one, Meet):
                groups = "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in one.groups) + "}"
                said = f"channel_id=1, use_global_device_ids=true, replica_groups={groups}"
                if one.kind == "all-reduce":
                    lines.append(f"{name} = f32[8] all-reduce({start}), to_apply=add, {said}")
                    start = name
                else:
                    size = 8 * len(one.groups[0])
                    lines.append(f"{name}g = f32[{size}] all-gather({start}), dimensions={{0}}, {said}")
                    lines.append(f"{name} = f32[8] slice({name}g), slice={{[0:8]}}")
                    start = name
                continue
            lines += [
                f"{name}i = u32[] partition-id()",
                f"{name}a = u32[] constant({one.shift})",
                f"{name}b = u32[] shift-right-logical({name}i, {name}a)",
                f"{name}c = u32[] constant({one.mask})",
                f"{name}d = u32[] and({name}b, {name}c)",
                f"{name}e = s32[] convert({name}d)",
                f"{name}f = s32[] constant({one.extra})",
                f"{name}n = s32[] add({name}e, {name}f)",
            ]
            lines += self.loop(one, name, start) if one.is_loop else self.branch(one, name, start)
            start = name
        return lines, start

    def computation(self, program: Program) -> str:
        name = self.name()
        lines, last = self.body(program, f"{name}p")
        self.write(name, [f"{name}p = f32[8] parameter(0)", *lines, f"ROOT {name}r = f32[8] copy({last})"])
        return name

    def branch(self, one: Choose, name: str, start: str) -> list[str]:
        names = [self.computation(body) for body in one.bodies]
        given = ", ".join([f"{name}n", *[start] * len(names)])
        return [f"{name} = f32[8] conditional({given}), branch_computations={{{', '.join(names)}}}"]

    def loop(self, one: Choose, name: str, start: str) -> list[str]:
        shape = "(s32[], s32[], f32[8])"
        parts = [
            f"{name}%q = {shape} parameter(0)",
            f"{name}%k = s32[] get-tuple-element({name}%q), index=0",
            f"{name}%l = s32[] get-tuple-element({name}%q), index=1",
        ]
        condition = [line.replace("%", "x") for line in parts]
        self.write(f"{name}c0", [*condition, f"ROOT {name}xg = pred[] compare({name}xk, {name}xl), direction=LT"])
        lines, last = self.body(one.bodies[0], f"{name}yx")
        self.write(
            f"{name}b0",
            [
                *(line.replace("%", "y") for line in parts),
                f"{name}yx = f32[8] get-tuple-element({name}yq), index=2",
                f"{name}yo = s32[] constant(1)",
                f"{name}ym = s32[] add({name}yk, {name}yo)",
                *lines,
                f"ROOT {name}yt = {shape} tuple({name}ym, {name}yl, {last})",
            ],
        )
        return [
            f"{name}z = s32[] constant(0)",
            f"{name}t = {shape} tuple({name}z, {name}n, {start})",
            f"{name}w = {shape} while({name}t), condition={name}c0, body={name}b0",
            f"{name} = f32[8] get-tuple-element({name}w), index=2",
        ]

    def write(self, name: str, lines: list[str]) -> None:
        self.computations.append(f"{name} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n")

    def module(self, program: Program) -> str:
        lines, last = self.body(program, "x")
        add = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
        entry = ["x = f32[8] parameter(0)", *lines, f"ROOT r = f32[8] copy({last})"]
        main = "ENTRY e {\n" + "".join(f"  {line}\n" for line in entry) + "}\n"
        return f"HloModule m, num_partitions={DEVICES}\n{add}{''.join(self.computations)}{main}"


SHARDINGS = '{"in": ["{replicated}"]}'


def judge(seed: int) -> tuple[bool, set[str]]:
    """Whether a program finishes, and the severities of what is said of it."""
    program = draw(random.Random(seed))
    findings = lint(Text().module(program), shardings=SHARDINGS).findings
    return finishes(program), {one.severity.value for one in findings}


def test_errors_are_said_of_programs_that_hang_and_of_no_others() -> None:
    counts = {True: 0, False: 0}
    for seed in range(250):
        is_right, said = judge(seed)
        counts[is_right] += 1
        assert ("error" in said) is not is_right, seed
    assert min(counts.values()) > 50
