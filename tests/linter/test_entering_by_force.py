"""Programs whose devices branch and loop by their own number, and branch by their data: what is said of them against
what they do for every way in which data can make them choose, device by device, with code that shares nothing with the
linter."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hlo_verify.linter.lint import lint

DEVICES = 4
GROUPINGS = (((0, 1, 2, 3),), ((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)))
KINDS = ("all-reduce", "all-gather")
TRIPLE = "(f32[8], f32[8], f32[8])"

SPLIT, BY_ROW, COPIES = "{devices=[4]<=[4]}", "{devices=[2,2]<=[4] last_tile_dim_replicate}", "{replicated}"
GLOBAL = "channel_id=1, use_global_device_ids=true, replica_groups="


@dataclass(frozen=True)
class Data:
    """An argument that devices branch on: how it lies, what is done to it first, and who surely has the same then."""

    sharding: str
    line: str
    labels: tuple[int, ...]


DATA = (
    Data(SPLIT, "copy(IN)", (0, 1, 2, 3)),
    Data(SPLIT, f"all-reduce(IN), to_apply=add, {GLOBAL}{{{{0,1}},{{2,3}}}}", (0, 0, 1, 1)),
    Data(SPLIT, f"all-reduce(IN), to_apply=add, {GLOBAL}{{{{0,2}},{{1,3}}}}", (0, 1, 0, 1)),
    Data(SPLIT, f"all-reduce(IN), to_apply=add, {GLOBAL}{{{{0,1,2,3}}}}", (0, 0, 0, 0)),
    Data(SPLIT, "collective-permute(IN), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}", (0, 1, 2, 3)),
    Data(BY_ROW, "copy(IN)", (0, 0, 1, 1)),
    Data(COPIES, "copy(IN)", (0, 0, 0, 0)),
)


@dataclass(frozen=True)
class Meet:
    groups: tuple[tuple[int, ...], ...]
    kind: str


@dataclass(frozen=True)
class Choose:
    """By the digit `(device >> shift) & mask`, and `extra`: a branch, or of a loop so many turns. Or by argument
    `data`: a branch of two."""

    bodies: tuple[tuple[Meet | Choose, ...], ...]
    is_loop: bool = False
    shift: int = 0
    mask: int = 0
    extra: int = 0
    data: int = -1


Program = tuple[Meet | Choose, ...]
Meeting = tuple[tuple[int, ...], str]
Outcome = Mapping[tuple[int, int], int]
"""By argument and label, the branch that its data lead to."""


@dataclass
class Drawn:
    """A program, and what it branches on."""

    random: random.Random
    arguments: list[Data] = field(default_factory=list)

    def program(self, *, data: bool, depth: int = 2, length: int = 3) -> Program:
        return tuple(self._one(data, depth) for _ in range(self.random.randint(1, length)))

    def _one(self, data: bool, depth: int) -> Meet | Choose:
        draw = self.random
        if not depth or draw.random() < 0.5:
            return Meet(draw.choice(GROUPINGS), draw.choice(KINDS))
        if data and len(self.arguments) < 2 and draw.random() < 0.6:
            self.arguments.append(draw.choice(DATA))
            number = len(self.arguments) - 1
            return Choose(self._bodies(data, depth, 2), data=number)
        is_loop = draw.random() < 0.35
        shift, mask = draw.choice([(0, 1), (1, 1), (0, 3), (0, 0)])
        count = 1 if is_loop else 2 if mask < 3 else 4
        return Choose(self._bodies(data, depth, count), is_loop, shift, mask, draw.choice([0, 0, 1]))

    def _bodies(self, data: bool, depth: int, count: int) -> tuple[Program, ...]:
        filled = (self.random.random() < 0.8 for _ in range(count))
        found = tuple(self.program(data=data, depth=depth - 1, length=2) if one else () for one in filled)
        return found if self.random.random() < 0.7 else (found[0],) * count


def run(
    program: Program, device: int, outcome: Outcome, arguments: list[Data]
) -> Iterator[tuple[tuple[int, ...], str]]:
    """What a device comes to, in order."""
    for one in program:
        if isinstance(one, Meet):
            yield next(group for group in one.groups if device in group), one.kind
            continue
        number = ((device >> one.shift) & one.mask) + one.extra
        if one.data >= 0:
            number = outcome[one.data, arguments[one.data].labels[device]]
        bodies = one.bodies * number if one.is_loop else [one.bodies[min(number, len(one.bodies) - 1)]]
        for body in bodies:
            yield from run(body, device, outcome, arguments)


def finishes(program: Program, outcome: Outcome, arguments: list[Data]) -> bool:
    """Whether all devices come to their end: a group goes on together when all of it stand at the same."""
    devices = [run(program, device, outcome, arguments) for device in range(DEVICES)]
    standing = [next(device, None) for device in devices]
    while any(standing):
        groups = {one[0] for one in standing if one}
        ready = [group for group in groups if len({standing[device] for device in group}) == 1]
        if not ready:
            return False
        for device in ready[0]:
            standing[device] = next(devices[device], None)
    return True


@dataclass
class Text:
    """Write a program as HLO: what it computes on, and what it branches on, go through it as a tuple."""

    computations: list[str] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def parts(self, name: str) -> list[str]:
        return [f"{name}{n} = f32[8] get-tuple-element({name}), index={n}" for n in range(3)]

    def body(self, program: Program, given: str) -> list[str]:
        lines: list[str] = []
        for one in program:
            name = self.name()
            if isinstance(one, Meet):
                groups = "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in one.groups) + "}"
                size = 8 if one.kind == "all-reduce" else 8 * len(one.groups[0])
                how = "to_apply=add" if one.kind == "all-reduce" else "dimensions={0}"
                lines.append(f"{name} = f32[{size}] {one.kind}({given}0), {how}, {GLOBAL}{groups}")
            elif one.data >= 0:
                lines += [
                    f"{name}z = f32[] constant(0)",
                    f"{name}t = f32[] reduce({given}{one.data + 1}, {name}z), dimensions={{0}}, to_apply=add",
                    f"{name}p = pred[] compare({name}t, {name}z), direction=LE",
                    f"{name}n = s32[] convert({name}p)",
                    self.branch(one, name, given),
                ]
            else:
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
                lines += self.loop(one, name, given) if one.is_loop else [self.branch(one, name, given)]
        return lines

    def branch(self, one: Choose, name: str, given: str) -> str:
        names = [self.computation(body) for body in one.bodies]
        operands = ", ".join([f"{name}n", *[given] * len(names)])
        return f"{name} = {TRIPLE} conditional({operands}), branch_computations={{{', '.join(names)}}}"

    def computation(self, program: Program) -> str:
        name = self.name()
        given = f"{name}p"
        lines = [f"{given} = {TRIPLE} parameter(0)", *self.parts(given), *self.body(program, given)]
        return self.write(name, [*lines, f"ROOT {name}r = {TRIPLE} tuple({given}0, {given}1, {given}2)"])

    def loop(self, one: Choose, name: str, given: str) -> list[str]:
        shape = f"(s32[], s32[], {TRIPLE})"
        parts = [
            f"{name}%q = {shape} parameter(0)",
            f"{name}%k = s32[] get-tuple-element({name}%q), index=0",
            f"{name}%l = s32[] get-tuple-element({name}%q), index=1",
        ]
        condition = [line.replace("%", "x") for line in parts]
        self.write(f"{name}c0", [*condition, f"ROOT {name}xg = pred[] compare({name}xk, {name}xl), direction=LT"])
        inner = self.name()
        body = [
            *(line.replace("%", "y") for line in parts),
            f"{inner} = {TRIPLE} get-tuple-element({name}yq), index=2",
            *self.parts(inner),
            f"{name}yo = s32[] constant(1)",
            f"{name}ym = s32[] add({name}yk, {name}yo)",
            *self.body(one.bodies[0], inner),
        ]
        self.write(f"{name}b0", [*body, f"ROOT {name}yt = {shape} tuple({name}ym, {name}yl, {inner})"])
        return [
            f"{name}z = s32[] constant(0)",
            f"{name}t = {shape} tuple({name}z, {name}n, {given})",
            f"{name} = {shape} while({name}t), condition={name}c0, body={name}b0",
        ]

    def write(self, name: str, lines: list[str], before: str = "") -> str:
        self.computations.append(f"{before}{name} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n")
        return name

    def module(self, program: Program, arguments: list[Data]) -> str:
        add = ["a = f32[] parameter(0)", "b = f32[] parameter(1)", "ROOT s = f32[] add(a, b)"]
        self.write("add", add)
        entry = [f"in{n} = f32[8] parameter({n})" for n in range(3)]
        filled = [*arguments, *[DATA[-1]] * (2 - len(arguments))]
        entry += [f"m{n + 1} = f32[8] {one.line.replace('IN', f'in{n + 1}')}" for n, one in enumerate(filled)]
        entry += [f"x = {TRIPLE} tuple(in0, m1, m2)", *self.parts("x"), *self.body(program, "x")]
        self.write("e", [*entry, "ROOT r = f32[8] copy(x0)"], "ENTRY ")
        return f"HloModule m, num_partitions={DEVICES}\n" + "".join(self.computations)


def judge(seed: int, *, data: bool) -> tuple[set[bool], str]:
    """Whether a program finishes, over all ways in which data lead, and the worst that is said of it."""
    drawn = Drawn(random.Random(seed))
    program = drawn.program(data=data)
    arguments = drawn.arguments
    shardings = [COPIES, *(one.sharding for one in arguments), *[COPIES] * (2 - len(arguments))]
    findings = lint(Text().module(program, arguments), shardings=json.dumps({"in": shardings})).findings
    keys = sorted({(number, label) for number, one in enumerate(arguments) for label in one.labels})
    outcomes = (dict(zip(keys, ways, strict=True)) for ways in itertools.product((0, 1), repeat=len(keys)))
    found = {finishes(program, outcome, arguments) for outcome in outcomes}
    return found, min((one.severity.value for one in findings if not one.code.startswith("HV5")), default="nothing")


def test_by_number_errors_are_said_of_what_hangs_and_of_nothing_else() -> None:
    counts: Counter[bool] = Counter()
    for seed in range(150):
        [is_right], said = judge(seed, data=False)
        counts[is_right] += 1
        assert (said == "error") is not is_right, seed
    assert min(counts.values()) > 30


def test_by_data_errors_are_said_of_what_may_hang_and_something_of_all_that_may() -> None:
    counts: Counter[tuple[bool, str]] = Counter()
    for seed in range(150):
        found, said = judge(seed, data=True)
        counts[False in found, said] += 1
        assert said != "error" or False in found, seed
        assert said != "nothing" or found == {True}, seed
    assert counts[True, "error"] > 30 and counts[False, "nothing"] > 30
