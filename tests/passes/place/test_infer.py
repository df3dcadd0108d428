"""Where arguments and results lie in pairs that do not say it, and that a wrong program stays wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load.load import load
from hlo_verify.passes.place.infer import infer
from hlo_verify.render.json import render as render_json
from hlo_verify.render.text import Style, render

PROVED, REFUTED, UNKNOWN = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN


def matrix(*shape: int) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def module(arguments: list[str], results: list[tuple[str, str]], body: str, replicas: int) -> str:
    """A module without any sharding; results are values and their types."""
    given = ", ".join(f"%a{n}: {kind}" for n, kind in enumerate(arguments))
    kinds = ", ".join(kind for _, kind in results)
    return (
        f"module @m attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = {replicas} : i32}} {{\n"
        f"func.func public @main({given}) -> ({kinds}) {{\n{body}\n"
        f"return {', '.join(value for value, _ in results)} : {kinds}\n}}\n}}\n"
    )


def all_reduce(result: str, operand: str, kind: str, groups: str = "[[0, 1]]") -> str:
    size = f"{groups.count('[') - 1}x{len(groups.split(']')[0].split(','))}"
    return f"""
    {result} = "stablehlo.all_reduce"({operand}) <{{replica_groups = dense<{groups}> : tensor<{size}xi64>}}> ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %r = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }}) : ({kind}) -> {kind}
