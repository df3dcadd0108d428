"""What is computed of the same in the same way is worked out once, and nothing else is taken for it."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.ops import FUNCTIONS, RULES
from hlo_verify.ops.values import Context, Rule, Value
from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.worked_out import WorkedOut
from hlo_verify.program.ir import Op
from hlo_verify.program.op_families import COLLECTIVES, CONTROL, DEVICE_NUMBERS, EFFECTS
from tests.support.pairs import FOUR, REPLICATED, module, on

F = "tensor<8xf32>"
NEW_EACH_TIME = f"""
  %shape = stablehlo.constant dense<> : tensor<0xi64>
  %lo = stablehlo.constant dense<0.0> : tensor<f32>
  %hi = stablehlo.constant dense<1.0> : tensor<f32>
  %a = "stablehlo.map"(%x) ({{
  ^bb0(%e: tensor<f32>):
    %n = stablehlo.rng %lo, %hi, %shape, distribution = UNIFORM
      : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>
    stablehlo.return %n : tensor<f32>
  }}) {{dimensions = array<i64: 0>}} : ({F}) -> {F}"""
ROWS = """
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<8xNxf32>
  %a = stablehlo.reduce(%one init: %z) applies stablehlo.add across dimensions = [1]
    : (tensor<8xNxf32>, tensor<f32>) -> tensor<8xf32>"""


def difference(one: str, other: str) -> str:
    """`x + a - b`, where a and b are what the lines give."""
    second = other.replace("%a", "%b").replace("%z ", "%y ").replace("%z)", "%y)").replace("%one", "%two")
    for name in ("%shape", "%lo", "%hi", "%n", "%e"):
        second = second.replace(name, f"{name}b")
    body = f"{one}\n{second}\n%s = stablehlo.add %x, %a : {F}\n%r = stablehlo.subtract %s, %b : {F}\nreturn %r : {F}"
    return module(f"%x: {F} {on(REPLICATED)}", f"{F} {on(REPLICATED)}", body, 1)


PLAIN = module(f"%x: {F} {on(REPLICATED)}", f"{F} {on(REPLICATED)}", f"return %x : {F}", 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (NEW_EACH_TIME, NEW_EACH_TIME),
        (ROWS.replace("N", "3"), ROWS.replace("N", "4")),
        (f"%a = stablehlo.slice %x [0:8] : ({F}) -> {F}", f"%a = stablehlo.reverse %x, dims = [0] : {F}"),
    ],
    ids=["new each time", "equal terms of other shapes", "another operation"],
)
def test_what_is_another_value_is_worked_out_anew(one: str, other: str) -> None:
    pair = PLAIN, difference(one, other)
    for each in (pair, pair[::-1]):
        assert hlo_verify.verify(*each, refute=False).verdict is not Verdict.PROVED


def test_equal_operations_on_equal_terms_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device too, where what it computes are the logical module's terms."""
    asked: list[Op] = []
    plain: Rule = RULES["tanh"]

    def counted(op: Op, operands: list[Value], context: Context) -> list[Value]:
        asked.append(op)
        return plain(op, operands, context)

    monkeypatch.setitem(RULES, "tanh", counted)
    lines = f"%a = stablehlo.tanh %x : {F}\n%b = stablehlo.tanh %x : {F}\n%r = stablehlo.multiply %a, %b : {F}"
    whole = module(f"%x: {F} {on(REPLICATED)}", f"{F} {on(REPLICATED)}", f"{lines}\nreturn %r : {F}")
    each = module(f"%x: {F}", F, f"{lines}\nreturn %r : {F}")
    report = hlo_verify.verify(whole, each, refute=False)
    assert report.verdict is Verdict.PROVED and len(asked) == 1
    part = "tensor<2xf32>"
    split = module(f"%x: {F} {on(FOUR)}", f"{F} {on(FOUR)}", f"{lines}\nreturn %r : {F}")
    parts = module(f"%x: {part}", part, f"{lines}\nreturn %r : {part}".replace(F, part))
    asked.clear()
    assert hlo_verify.verify(split, parts, refute=False).verdict is Verdict.PROVED and len(asked) == 2


def test_what_depends_on_more_than_its_operands_is_no_function() -> None:
    around = COLLECTIVES | EFFECTS | CONTROL | DEVICE_NUMBERS | {"rng", "rng_bit_generator", "custom_call", "call"}
    assert FUNCTIONS.isdisjoint(around)
    for lines, is_function in ((NEW_EACH_TIME, False), (ROWS.replace("N", "3"), True)):
        ops = {op.name: op for op in load(difference(lines, lines)).main.ops}
        (op,) = ops.keys() & {"map", "reduce"}
        assert (WorkedOut()._number(ops[op]) is not None) is is_function
