"""Modules that nest deeply are verified, and what nests too deeply is said in one message."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hlo_verify import api, cli, options
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program import depth
from hlo_verify.report import Verdict

KIND = "tensor<4xf32>"


def calls(count: int) -> str:
    """So many functions, each of which calls the next."""
    functions = [
        f"func.func @main(%x: {KIND}) -> {KIND} {{ %y = call @f1(%x) : ({KIND}) -> {KIND} return %y : {KIND} }}"
    ]
    for n in range(1, count):
        body = f"%y = stablehlo.tanh %x : {KIND}"
        if n < count - 1:
            body = f"%y = call @f{n + 1}(%x) : ({KIND}) -> {KIND}"
        functions.append(f"func.func private @f{n}(%x: {KIND}) -> {KIND} {{ {body} return %y : {KIND} }}")
    return "module {\n" + "\n".join(functions) + "\n}\n"


def branches(count: int) -> str:
    """So many conditionals, each inside of the one before."""
    lines = [f"module {{ func.func @main(%p: tensor<i1>, %x: {KIND}) -> {KIND} {{"]
    lines += [f'%r{n} = "stablehlo.if"(%p) ({{' for n in range(count)]
    lines += [f"%r{count} = stablehlo.tanh %x : {KIND}"]
    end = f"stablehlo.return %x : {KIND} }}) : (tensor<i1>) -> {KIND}"
    lines += [f"stablehlo.return %r{n} : {KIND} }}, {{ {end}" for n in range(count, 0, -1)]
    return "\n".join((*lines, f"return %r0 : {KIND} }} }}"))


@pytest.mark.parametrize("nested", [calls(300), branches(200)], ids=["300 calls", "200 branches"])
def test_deep_modules_are_proved(nested: str) -> None:
    assert api.verify(nested, nested, devices=1).verdict is Verdict.PROVED


@pytest.mark.parametrize("kind", [calls, branches])
def test_what_is_too_deep_is_an_input_error(
    kind: Callable[[int], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(depth, "FRAMES", sys.getrecursionlimit())
    path = tmp_path / "deep.mlir"
    path.write_text(kind(1000))
    assert cli.main([str(path), str(path), "--devices", "1"]) == options.INPUT_ERROR
    said = capsys.readouterr().err
    assert said.startswith("hlo-verify: error[HV406]: a module is nested too deeply")
    assert said.count("\n") == 1


def test_other_threads_have_the_same_room() -> None:
    """Also two of them at a time, beside the main one."""

    def verdict(count: int) -> object:
        try:
            return api.verify(calls(count), calls(count), devices=1).verdict
        except InputError as error:
            return error.code

    before = sys.getrecursionlimit()
    with ThreadPoolExecutor(2) as threads:
        found = threads.map(verdict, [300, 3000, 300])
        assert verdict(300) is Verdict.PROVED
        assert list(found) == [Verdict.PROVED, "HV406", Verdict.PROVED]
    assert sys.getrecursionlimit() == before


def test_the_limit_of_frames_is_put_back() -> None:
    before = sys.getrecursionlimit()
    with pytest.raises(InputError):
        api.verify("damaged\n", "damaged\n")
    assert sys.getrecursionlimit() == before
