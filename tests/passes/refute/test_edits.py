"""Edits of a module: what they put in, what they leave alone, and that no value is made twice."""

from __future__ import annotations

from collections import Counter

from hlo_verify.passes.refute.edits import editable
from hlo_verify.program.ir import Fresh, Function, Module, Op, TensorType, functions

F32 = TensorType((), "f32")


def op(name: str, operands: tuple[int, ...], result: int, *regions: Function) -> Op:
    return Op(name, operands, (result,), (F32,), {}, regions)


BODY = Function((10,), (F32,), (op("negate", (10,), 11), op("add", (11, 1), 12)), (12,))
"""A region that uses a value of the function around it."""

MAIN = Function((0,), (F32,), (op("abs", (0,), 1), op("custom", (1,), 2, BODY), op("sqrt", (0,), 3)), (2, 3))
MODULE = Module("m", MAIN, ("x",), ("y", "z"), (F32, F32), (None,), (None, None))


def twice(fresh: Fresh, value: int) -> tuple[list[Op], int]:
    result = fresh.one()
    return [op("add", (value, value), result)], result


def names(function: Function) -> list[str]:
    return [each.name for inner in functions(function) for each in inner.ops]


def test_a_value_after_an_operation_is_used_everywhere_from_there_on() -> None:
    edited = editable(MODULE).after(1, twice).main
    assert [each.name for each in edited.ops] == ["abs", "add", "custom", "sqrt"]
    (new,) = edited.ops[1].results
    assert edited.ops[2].operands == (new,)
    assert edited.ops[2].regions[0].ops[1].operands == (11, new)  # in a region too
    assert edited.ops[1].operands == (1, 1)
    assert edited.ops[3] is MAIN.ops[2]


def test_an_operation_in_a_region_is_edited_there_alone() -> None:
    edited = editable(MODULE).after(11, twice).main
    assert [each.name for each in edited.ops[1].regions[0].ops] == ["negate", "add", "add"]
    assert (edited.ops[0], edited.ops[2]) == (MAIN.ops[0], MAIN.ops[2])


def test_what_is_left_out_is_left_out_of_results_too() -> None:
    edited = editable(MODULE).instead(MAIN.ops[2], lambda _: ([], {3: 0})).main
    assert edited.results == (2, 0)
    assert names(edited) == ["abs", "custom", "negate", "add"]


def test_no_value_is_made_twice() -> None:
    edited = editable(editable(MODULE).after(12, twice)).after(1, twice).main
    made = Counter(result for inner in functions(edited) for each in inner.ops for result in each.results)
    made.update(argument for inner in functions(edited) for argument in inner.arguments)
    assert max(made.values()) == 1 and len(made) == 9


def test_a_module_knows_its_values_in_regions() -> None:
    found = editable(MODULE)
    assert found.ops[12].name == "add" and 10 not in found.ops and found.types[10] == F32
