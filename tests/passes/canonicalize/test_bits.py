"""What looks at bits sees roundings and the sign of zero, which real arithmetic knows nothing of."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.canonicalize.bits import ASSUMPTION
from tests.support.pairs import REPLICATED, module, on

F, WORDS = "tensor<4xf32>", "tensor<4xi32>"
BITS = f"%r = stablehlo.bitcast_convert %b : ({F}) -> {WORDS}"
ORDER = f"%r = stablehlo.compare LT, %b, %y, TOTALORDER : ({F}, {F}) -> tensor<4xi1>"
LOOKS = {"bits": (BITS, WORDS), "total order": (ORDER, "tensor<4xi1>")}


def program(lines: str, result: str, kind: str = F) -> str:
    whole = on(REPLICATED)
    body = f"{lines}\nreturn %r : {result}"
    return module(f"%x: {kind} {whole}, %y: {kind} {whole}", f"{result} {whole}", body, 1)


def constant(text: str) -> str:
    return f"%b = stablehlo.constant dense<{text}> : {F}"


PLAIN = f"%b = stablehlo.reshape %x : ({F}) -> {F}"
ROUNDED = f"%a = stablehlo.convert %x : ({F}) -> tensor<4xbf16>\n%b = stablehlo.convert %a : (tensor<4xbf16>) -> {F}"
MIXED = {
    "a rounding beside another operation": f"""
%o = stablehlo.multiply %y, %y : {F}
%m = stablehlo.compare LT, %x, %y : ({F}, {F}) -> tensor<4xi1>
%b = stablehlo.select %m, %e, %o : (tensor<4xi1>, {F}, {F}) -> {F}""",
    "a rounding in a branch": f"""
%m = stablehlo.constant dense<0> : tensor<i32>
%b = "stablehlo.case"(%m) ({{
  stablehlo.return %e : {F}
}}, {{
  stablehlo.return %y : {F}
}}) : (tensor<i32>) -> {F}""",
    "a rounding that a loop carries": f"""
