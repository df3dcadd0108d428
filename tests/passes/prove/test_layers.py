"""Where a module repeats itself: equal operations have equal numbers, and layers are cut between one and the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hlo_verify.passes.prove.layers import REPEATED, Keys, boundaries
from hlo_verify.program.ir import Function, Location, Op, TensorType

F32, I32 = TensorType((4, 4), "f32"), TensorType((4, 4), "i32")


def op(name: str, operands: tuple[int, ...], result: int, kind: TensorType = F32, **attributes: Any) -> Op:
    regions = attributes.pop("regions", ())
    return Op(name, operands, (result,), (kind,), attributes, regions, Location(name, (("net.py", 7),)))


def chain(layers: int, kind: TensorType = F32) -> Function:
    """`x = x + tanh(x * w)`, over and over; an argument w for each."""
    ops: list[Op] = []
    x, new = 0, layers + 1
    for n in range(layers):
        ops += [op("multiply", (x, n + 1), new, kind), op("tanh", (new,), new + 1, kind)]
        ops.append(op("add", (x, new + 1), new + 2, kind))
        x, new = new + 2, new + 3
    return Function(tuple(range(layers + 1)), (kind,) * (layers + 1), tuple(ops), (x,))


def sums(function: Function) -> list[int]:
    return [o.results[0] for o in function.ops if o.name == "add"]


def test_operations_that_differ_in_operands_alone_have_one_number() -> None:
    keys = Keys()
    assert keys.of(op("add", (0, 1), 2)) == keys.of(op("add", (3, 4), 5)) is not None


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(op("subtract", (0,), 1, dimension=0), id="its name"),
        pytest.param(op("iota", (0,), 1, dimension=1), id="an attribute"),
        pytest.param(op("iota", (0,), 1, I32, dimension=0), id="its type"),
        pytest.param(op("iota", (0,), 1, dimension=False), id="the type of an attribute"),
    ],
)
def test_operations_that_differ_in_more_have_two_numbers(other: Op) -> None:
    keys = Keys()
    assert keys.of(op("iota", (0,), 1, dimension=0)) != keys.of(other)


def test_a_region_counts_up_to_the_names_of_its_values() -> None:
    def reduce(first: int, name: str) -> Op:
        body = Function((first, first + 1), (F32, F32), (op(name, (first, first + 1), first + 2),), (first + 2,))
        return op("reduce", (0, 1), 2, regions=(body,))

    keys = Keys()
    assert keys.of(reduce(10, "add")) == keys.of(reduce(20, "add")) is not None
    assert keys.of(reduce(10, "add")) != keys.of(reduce(10, "maximum"))


def test_an_operation_keeps_its_number_to_itself_when_nothing_else_refers_to_it() -> None:
    keys = Keys()
    numbers = [keys.of(op(name, (0, 1), 2)) for name in ("add", "maximum", "multiply", "minimum")]
    assert len(set(numbers)) == len(numbers)


def test_an_operation_whose_region_refers_to_values_around_it_has_no_number() -> None:
    body = Function((10, 11), (F32, F32), (op("add", (10, 5), 12),), (12,))
    assert Keys().of(op("reduce", (0, 1), 2, regions=(body,))) is None


def test_layers_are_cut_where_one_passes_on_to_the_next() -> None:
    function = chain(8)
    found = boundaries(function, Keys())
    assert found <= set(sums(function))
    assert len(found) >= 6


def test_a_module_that_does_not_repeat_itself_is_not_cut() -> None:
    assert not boundaries(chain(REPEATED - 1), Keys())
    assert not boundaries(Function((0,), (F32,), (), (0,)), Keys())


def test_integers_are_not_cut() -> None:
    assert not boundaries(chain(8, I32), Keys())


def test_boundaries_are_the_same_in_every_process() -> None:
    code = (
        "from tests.passes.prove.test_layers import Keys, boundaries, chain\n"
        "print(sorted(boundaries(chain(8), Keys())))\n"
        "from hlo_verify.passes.prove.layers import _Surroundings as S\nprint(S(chain(8), Keys()).signatures())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).resolve().parents[3],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
