"""Operations are interpreted again only where something that they read, or stand in, is another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hlo_verify.index import expr
from hlo_verify.ops.values import Context, Kept, Value, positions
from hlo_verify.passes.prove.interpret import run
from hlo_verify.program.ir import Function, Location, Op, TensorType
from hlo_verify.terms import algebra
from hlo_verify.terms.term import tensor

F32 = TensorType((4,), "f32")


def argument(name: str) -> Value:
    return Value(F32, algebra.read(tensor("argument", name, "f32", (4,)), positions((4,))))


def op(name: str, operands: tuple[int, ...], result: int) -> Op:
    return Op(name, operands, (result,), (F32,), {}, (), Location())


BODY = Function((0, 1), (F32, F32), (op("negate", (0,), 2), op("add", (1, 2), 3)), (3,))


@pytest.fixture
def seen() -> list[str]:
    return []


@pytest.fixture
def context(seen: list[str]) -> Context:
    def observe(op: Op, values: list[Value]) -> list[Value]:
        seen.append(op.name)
        return values

    context = Context(None, 1, 1, run, observe=observe)
    context.kept = Kept(context)
    return context


def test_what_reads_the_same_is_not_interpreted_again(seen: list[str], context: Context) -> None:
    x, y, z = map(argument, "xyz")
    run(BODY, [x, y], context)
    (found,) = run(BODY, [x, z], context)
    assert seen == ["negate", "add", "add"]
    assert found.term is algebra.subtract(z.term, x.term)


def test_nothing_is_kept_unless_it_is_asked_for(seen: list[str], context: Context) -> None:
    context.kept = None
    x, y = map(argument, "xy")
    run(BODY, [x, y], context)
    run(BODY, [x, y], context)
    assert seen == ["negate", "add"] * 2


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda c: replace(c, iterations=(expr.constant(1),)), id="an iteration of a loop around"),
        pytest.param(lambda c: replace(c, device=expr.var("d", "", 2)), id="a device"),
        pytest.param(lambda c: replace(c, unsupported={}), id="a list of what is not understood"),
        pytest.param(lambda c: replace(c, observe=None), id="an observer"),
        pytest.param(lambda c: replace(c, environment={}), id="an environment"),
    ],
)
def test_another_context_keeps_its_own(change: Callable[[Context], Context], seen: list[str], context: Context) -> None:
    x, y = map(argument, "xy")
    run(BODY, [x, y], context)
    other = change(context)
    run(BODY, [x, y], other)
    assert seen == ["negate", "add"] * (1 if other.observe is None else 2)
    run(BODY, [x, y], context)
    assert seen == ["negate", "add"] * (1 if other.observe is None else 2)


def test_what_a_region_reads_from_around_it_counts(context: Context) -> None:
    flag = TensorType((), "i1")
    branch = Function((), (), (), (1,))  # the value around, as it is
    other = Function((), (), (op("negate", (1,), 8),), (8,))
    choice = Op("case", (9,), (10,), (F32,), {}, (branch, other), Location())
    body = Function((9, 1), (flag, F32), (choice,), (10,))
    which = Value(TensorType((), "i32"), algebra.read(tensor("argument", "n", "i32", ()), ()))
    x, y = map(argument, "xy")
    (first,) = run(body, [which, x], context)
    (second,) = run(body, [which, y], context)
    assert first.term is not second.term