%i = stablehlo.constant dense<0> : tensor<i32>
%n = stablehlo.constant dense<3> : tensor<i32>
%k = stablehlo.constant dense<1> : tensor<i32>
%l, %b = stablehlo.while(%p = %i, %q = %e) : tensor<i32>, {F}
cond {{
  %t = stablehlo.compare LT, %p, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %t : tensor<i1>
}} do {{
  %s = stablehlo.add %p, %k : tensor<i32>
  %v = stablehlo.reverse %q, dims = [0] : {F}
  stablehlo.return %s, %v : tensor<i32>, {F}
}}""",
}
"""What is made of a value `%e` that one module rounds."""

COMPUTED = {
    "a rounding": (ROUNDED, PLAIN),
    "a reduced precision": (f"%b = stablehlo.reduce_precision %x, format = e8m7 : {F}", PLAIN),
    "signs of zero": (
        f"%z = stablehlo.constant dense<0.0> : {F}\n%b = stablehlo.subtract %z, %x : {F}",
        f"%b = stablehlo.negate %x : {F}",
    ),
    "a zero that is added": (f"%z = stablehlo.constant dense<0.0> : {F}\n%b = stablehlo.add %z, %x : {F}", PLAIN),
    "a narrower format": (
        f"%a = stablehlo.add %x, %y : {F}\n%c = stablehlo.convert %a : ({F}) -> tensor<4xbf16>\n"
        f"%b = stablehlo.convert %c : (tensor<4xbf16>) -> {F}",
        f"%b = stablehlo.add %x, %y : {F}",
    ),
    "zeros": (constant("0.0"), constant("-0.0")),
    "zeros in a narrower format": tuple(
        f"%a = stablehlo.constant dense<{zero}> : {F}\n%c = stablehlo.convert %a : ({F}) -> tensor<4xbf16>\n"
        f"%b = stablehlo.convert %c : (tensor<4xbf16>) -> {F}"
        for zero in ("0.0", "-0.0")
    ),
    **{name: tuple(way.replace("%b =", "%e =") + mixed for way in (ROUNDED, PLAIN)) for name, mixed in MIXED.items()},
}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("way", COMPUTED)
def test_bits_of_what_is_made_in_another_way_are_never_proved(way: str, look: str) -> None:
    lines, result = LOOKS[look]
    for one, other in (COMPUTED[way], COMPUTED[way][::-1]):
        pair = program(f"{one}\n{lines}", result), program(f"{other}\n{lines}", result)
        assert hlo_verify.verify(*pair).verdict is not Verdict.PROVED


@pytest.mark.parametrize("look", LOOKS)
def test_bits_of_what_is_made_by_the_same_operation_are_assumed_to_be_the_same(look: str) -> None:
    lines, result = LOOKS[look]
    one = f"%a = stablehlo.add %x, %y : {F}\n%b = stablehlo.add %a, %x : {F}"
    other = f"%a = stablehlo.add %x, %x : {F}\n%b = stablehlo.add %a, %y : {F}"
    report = hlo_verify.verify(*(program(f"{each}\n{lines}", result) for each in (one, other)))
    assert report.verdict is Verdict.PROVED and ASSUMPTION in report.assumptions


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize(
    "moved",
    [
        f"%b = stablehlo.reverse %x, dims = [0] : {F}",
        f"%c = stablehlo.compare LT, %x, %y : ({F}, {F}) -> tensor<4xi1>\n"
        f"%b = stablehlo.select %c, %x, %y : (tensor<4xi1>, {F}, {F}) -> {F}",
        constant("[1.0, 0.0, 2.5, -3.0]"),
    ],
    ids=["moved", "selected", "constant"],
)
def test_bits_of_what_is_moved_are_known(moved: str, look: str) -> None:
    lines, result = LOOKS[look]
    text = program(f"{moved}\n{lines}", result)
    report = hlo_verify.verify(text, text)
    assert report.verdict is Verdict.PROVED and ASSUMPTION not in report.assumptions


def test_bits_of_what_is_converted_to_a_wider_type_are_known() -> None:
    kind = "tensor<4xbf16>"
    for new, is_wider in (("f32", True), ("f16", False)):
        word = f"tensor<4xi{new[1:]}>"
        cast = f"%r = stablehlo.bitcast_convert %b : (tensor<4x{new}>) -> {word}"
        text = program(f"%b = stablehlo.convert %x : ({kind}) -> tensor<4x{new}>\n{cast}", word, kind)
        report = hlo_verify.verify(text, text)
        assert report.verdict is Verdict.PROVED and (ASSUMPTION not in report.assumptions) is is_wider


def test_numbers_made_of_bits_are_known() -> None:
    lines = f"%b = stablehlo.bitcast_convert %x : ({WORDS}) -> {F}\n%r = stablehlo.add %b, %b : {F}"
    text = program(lines, F, WORDS)
    assert hlo_verify.verify(text, text).verdict is Verdict.PROVED


ORDERS = {"i8": "SIGNED", "ui8": "UNSIGNED", "i1": "UNSIGNED", "f32": "FLOAT", "complex<f32>": "FLOAT"}


@pytest.mark.parametrize("said", ["SIGNED", "UNSIGNED", "FLOAT", "TOTALORDER"])
@pytest.mark.parametrize("dtype", ORDERS)
def test_an_order_that_a_type_does_not_have_is_not_understood(dtype: str, said: str) -> None:
    kind, truths = f"tensor<4x{dtype}>", "tensor<4xi1>"
    direction = "EQ" if dtype.startswith("complex") else "LT"
    plain = f"%r = stablehlo.compare {direction}, %x, %y : ({kind}, {kind}) -> {truths}"
    stated = plain.replace(" :", f", {said} :", 1)
    report = hlo_verify.verify(program(plain, truths, kind), program(stated, truths, kind))
    assert (report.verdict is Verdict.PROVED) is (said == ORDERS[dtype])


@pytest.mark.parametrize(("format", "is_total"), [("e5m2", False), ("e8m0", True), ("e8m7", True), ("e4m23", False)])
def test_fewer_bits_of_the_exponent_make_infinities(format: str, is_total: bool) -> None:
    reduced = f"%a = stablehlo.reduce_precision %x, format = {format} : {F}\n%r = stablehlo.subtract %a, %a : {F}"
    zero = f"%r = stablehlo.constant dense<0.0> : {F}"
    assert (hlo_verify.verify(program(zero, F), program(reduced, F)).verdict is Verdict.PROVED) is is_total


def test_what_made_a_number_is_seen_through_manual_regions() -> None:
    """`-x` is no `0 - x` there either."""
    mesh, placed = 'sdy.mesh @m = <["a"=2]>', '{sdy.sharding = #sdy.sharding<@m, [{"a"}]>}'

    def global_module(lines: str) -> str:
        return f"""module {{
  {mesh}
  func.func @main(%x: {F} {placed}) -> ({WORDS} {placed}) {{
    {lines}
    {BITS}
    return %r : {WORDS}
  }}
}}"""

    region = """
    %b = sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}]>] out_shardings=[<@m, [{"a"}]>] manual_axes={"a"}
        (%p: tensor<2xf32>) {
      %z = stablehlo.constant dense<0.0> : tensor<2xf32>
      %n = MINUS : tensor<2xf32>
      sdy.return %n : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>"""
    wanted = global_module(f"%b = stablehlo.negate %x : {F}")
    for minus, is_same in (("stablehlo.negate %p", True), ("stablehlo.subtract %z, %p", False)):
        report = hlo_verify.verify(wanted, global_module(region.replace("MINUS", minus)))
        assert (report.verdict is Verdict.PROVED) is is_same


def narrowed(*formats: str, computed: bool = False) -> str:
    """The bits of `%x`, or of its opposite, rounded to those types one after another."""
    lines, kind = f"%v0 = stablehlo.{'negate' if computed else 'optimization_barrier'} %x : {F}", "f32"
    for n, format in enumerate(formats):
        lines += f"\n%v{n + 1} = stablehlo.convert %v{n} : (tensor<4x{kind}>) -> tensor<4x{format}>"
        kind = format
    words = "tensor<4xui8>" if kind.startswith("f8") else "tensor<4xi16>"
    return program(f"{lines}\n%r = stablehlo.bitcast_convert %v{len(formats)} : (tensor<4x{kind}>) -> {words}", words)


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize(
    ("one", "other", "is_proved"),
    [
        (("f8E4M3FN",), ("bf16", "f8E4M3FN"), False),
        (("f16", "bf16"), ("bf16",), False),
        (("bf16", "f8E5M2"), ("f16", "f8E5M2"), False),
        (("bf16", "f32", "f8E5M2"), ("f8E5M2",), False),
        (("bf16", "f32", "f8E5M2"), ("bf16", "f8E5M2"), True),
        (("bf16", "f32", "bf16"), ("bf16",), True),
        (("f64", "bf16"), ("bf16",), True),
    ],
)
def test_two_roundings_are_another_one_than_the_last(
    one: tuple[str, ...], other: tuple[str, ...], is_proved: bool, computed: bool
) -> None:
    first, second = narrowed(*one, computed=computed), narrowed(*other, computed=computed)
    assert (hlo_verify.verify(first, second, devices=1).verdict is Verdict.PROVED) is is_proved


def summed(dtype: str, lines: str, look: str) -> str:
    """What a look at `%b` sees that is computed of 4 numbers and a matrix of 4x4."""
    whole, kind, bits = on(REPLICATED), f"tensor<4x{dtype}>", "i32" if dtype == "f32" else "i16"
    result = "tensor<4xi1>" if look == "total order" else f"tensor<4x{bits}>"
    ending = f"%r = stablehlo.bitcast_convert %b : ({kind}) -> {result}"
    if look == "total order":
        ending = f"%r = stablehlo.compare LT, %b, %x, TOTALORDER : ({kind}, {kind}) -> {result}"
    body = lines.replace("TYPE", dtype) + f"\n{ending}\nreturn %r : {result}"
    return module(f"%x: {kind} {whole}, %w: tensor<4x4x{dtype}> {whole}", f"{result} {whole}", body, 1)


def of_half(n: int, start: int) -> str:
    """`%hN`, the product of two numbers and two rows of the matrix."""
    return f"""
    %x{n} = stablehlo.slice %x [{start}:{start + 2}] : (tensor<4xTYPE>) -> tensor<2xTYPE>
    %w{n} = stablehlo.slice %w [{start}:{start + 2}, 0:4] : (tensor<4x4xTYPE>) -> tensor<2x4xTYPE>
    %h{n} = stablehlo.dot_general %x{n}, %w{n}, contracting_dims = [0] x [0]
      : (tensor<2xTYPE>, tensor<2x4xTYPE>) -> tensor<4xTYPE>"""


ADDED_UP = """%z = stablehlo.constant dense<0.0> : tensor<TYPE>
    %b = stablehlo.reduce(%p init: %z) applies stablehlo.ADD across dimensions = [0]
      : (tensor<4x4xTYPE>, tensor<TYPE>) -> tensor<4xTYPE>"""
WHOLE = """%b = stablehlo.dot_general %x, %w, contracting_dims = [0] x [0]
      : (tensor<4xTYPE>, tensor<4x4xTYPE>) -> tensor<4xTYPE>"""
HALVES = of_half(0, 0) + of_half(1, 2)
ROWS = """%p = stablehlo.slice %w [0:2, 0:4] : (tensor<4x4xTYPE>) -> tensor<2x4xTYPE>
    %q = stablehlo.slice %w [2:4, 0:4] : (tensor<4x4xTYPE>) -> tensor<2x4xTYPE>
    %s = stablehlo.add %q, %p : tensor<2x4xTYPE>
    %z = stablehlo.constant dense<0.0> : tensor<TYPE>
    %b = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0]
      : (tensor<2x4xTYPE>, tensor<TYPE>) -> tensor<4xTYPE>"""
SUMS = {
    "halves of a product": (WHOLE, HALVES + "\n%b = stablehlo.add %h1, %h0 : tensor<4xTYPE>"),
    "rows": (f"%p = stablehlo.optimization_barrier %w : tensor<4x4xTYPE>\n{ADDED_UP.replace('ADD', 'add')}", ROWS),
}
NO_SUMS = {
    "one half twice": (of_half(0, 0) + "\n%b = stablehlo.add %h0, %h0 : tensor<4xTYPE>", WHOLE),
    "a difference": (
        HALVES + "\n%n = stablehlo.negate %h1 : tensor<4xTYPE>\n%b = stablehlo.subtract %h0, %n : tensor<4xTYPE>",
        WHOLE,
    ),
    "a multiple": (
        HALVES + "\n%n = stablehlo.constant dense<2.0> : tensor<4xTYPE>"
        "\n%b = stablehlo.multiply %h0, %n : tensor<4xTYPE>",
        HALVES + "\n%b = stablehlo.add %h0, %h0 : tensor<4xTYPE>",
    ),
    "a maximum": tuple(
        f"%p = stablehlo.optimization_barrier %w : tensor<4x4xTYPE>\n{ADDED_UP.replace('ADD', name)}"
        for name in ("add", "maximum")
    ),
    "a product": (
        """%o = stablehlo.reshape %x : (tensor<4xTYPE>) -> tensor<1x4xTYPE>
    %y = stablehlo.slice %w [0:1, 0:1] : (tensor<4x4xTYPE>) -> tensor<1x1xTYPE>
    %q = stablehlo.reshape %y : (tensor<1x1xTYPE>) -> tensor<1xTYPE>
    %b = stablehlo.dot_general %q, %o, contracting_dims = [0] x [0]
      : (tensor<1xTYPE>, tensor<1x4xTYPE>) -> tensor<4xTYPE>""",
        """%y = stablehlo.slice %w [0:1, 0:1] : (tensor<4x4xTYPE>) -> tensor<1x1xTYPE>
    %q = stablehlo.reshape %y : (tensor<1x1xTYPE>) -> tensor<TYPE>
    %s = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<TYPE>) -> tensor<4xTYPE>
    %b = stablehlo.multiply %s, %x : tensor<4xTYPE>""",
    ),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("way", NO_SUMS)
def test_bits_of_other_sums_and_of_what_is_no_sum_are_never_proved(way: str, look: str) -> None:
    one, other = (summed("f32", lines, look) for lines in NO_SUMS[way])
    for pair in ((one, other), (other, one)):
        assert hlo_verify.verify(*pair, refute=False).verdict is not Verdict.PROVED


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("way", SUMS)
def test_bits_of_a_sum_are_assumed_to_be_the_same_however_it_is_split(way: str, look: str, dtype: str) -> None:
    """What a compiler makes of a product whose contracted dimension is split: of routers, before the best k."""
    one, other = (summed(dtype, lines, look) for lines in SUMS[way])
    for pair in ((one, other), (other, one)):
        report = hlo_verify.verify(*pair)
        assert report.verdict is Verdict.PROVED and ASSUMPTION in report.assumptions