"""


def product(result: str, left: str, right: str, sizes: tuple[int, int, int]) -> str:
    m, k, n = sizes
    kinds = f"({matrix(m, k)}, {matrix(k, n)}) -> {matrix(m, n)}"
    return f"{result} = stablehlo.dot_general {left}, {right}, contracting_dims = [1] x [0] : {kinds}\n"


def layer(inner: int, after: str) -> str:
    """`tanh(a0 @ a1) @ a2`, and what is done with `%y`."""
    hidden = matrix(4, inner)
    return (
        product("%h", "%a0", "%a1", (4, 6, inner))
        + f"%t = stablehlo.tanh %h : {hidden}\n"
        + product("%y", "%t", "%a2", (4, inner, 6))
        + after
    )


SHAPES = ([matrix(4, 6), matrix(6, 8), matrix(8, 6)], [matrix(4, 6), matrix(6, 4), matrix(4, 6)])
X = matrix(4, 6)


def report(whole: str, part: str) -> hlo_verify.Report:
    return hlo_verify.verify(whole, part)


def test_split_weights() -> None:
    whole = module(SHAPES[0], [("%y", X), ("%h", matrix(4, 8))], layer(8, ""), 1)
    part = module(SHAPES[1], [("%z", X), ("%h", matrix(4, 4))], layer(4, all_reduce("%z", "%y", X)), 2)
    found = report(whole, part)
    assert found.verdict is PROVED
    assert found.inferred == (
        "argument arg0: whole on every device",
        "argument arg1: dimension 1 in 2",
        "argument arg2: dimension 0 in 2",
        "result result[0]: whole on every device",
        "result result[1]: dimension 1 in 2",
    )
    assert found.headline == (
        "PROVED with arg1 split along dimension 1 over 2 devices; arg2 split along dimension 0 over 2 devices; "
        "result[1] split along dimension 1 over 2 devices; arg0, result[0] replicated (inferred)"
    )


def test_a_result_that_is_concatenated_is_said_in_the_first_line() -> None:
    given = [f'{matrix(4, 6)} {{mhlo.sharding = "{{devices=[1,2]<=[2]}}"}}']
    whole = module(given, [("%y", X)], f"%y = stablehlo.tanh %a0 : {X}", 1).replace("partitions = 1", "partitions = 2")
    local = matrix(4, 3)
    part = module([local], [("%y", local)], f"%y = stablehlo.tanh %a0 : {local}", 2)
    found = report(whole, part)
    assert found.headline == "PROVED with result[0] split along dimension 1 over 2 devices (inferred)"
    assert render([found], Style(), several=False).splitlines()[0] == found.headline
    assert json.loads(render_json([found], several=False))["headline"] == found.headline


def test_a_missing_all_reduce() -> None:
    whole = module(SHAPES[0], [("%y", X)], layer(8, ""), 1)
    part = module(SHAPES[1], [("%y", X)], layer(4, ""), 2)
    found = report(whole, part)
    assert found.verdict is UNKNOWN and found.results[0].code is Annotation.UNREDUCED_RESULT


def test_a_missing_all_reduce_inside() -> None:
    whole = module(SHAPES[0], [("%z", X)], layer(8, f"%z = stablehlo.tanh %y : {X}"), 1)
    part = module(SHAPES[1], [("%z", X)], layer(4, f"%z = stablehlo.tanh %y : {X}"), 2)
    assert report(whole, part).verdict is REFUTED


BIASED = f"%b = stablehlo.broadcast_in_dim %a3, dims = [1] : (tensor<6xf32>) -> {X}\n%z = stablehlo.add %y, %b : {X}\n"


def test_a_bias_that_every_device_adds() -> None:
    """It is counted twice, unless devices hold addends of it (one of them all of it, the others zeros)."""
    shapes = [[*each, "tensor<6xf32>"] for each in SHAPES]
    whole = module(shapes[0], [("%z", X)], layer(8, BIASED), 1)
    part = module(shapes[1], [("%s", X)], layer(4, BIASED + all_reduce("%s", "%z", X)), 2)
    found = report(whole, part)
    assert found.verdict is PROVED and "argument arg3: the sum of what devices hold (2 addends)" in found.inferred
    late = module(shapes[1], [("%z", X)], layer(4, all_reduce("%s", "%y", X) + BIASED.replace("%y,", "%s,")), 2)
    found = report(whole, late)
    assert found.verdict is PROVED and "arguments arg0, arg3: whole on every device" in found.inferred


def test_a_sum_is_not_taken_for_one_because_the_program_completes_it_elsewhere(tmp_path: Path) -> None:
    whole = module(SHAPES[0], [("%y", X), ("%y", X)], layer(8, ""), 1)
    part = module(SHAPES[1], [("%y", X), ("%z", X)], layer(4, all_reduce("%z", "%y", X)), 2)
    found = report(whole, part)
    assert [result.verdict for result in found.results] == [UNKNOWN, PROVED]
    path = tmp_path / "results.toml"
    path.write_text('[results]\n0 = "{unreduced}"\n')
    assert hlo_verify.verify(whole, part, results=path).verdict is PROVED


def fused(k: int, sizes: tuple[int, int, int]) -> str:
    """Three products of `%a0` with weights that are one argument, taken apart again."""
    m, total = 4, sum(sizes)
    a, b = sizes[0], sizes[0] + sizes[1]
    bounds = ((0, a), (a, b), (b, total))
    text = product("%f", "%a0", "%a1", (m, 6, total))
    for n, (start, stop) in enumerate(bounds):
        kind = matrix(m, stop - start)
        text += f"%s{n} = stablehlo.slice %f [0:{m}, {start}:{stop}] : ({matrix(m, total)}) -> {kind}\n"
        text += f"%t{n} = stablehlo.{('tanh', 'sine', 'cosine')[n]} %s{n} : {kind}\n"
    return text


def fused_pair(second: tuple[int, int, int]) -> tuple[str, str]:
    texts = []
    for sizes, replicas in (((8, 4, 4), 1), (second, 2)):
        results = [(f"%t{n}", matrix(4, size)) for n, size in enumerate(sizes)]
        texts.append(module([X, matrix(6, sum(sizes))], results, fused(6, sizes), replicas))
    return texts[0], texts[1]


def test_weights_that_are_several_in_one() -> None:
    found = report(*fused_pair((4, 2, 2)))
    assert found.verdict is PROVED
    assert "arguments arg1[:, 0:8], arg1[:, 8:12], arg1[:, 12:16]: dimension 1 in 2" in found.inferred


@pytest.mark.slow
def test_a_witness_of_weights_in_parts_is_one_of_the_modules_that_take_parts(tmp_path: Path) -> None:
    whole, part = fused_pair((4, 2, 2))
    path = tmp_path / "witness"
    found = hlo_verify.verify(whole, part.replace("stablehlo.cosine", "stablehlo.negate"), witness=path)
    assert [result.verdict for result in found.results] == [PROVED, PROVED, REFUTED]
    assert [result.verdict for result in hlo_verify.replay(path).results] == [REFUTED]


@pytest.mark.parametrize("groups", ["[[0, 1], [2, 3]]", "[[0, 2], [1, 3]]", "[[3, 0], [1, 2]]"])
def test_who_communicates_tells_who_holds_what(groups: str) -> None:
    """Four devices hold each half twice."""
    whole = module(SHAPES[0], [("%y", X)], layer(8, ""), 1)
    part = module(SHAPES[1], [("%z", X)], layer(4, all_reduce("%z", "%y", X, groups)), 4)
    assert report(whole, part).verdict is PROVED


def test_nobody_communicates() -> None:
    """It is right where two devices hold zeros of both weights, and the result is left unreduced."""
    whole = module(SHAPES[0], [("%y", X)], layer(8, ""), 1)
    part = module(SHAPES[1], [("%z", X)], layer(4, all_reduce("%z", "%y", X, "[[0], [1], [2], [3]]")), 4)
    found = report(whole, part)
    assert found.verdict is UNKNOWN and found.results[0].code is Annotation.UNREDUCED_RESULT
    assert "zeros beside them" in found.under


@pytest.mark.drawn(1)
@pytest.mark.parametrize("groups", ["[[0, 1], [2, 3]]", "[[0, 2], [1, 3]]"])
def test_what_is_made_of_addends_may_be_one(groups: str, tmp_path: Path) -> None:
    """The columns of each addend are gathered; then every device holds one of two addends of the result."""
    kind = "tensor<4x6xf32>"
    given = '{mhlo.sharding = "{devices=[1,2,2]<=[4] last_tile_dims={unreduced}}"}'
    body = "%y = stablehlo.negate %a0 : tensor<4xCx f32>".replace(" f32", "f32")
    whole = module([f"{kind} {given}"], [("%y", kind)], body.replace("C", "6"), 1)
    whole = whole.replace("num_partitions = 1", "num_partitions = 4")
    gather = (
        f'%z = "stablehlo.all_gather"(%y) <{{all_gather_dim = 1 : i64, replica_groups = dense<{groups}> : '
        f"tensor<2x2xi64>}}> : (tensor<4x3xf32>) -> {kind}"
    )
    part = module(["tensor<4x3xf32>"], [("%z", kind)], body.replace("C", "3") + "\n" + gather, 4)
    (result,) = report(whole, part).results
    if groups == "[[0, 1], [2, 3]]":
        assert result.verdict is not PROVED and result.code is not Annotation.UNREDUCED_RESULT
        return
    assert result.verdict is UNKNOWN and result.code is Annotation.UNREDUCED_RESULT
    path = tmp_path / "results.toml"
    path.write_text(result.reason[result.reason.index("[results]") :].replace("] ", "]\n", 1))
    assert hlo_verify.verify(whole, part, results=path).verdict is PROVED


def test_what_is_given_is_not_inferred() -> None:
    given = matrix(6, 8) + ' {mhlo.sharding = "{devices=[1,2]1,0}"}'
    whole = module([SHAPES[0][0], given, SHAPES[0][2]], [("%y", X)], layer(8, ""), 1)
    part = module(SHAPES[1], [("%z", X)], layer(4, all_reduce("%z", "%y", X)), 2)
    found = report(whole.replace("num_partitions = 1", "num_partitions = 2"), part)
    assert found.verdict is UNKNOWN, "it would be right with the halves of the second weight in the other order too"
    assert not any("arg1" in line for line in found.inferred)


@pytest.mark.parametrize(("shape", "code"), [(matrix(12, 4), Input.NOT_A_PAIR), (matrix(6, 3), Annotation.NO_SHARDING)])
def test_shapes_that_do_not_go_together(shape: str, code: object) -> None:
    whole = module([matrix(6, 8)], [("%a0", matrix(6, 8))], "", 1)
    part = module([shape], [("%a0", shape)], "", 2)
    with pytest.raises(InputError, match="arg0") as error:
        report(whole, part)
    assert error.value.code is code


def test_demanded_results(tmp_path: Path) -> None:
    """A sum that nobody completes is what it is, where that is demanded; else it is a forgotten all_reduce."""
    whole = module(SHAPES[0], [("%y", X)], layer(8, ""), 1)
    part = module(SHAPES[1], [("%y", X)], layer(4, ""), 2)
    path = tmp_path / "results.toml"
    path.write_text('[results]\n0 = "{unreduced}"\n')
    found = hlo_verify.verify(whole, part, results=path)
    assert found.verdict is PROVED and not any("result" in line for line in found.inferred)
    path.write_text('[results]\n0 = "{replicated}"\n')
    assert hlo_verify.verify(whole, part, results=path).verdict is REFUTED
    path.write_text('[arguments]\n0 = "{replicated}"\n')
    with pytest.raises(InputError, match="of arguments, shardings says"):
        hlo_verify.verify(whole, part, results=path)


def test_what_was_inferred_for_one_module_is_judged_by_the_next() -> None:
    """Along a chain of dumps: placements are refuted for the module that is looked at, not for the first."""
    whole = load(module([X], [("%y", X)], f"%y = stablehlo.tanh %a0 : {X}", 1))
    first, later = (load(module([X], [("%y", X)], f"%y = stablehlo.{name} %a0 : {X}", 2)) for name in ("tanh", "sine"))
    inferred = infer(whole, first).of(later)
    assert inferred.partitioned is later and inferred.guessed is not None and inferred.guessed.partitioned is later
