"""What is known of values, against numbers: random programs, run on all devices."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from hlo_verify.hlo.meetings import Meetings
from hlo_verify.hlo.module import Instruction
from hlo_verify.hlo.text import parse_hlo
from hlo_verify.linter.placement.devices import Devices
from hlo_verify.linter.placement.elementwise import Place
from hlo_verify.linter.placement.parameters import arguments
from hlo_verify.linter.placement.values import Tree, Value
from hlo_verify.linter.placement.walk import Walk

Numbers = npt.NDArray[np.float64]
"""A value of all devices, which stand in front."""

GROUPS = {"rows": ((0, 1), (2, 3)), "columns": ((0, 2), (1, 3)), "all": ((0, 1, 2, 3),)}
PERMUTES = (((0, 1), (1, 0), (2, 3), (3, 2)), ((0, 2), (2, 0)), ((0, 1), (1, 2), (2, 3), (3, 0)))
PLACES = {
    "replicated": ("{replicated}", (0, 0, 0, 0)),
    "split": ("{devices=[4,1]<=[4]}", (0, 1, 2, 3)),
    "by row": ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", (0, 0, 1, 1)),
    "by column": ("{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}", (0, 1, 0, 1)),
}


class Program:
    """A random program of 4×4 matrices, its text, and what each device computes."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.numbers = np.random.default_rng(chance.randrange(1 << 30))
        self.lines: list[str] = []
        self.values: dict[str, Numbers] = {}
        self.shardings: list[str] = []
        for number in range(3):
            text, places = PLACES[chance.choice(list(PLACES))]
            blocks = self.numbers.normal(size=(4, 4, 4))
            self.shardings.append(text)
            self._add(f"f32[4,4] parameter({number})", np.stack([blocks[place] for place in places]))
        for _ in range(chance.randrange(4, 14)):
            chance.choice([self.binary, self.unary, self.move, self.reduce, self.permute, self.choose, self.cut])()
        self.text = (
            "HloModule m, num_partitions=4\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
            "  ROOT s = f32[] add(a, b)\n}\nENTRY e {\n  id = u32[] partition-id()\n  one = u32[] constant(1)\n"
            "  low = u32[] and(id, one)\n  zero = f32[] constant(0)\n"
            "  zeros = f32[4,4] broadcast(zero), dimensions={}\n"
            "  nought = u32[] constant(0)\n" + "".join(f"  {line}\n" for line in self.lines) + "}\n"
        )

    def _add(self, text: str, value: Numbers) -> None:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.values[name] = value

    def _any(self) -> str:
        return self.chance.choice([name for name, value in self.values.items() if value.shape == (4, 4, 4)])

    def binary(self) -> None:
        opcode, rule = self.chance.choice([("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply)])
        a, b = self._any(), self._any()
        self._add(f"f32[4,4] {opcode}({a}, {b})", rule(self.values[a], self.values[b]))
        if self.chance.random() < 0.4:
            a, b = self._any(), self._any()
            text = f"f32[4,4] dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
            self._add(text, self.values[a] @ self.values[b])

    def unary(self) -> None:
        a = self._any()
        opcode, rule = self.chance.choice([("tanh", np.tanh), ("negate", np.negative)])
        self._add(f"f32[4,4] {opcode}({a})", rule(self.values[a]))

    def move(self) -> None:
        """A gathered value is cut to the shape that all have."""
        a = self._any()
        groups = GROUPS[self.chance.choice(list(GROUPS))]
        size = len(groups[0])
        said = f"channel_id=1, use_global_device_ids=true, replica_groups={spelled(groups)}"
        gathered = np.empty((4, 4 * size, 4))
        for group in groups:
            gathered[list(group)] = np.concatenate([self.values[a][device] for device in group])
        self._add(f"f32[{4 * size},4] all-gather({a}), dimensions={{0}}, {said}", gathered)
        whole = f"v{len(self.lines) - 1}"
        if self.chance.random() < 0.5:
            self._add(f"f32[4,4] slice({whole}), slice={{[0:4], [0:4]}}", gathered[:, :4])
            return
        self.lines.append(f"w{len(self.lines)} = u32[] multiply(low, one)")
        low = self.lines[-1].split()[0]
        self._add(
            f"f32[4,4] dynamic-slice({whole}, {low}, nought), dynamic_slice_sizes={{4,4}}",
            np.stack([gathered[device, device % 2 : device % 2 + 4] for device in range(4)]),
        )

    def reduce(self) -> None:
        a = self._any()
        groups = GROUPS[self.chance.choice(list(GROUPS))]
        said = f"channel_id=1, use_global_device_ids=true, replica_groups={spelled(groups)}, to_apply=add"
        total = np.empty((4, 4, 4))
        for group in groups:
            total[list(group)] = self.values[a][list(group)].sum(axis=0)
        self._add(f"f32[4,4] all-reduce({a}), {said}", total)

    def permute(self) -> None:
        a = self._any()
        pairs = self.chance.choice(
            [((0, 1), (1, 0), (2, 3), (3, 2)), ((0, 2), (2, 0)), ((0, 1), (1, 2), (2, 3), (3, 0))]
        )
        moved = np.zeros((4, 4, 4))
        for source, target in pairs:
            moved[target] = self.values[a][source]
        self._add(f"f32[4,4] collective-permute({a}), channel_id=1, source_target_pairs={spelled(pairs)}", moved)

    def choose(self) -> None:
        a, b = self._any(), self.chance.choice([self._any(), "zeros"])
        self.lines.append(f"p{len(self.lines)} = pred[] compare(low, nought), direction=EQ")
        self.lines.append(f"q{len(self.lines)} = pred[4,4] broadcast({self.lines[-1].split()[0]}), dimensions={{}}")
        other = self.values.get(b, np.zeros((4, 4, 4)))
        chosen = np.stack([(self.values[a] if device % 2 == 0 else other)[device] for device in range(4)])
        self._add(f"f32[4,4] select({self.lines[-1].split()[0]}, {a}, {b})", chosen)

    def cut(self) -> None:
        """A part of one value and a part of another, or the rest zeros."""
        a, b = self._any(), self._any()
        self._add(f"f32[2,4] slice({a}), slice={{[0:2], [0:4]}}", self.values[a][:, :2])
        first = f"v{len(self.lines) - 1}"
        if self.chance.random() < 0.5:
            padded = np.concatenate([self.values[first], np.zeros((4, 2, 4))], axis=1)
            self._add(f"f32[4,4] pad({first}, zero), padding=0_2x0_0", padded)
            return
        self._add(f"f32[2,4] slice({b}), slice={{[2:4], [0:4]}}", self.values[b][:, 2:])
        second = f"v{len(self.lines) - 1}"
        joined = np.concatenate([self.values[first], self.values[second]], axis=1)
        self._add(f"f32[4,4] concatenate({first}, {second}), dimensions={{0}}", joined)


def spelled(groups: tuple[tuple[int, ...], ...]) -> str:
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


def known(program: Program) -> Iterator[tuple[str, Value, Devices]]:
    """What is found out of each value that the program's numbers are known of."""
    module = parse_hlo(program.text)
    devices = Devices(4)
    found: dict[str, Value] = {}

    def see(instruction: Instruction, given: object, value: Tree, place: Place) -> None:
        if isinstance(value, Value):
            found[instruction.name] = value

    Walk(Meetings(module), devices, see).run(module.entry, arguments(module, program.shardings, devices))
    for name, value in found.items():
        if name in program.values:
            yield name, value, devices


@pytest.mark.parametrize("seed", range(120))
def test_what_is_said_of_values_holds_for_numbers(seed: int) -> None:
    """Devices that are said to hold the same do, and those that are said to differ do, in each element or in one."""
    program = Program(random.Random(seed))
    for name, value, devices in known(program):
        numbers = program.values[name]
        alike, method = devices.table(value.alike), devices.table(value.method)
        for a, b in combinations(range(4), 2):
            if alike[a] == alike[b]:
                assert np.array_equal(numbers[a], numbers[b]), f"{name} on {a} and {b}\n{program.text}"
            if method[a] != method[b]:
                continue
            apart = np.abs(numbers[a] - numbers[b]) > 1e-12
            if any(devices.table(label)[a] != devices.table(label)[b] for label in value.some):
                assert apart.any(), f"{name} on {a} and {b}\n{program.text}"
            if any(devices.table(label)[a] != devices.table(label)[b] for label in value.whole):
                assert apart.all(), f"{name} on {a} and {b}\n{program.text}"


def test_programs_say_something() -> None:
    """Random programs are no test where nothing is known: differences and agreement are both claimed, often."""
    differ = agree = 0
    for seed in range(30):
        for _, value, devices in known(Program(random.Random(seed))):
            agree += value.alike != devices.each
            differ += bool(value.some - {devices.one}) and value.method != devices.each
    assert min(differ, agree) > 60
