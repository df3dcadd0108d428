"""Loops, branches, and what only a global module has."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from hlo_verify.program.element_types import DTYPES
from tests.ops.cases.drawing import Case, Draw, cases, operand, shapes, values
from tests.ops.cases.movement import element
from tests.support.modules import Program, Ref, tensor_type
from tests.support.reference import reference


def branch(draw: Draw, name: str, x: Ref) -> str:
    """A region without arguments that computes something of a value outside."""
    operation = draw(st.sampled_from(("add", "multiply", "maximum")))
    return (
        f'{{ %{name} = "stablehlo.{operation}"({x.name}, {x.name}) : ({x.type}, {x.type}) -> {x.type} '
        f'"stablehlo.return"(%{name}) : ({x.type}) -> () }}'
    )


@cases
def case(draw: Draw) -> Case:
    program = Program()
    x = operand(draw, program, draw(shapes()), draw(st.sampled_from(("f32", "i8", "i1"))))
    count = draw(st.integers(1, 4))
    index = operand(draw, program, (), "i32", (-2, count + 1) if draw(st.booleans()) else None)
    regions = ", ".join(branch(draw, f"r{n}", x) for n in range(count))
    return Case(program.returns(program.op("case", [index], [(x.shape, x.dtype)], "", regions)))


@cases
def if_(draw: Draw) -> Case:
    program = Program()
    x = operand(draw, program, draw(shapes()), draw(st.sampled_from(("f32", "i8", "i1"))))
    regions = ", ".join(branch(draw, f"r{n}", x) for n in range(2))
    condition = operand(draw, program, (), "i1")
    return Case(program.returns(program.op("if", [condition], [(x.shape, x.dtype)], "", regions)))


@cases
def while_(draw: Draw) -> Case:
    """A counted loop, which is unrolled here; its counter moves on in one or in several steps."""
    program = Program()
    kind = draw(st.sampled_from(("i32", "i8", "ui8")))
    start, stop = draw(st.integers(0, 3)), draw(st.integers(0, 4))
    counter = program.constant(np.array(start, dtype=DTYPES[kind]))
    x = operand(draw, program, draw(shapes()), draw(st.sampled_from(("f32", "i8"))))
    c = tensor_type((), kind)
    steps = draw(st.sampled_from(((1,), (2,), (1, 1), (2, -1), (1, 0, 1))))
    counted = " ".join(
        f"%s{n} = stablehlo.constant dense<{abs(step)}> : {c} "
        f"%j{n + 1} = stablehlo.{'add' if step >= 0 else 'subtract'} {f'%j{n}' if n else '%i'}, %s{n} : {c}"
        for n, step in enumerate(steps)
    )
    regions = (
        f"{{ ^bb0(%i: {c}, %x: {x.type}): %n = stablehlo.constant dense<{stop}> : {c} "
        f"%t = stablehlo.compare LT, %i, %n : ({c}, {c}) -> tensor<i1> "
        '"stablehlo.return"(%t) : (tensor<i1>) -> () }, '
        f"{{ ^bb0(%i: {c}, %x: {x.type}): {counted} %y = stablehlo.add %x, %x : {x.type} "
        f'"stablehlo.return"(%j{len(steps)}, %y) : ({c}, {x.type}) -> () }}'
    )
    results = program.op("while", [counter, x], [((), kind), (x.shape, x.dtype)], "", regions)
    return Case(program.returns(results))


@cases
def same(draw: Draw, name: str, attributes: str = "") -> Case:
    """An operation that gives back its operand; the interpreter does not know it."""
    program = Program()
    x = program.argument(values(draw, draw(shapes(least=1, most=1)), element(draw)))
    expected = reference(program.returns([x]))
    return Case(program.returns(program.op(name, [x], [(x.shape, x.dtype)], attributes)), expected)


@cases
def manual_computation(draw: Draw) -> Case:
    """Only that it is refused outside of a module with devices; shard_map programs test its meaning."""
    program = Program()
    x = program.argument(values(draw, (2,), "f32"))
    attributes = (
        'in_shardings = #sdy.sharding_per_value<[<mesh<["x"=2]>, [{"x"}]>]>, manual_axes = #sdy<manual_axes{"x"}>, '
        'out_shardings = #sdy.sharding_per_value<[<mesh<["x"=2]>, [{"x"}]>]>'
    )
    region = '{ ^bb0(%x: tensor<1xf32>): "sdy.return"(%x) : (tensor<1xf32>) -> () }'
    results = program.op("sdy.manual_computation", [x], [((2,), "f32")], attributes, region)
    return Case(program.returns(results), [], may_refuse=True)


SHARDING = 'sharding = #sdy.sharding<mesh<["x"=2]>, [{}]>'

CASES: dict[str, st.SearchStrategy[Case]] = {
    "case": case(),
    "if": if_(),
    "while": while_(),
    "sdy.manual_computation": manual_computation(),
    "sdy.sharding_constraint": same("sdy.sharding_constraint", SHARDING),
    "sdy.reshard": same("sdy.reshard", SHARDING),
}
