"""What a program does beside giving results is part of what is compared: no result shows a print or an outfeed."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.diagnostics import Unsupported
from tests.support.pairs import REPLICATED, module, on

TYPE = "tensor<4xf32>"
TOKEN = "!stablehlo.token"
CHANNEL = "#stablehlo.channel_handle<handle = {}, type = {}>"


def outfeed(name: str, of: str, how: str = "") -> str:
    return f'%{name} = "stablehlo.outfeed"(%{of}, %t) <{{outfeed_config = "{how}"}}> : ({TYPE}, {TOKEN}) -> {TOKEN}'


def infeed(name: str, of: str, how: str = "") -> str:
    config = f'<{{infeed_config = "{of}{how}"}}>'
    return f'%{name}, %{name}t = "stablehlo.infeed"(%t) {config} : ({TOKEN}) -> ({TYPE}, {TOKEN})'


def send(name: str, of: str, how: str = "1") -> str:
    channel = CHANNEL.format(how or 1, 2)
    return (
        f'%{name} = "stablehlo.send"(%{of}, %t) <{{channel_handle = {channel}, is_host_transfer = true}}> '
        f": ({TYPE}, {TOKEN}) -> {TOKEN}"
    )


def receive(name: str, of: str, how: str = "1") -> str:
    channel = CHANNEL.format({"x": 1, "y": 2}[of] + 2 * bool(how.strip("1")), 3)
    return (
        f'%{name}, %{name}t = "stablehlo.recv"(%t) <{{channel_handle = {channel}, is_host_transfer = true}}> '
        f": ({TOKEN}) -> ({TYPE}, {TOKEN})"
    )


def call(name: str, of: str, how: str = "") -> str:
    return (
        f'%{name} = stablehlo.custom_call @print(%{of}) {{has_side_effect = true, backend_config = "{how}"}} '
        f": ({TYPE}) -> {TYPE}"
    )


def check(name: str, of: str, how: str = "") -> str:
    return f'stablehlo.custom_call @check{how}(%{of}) {{has_side_effect = true, backend_config = ""}} : ({TYPE}) -> ()'


KINDS = {"outfeed": outfeed, "infeed": infeed, "send": send, "recv": receive, "call": call, "call of nothing": check}


def program(*lines: str, devices: int = 1) -> str:
    """The sum of both arguments, and those lines beside."""
    whole = on(REPLICATED)
    begin = f"%t = stablehlo.create_token : {TOKEN}\n%zero = stablehlo.constant dense<0> : tensor<i32>"
    body = "\n".join((begin, *lines, f"%r = stablehlo.add %x, %y : {TYPE}", f"return %r : {TYPE}"))
    return module(f"%x: {TYPE} {whole}, %y: {TYPE} {whole}", f"{TYPE} {whole}", body, devices)


def branch(of: str, *lines: str, otherwise: bool = False) -> str:
    """The lines where the first element of a value is positive, or where it is not."""
    blocks = ["\n".join((*lines, "stablehlo.return")), "stablehlo.return"]
    first, second = reversed(blocks) if otherwise else blocks
    return f"""
%s = stablehlo.slice %{of} [0:1] : ({TYPE}) -> tensor<1xf32>
%e = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>
%z = stablehlo.constant dense<0.0> : tensor<f32>
%p = stablehlo.compare GT, %e, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>
"stablehlo.if"(%p) ({{
{first}
}}, {{
{second}
}}) : (tensor<i1>) -> ()"""


def loop(turns: int, *lines: str) -> str:
    inside = "\n".join(lines)
    return f"""
%n = stablehlo.constant dense<{turns}> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%w = stablehlo.while(%i = %zero) : tensor<i32>
cond {{
  %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
}} do {{
  {inside}
  %j = stablehlo.add %i, %one : tensor<i32>
  stablehlo.return %j : tensor<i32>
}}"""


def ways(kind: str) -> dict[str, tuple[str, str]]:
    """Programs that differ in what they do alone."""
    one = KINDS[kind]
    return {
        "of another value": (program(one("a", "x")), program(one("a", "y"))),
        "not at all": (program(one("a", "x")), program()),
        "where there was none": (program(), program(one("a", "x"))),
        "twice": (program(one("a", "x")), program(one("a", "x"), one("b", "x"))),
        "in another order": (program(one("a", "x"), one("b", "y")), program(one("a", "y"), one("b", "x"))),
        "in another way": (program(one("a", "x")), program(one("a", "x", "7"))),
        "in a branch": (program(branch("x", one("a", "x"))), program(branch("x"))),
        "in the other branch": (
            program(branch("x", one("a", "x"))),
            program(branch("x", one("a", "x"), otherwise=True)),
        ),
        "under another condition": (program(branch("x", one("a", "x"))), program(branch("y", one("a", "x")))),
        "in another number of turns": (program(loop(3, one("a", "x"))), program(loop(4, one("a", "x")))),
        "in no turn": (program(loop(3, one("a", "x"))), program(loop(0, one("a", "x")))),
    }


@pytest.mark.drawn(12)
@pytest.mark.parametrize("way", ways("outfeed"))
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_done_otherwise_is_never_proved(kind: str, way: str) -> None:
    for pair in (ways(kind)[way], ways(kind)[way][::-1]):
        report = hlo_verify.verify(*pair)
        assert report.verdict is Verdict.UNKNOWN
        (result,) = report.results
        assert result.code is Unsupported.OUTSIDE_WORLD and "the world outside" in result.reason


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_done_alike_is_proved(kind: str) -> None:
    one = KINDS[kind]
    for lines in ([one("a", "x"), one("b", "y")], [branch("x", one("a", "y"))], [loop(3, one("a", "x"))]):
        report = hlo_verify.verify(program(*lines), program(*lines))
        hangs = any(result.code is Unsupported.BRANCH for result in report.results)
        assert report.verdict is Verdict.PROVED or hangs


def test_what_each_of_several_devices_does_is_not_what_one_does() -> None:
    doing = program(outfeed("a", "x"), devices=4)
    assert hlo_verify.verify(doing, doing).verdict is Verdict.UNKNOWN


def test_an_effect_of_an_identity_is_none() -> None:
    """Shardy's marks are said to have one, so that nothing removes them."""
    mark = f"%m = stablehlo.custom_call @xla.sdy.FuncResultSharding(%x) {{has_side_effect = true}} : ({TYPE}) -> {TYPE}"
    assert hlo_verify.verify(program(mark), program()).verdict is Verdict.PROVED
