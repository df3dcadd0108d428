"""One program has one number, whatever its names and order; what computes something else has another."""

from __future__ import annotations

import pytest

from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.same_program import Programs

TEXT = """module @m {
  func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %a = stablehlo.add %x, %y : tensor<4xf32>
    %b = stablehlo.tanh %y : tensor<4xf32>
    %c = stablehlo.constant dense<2.0> : tensor<4xf32>
    %d = stablehlo.multiply %a, %c : tensor<4xf32>
    return %d, %b : tensor<4xf32>, tensor<4xf32>
  }
}
"""
DRAWN = """module @m {
  func.func public @main() -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %shape = stablehlo.constant dense<[4]> : tensor<1xi64>
    %a = stablehlo.rng %zero, %one, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
    %b = stablehlo.rng %zero, %one, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
    %c = stablehlo.subtract %a, %b : tensor<4xf32>
    return %c : tensor<4xf32>
  }
}
"""  # noqa: E501


def loop(added: str, *, before: str = "", inside: str = "") -> str:
    """Three turns that each add a value, which is made before the loop or in each turn."""
    return f"""module @m {{
  func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %low = stablehlo.constant dense<0.0> : tensor<f32>
    %high = stablehlo.constant dense<1.0> : tensor<f32>
    %shape = stablehlo.constant dense<4> : tensor<1xi64>
    {before}
    %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
    cond {{
      %n = stablehlo.constant dense<3> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      {inside}
      %w = stablehlo.add %v, {added} : tensor<4xf32>
      stablehlo.return %j, %w : tensor<i32>, tensor<4xf32>
    }}
    return %r#1 : tensor<4xf32>
  }}
}}
"""


def same(first: str, second: str) -> bool:
    programs = Programs()
    return programs.of(load(first)) == programs.of(load(second))


def swapped(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


LINES = TEXT.splitlines(keepends=True)


@pytest.mark.parametrize(
    "other",
    [
        TEXT.replace("%a", "%other"),
        "".join([*LINES[:2], LINES[4], LINES[3], LINES[2], *LINES[5:]]),
        swapped(
            TEXT,
            ("%d = stablehlo.multiply %a", "%e = stablehlo.add %x, %y : tensor<4xf32>\n%d = stablehlo.multiply %e"),
        ),
    ],
)
def test_names_order_and_repetitions_are_nothing(other: str) -> None:
    assert same(TEXT, other)


@pytest.mark.parametrize(
    "other",
    [
        TEXT.replace("add %x, %y", "add %y, %x"),  # the same over the reals, which is not for here to know
        TEXT.replace("dense<2.0>", "dense<3.0>"),
        TEXT.replace("return %d, %b", "return %b, %d"),
        TEXT.replace("tanh", "cosine"),
        TEXT.replace("4xf32", "5xf32"),
    ],
)
def test_other_programs(other: str) -> None:
    assert not same(TEXT, other)


@pytest.mark.parametrize(
    ("old", "new"),
    [("dense<3>", "dense<4>"), ("add %v, %y", "add %v, %v"), ("add %v, %y", "add %v, %x"), ("LT", "LE")],
)
def test_what_is_inside_of_a_loop_counts(old: str, new: str) -> None:
    text = loop("%y")
    assert same(text, text.replace("%w", "%z"))
    assert not same(text, swapped(text, (old, new)))


def test_two_draws_are_not_one() -> None:
    assert same(DRAWN, DRAWN)
    assert not same(DRAWN, swapped(DRAWN, ("subtract %a, %b", "subtract %a, %a")))


DRAW = (
    '%drawn = "stablehlo.rng"(%low, %high, %shape) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> '
    ": (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>"
)
EFFECT = """module @m {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = stablehlo.tanh %x : tensor<4xf32>
    CALLS
    return %y : tensor<4xf32>
  }
}
"""


def test_new_numbers_in_every_turn_are_others_than_those_before_a_loop() -> None:
    inside = loop("%drawn", inside=DRAW)
    assert same(inside, inside)
    assert not same(inside, loop("%drawn", before=DRAW))


def test_what_is_done_beside_giving_results_counts_in_its_order() -> None:
    def calls(*names: str) -> int:
        lines = [f"stablehlo.custom_call @{n}(%x) {{has_side_effect = true}} : (tensor<4xf32>) -> ()" for n in names]
        return programs.of(load(EFFECT.replace("CALLS", "\n".join(lines))))

    programs = Programs()
    assert calls("a", "b") == calls("a", "b")
    assert len({calls("a", "b"), calls("b", "a"), calls("a"), calls()}) == 4


def test_how_often_something_is_done_counts() -> None:
    call = "stablehlo.custom_call @f(%x) {has_side_effect = true} : (tensor<4xf32>) -> ()"
    three = swapped(loop("%y", inside=call), ("return %r#1", "return %x"))  # of the loop nothing else is left
    assert same(three, three)
    assert not same(three, swapped(three, ("dense<3>", "dense<4>")))


def test_calls_of_shardy_mean_what_the_modules_meshes_say() -> None:
    def regions(mesh: str, target: str = "xla.sdy.GlobalToLocalShape") -> str:
        said = f'module @m attributes {{mhlo.frontend_attributes = {{xla.sdy.meshes = "{mesh}"}}}}'
        call = f"%y = stablehlo.custom_call @{target}(%x) : (tensor<4xf32>) -> tensor<4xf32>"
        body = f"func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{call}\nreturn %y : tensor<4xf32>\n}}"
        return f"{said} {{\n{body}\n}}\n"

    assert same(regions("a=2,b=2"), regions("a=2,b=2"))
    assert not same(regions("a=2,b=2"), regions("b=2,a=2"))
    assert same(regions("a=2,b=2", "other"), regions("b=2,a=2", "other"))
