"""All passes of XLA's CPU compiler on a small network; and chains in which a dump was edited, which are found out."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlo_verify import cli
from hlo_verify.passes.chain import each_pass
from hlo_verify.passes.chain.each_pass import verify_passes
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import Module
from hlo_verify.report import ChainReport, Verdict
from hlo_verify.sources.dump_chains import find_chains

PROGRAM = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("model",))

def loss(x, w, v):
    y = jax.nn.gelu(x @ w) @ v
    return (y * y).mean() * 0.1 / 0.7

def on(*axes):
    return NamedSharding(mesh, P(*axes))

shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((16, 32), (32, 64), (64, 32))]
shardings = (on(), on(None, "model"), on("model"))
step = jax.value_and_grad(loss, argnums=(1, 2))
jax.jit(step, in_shardings=shardings, out_shardings=(on(), shardings[1:])).lower(*shapes).compile()
"""

LAST = "cpu_after_optimizations"


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What XLA dumps of the program; its chain alone."""
    folder = tmp_path_factory.mktemp("dumps")
    flags = (
        f"--xla_force_host_platform_device_count=4 --xla_dump_to={folder} --xla_dump_hlo_as_text "
        "--xla_dump_large_constants=true --xla_dump_hlo_pass_re=.* --xla_backend_optimization_level=0"
    )
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": ""}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True)
    for other in folder.iterdir():
        if other.is_file() and not other.name.startswith("module_0000.jit_loss."):
            other.unlink()
    return folder


def verified(folder: Path) -> ChainReport:
    [chain] = find_chains(folder)
    return verify_passes(chain)


def edited(folder: Path, into: Path, file: str, edit: Callable[[str], str]) -> Path:
    """A copy of the dumps, of which one is edited."""
    [chain] = find_chains(folder)
    for dump in chain.dumps:
        shutil.copy(dump.path, into)
        if file in dump.path.name:
            text = dump.path.read_text()
            assert edit(text) != text
            (into / dump.path.name).write_text(edit(text))
    return into


def without_all_reduce(text: str) -> str:
    """The last all-reduce gives back its operand."""
    found = list(re.finditer(r"(= [^(]*) all-reduce\((%[\w.-]+)\)[^\n]*", text))
    return text[: found[-1].start()] + f"{found[-1][1]} copy({found[-1][2]})" + text[found[-1].end() :]


def other_constant(text: str) -> str:
    """A constant inside of a fusion, a little larger."""
    entry = text.index("ENTRY")
    found = [m for m in re.finditer(r"constant\((0\.\d+)\)", text) if m.start() < entry]
    assert found
    return text[: found[0].start()] + f"constant({float(found[0][1]) * 1.01:.9g})" + text[found[0].end() :]


def test_every_pass_is_proved(dumps: Path) -> None:
    chain = verified(dumps)
    assert [step for step in chain.steps if step.verdict is not Verdict.PROVED] == []
    assert chain.verdict is Verdict.PROVED
    assert len(chain.steps) > 25
    assert chain.devices == 4
    assert chain.steps[-1].file.endswith(f"{LAST}.txt")
    assert any("rounded" in said for said in chain.assumptions)
    assert sum(step.how == "equal to the logical module" for step in chain.steps) >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "edit"),
    [(LAST, without_all_reduce), ("after_fusion.", other_constant)],
)
def test_an_edit_is_found_and_its_pass_is_named(
    dumps: Path, tmp_path: Path, file: str, edit: Callable[[str], str]
) -> None:
    chain = verified(edited(dumps, tmp_path, file, edit))
    first = chain.first
    assert chain.verdict is Verdict.REFUTED
    assert first is not None and file in first.file and first.verdict is Verdict.REFUTED
    assert chain.report is not None and any(result.witness is not None for result in chain.report.results)
    findings = [result.finding for result in chain.report.results if result.finding is not None]
    assert all(finding.scene is not None for finding in findings)  # for the pictures of a page
    assert findings[0].scene is not None and findings[0].scene.partitioned.parts and findings[0].scene.logical.parts
    later = chain.steps[chain.steps.index(first) + 1 :]
    assert all(step.verdict is Verdict.PROVED for step in later)  # the others are as XLA wrote them


ROOT_OF_TWO = np.sqrt(np.float32(2))
NEIGHBOURS = [np.nextafter(ROOT_OF_TWO, np.float32(end)) for end in (0, 2)]


def difference(made: tuple[str, ...], knows: str = "") -> str:
    """`(x * n - x * 1.41421354) * 1e8`, plus the number of the device where it knows of several."""
    lines = (
        *made,
        f"k = f32[] constant({ROOT_OF_TWO:.9g})",
        "g = f32[] constant(1e8)",
        *(f"{v}s = f32[4] broadcast({v}), dimensions={{}}" for v in "nkg"),
        "p = f32[4] multiply(x, ns)",
        "q = f32[4] multiply(x, ks)",
        "d = f32[4] subtract(p, q)",
        "r = f32[4] multiply(d, gs)",
        "u = u32[] partition-id()" if knows else "u = u32[] constant(0)",
        "v = f32[] convert(u)",
        "w = f32[4] broadcast(v), dimensions={}",
        "ROOT s = f32[4] add(r, w)",
    )
    return (
        f"HloModule m{knows}\n\nENTRY e {{\n  x = f32[4] parameter(0)\n"
        + "\n".join(f"  {line}" for line in lines)
        + "\n}\n"
    )


@pytest.mark.parametrize("knows", ["", ", num_partitions=2", ", replica_count=2"])
@pytest.mark.parametrize(
    ("constant", "verdict"),
    [*((neighbour, Verdict.UNKNOWN) for neighbour in NEIGHBOURS), (ROOT_OF_TWO, Verdict.PROVED)],
    ids=["below", "above", "as it is rounded"],
)
def test_a_neighbour_of_a_root_is_looked_at_where_the_operations_are_the_same(
    constant: float, verdict: Verdict, knows: str, tmp_path: Path
) -> None:
    """The first computes 0 in floating point, and 2.4 x with real numbers; with a neighbour it is 11.9 x or -11.9 x."""
    first = difference(("two = f32[] constant(2)", "n = f32[] sqrt(two)"), knows)
    for step, text in enumerate((first, difference((f"n = f32[] constant({constant:.9g})",), knows))):
        (tmp_path / f"module_0000.m.{step:04d}.simplification.after_p{step}.before_q.txt").write_text(text)
    assert [step.verdict for step in verified(tmp_path).steps] == [Verdict.PROVED, verdict]


def test_a_dump_that_cannot_be_read_is_unknown_alone(dumps: Path, tmp_path: Path) -> None:
    folder = edited(dumps, tmp_path, "after_fusion.", lambda text: text[: text.index("ENTRY")])
    chain = verified(folder)
    assert chain.verdict is Verdict.UNKNOWN
    assert [step.verdict for step in chain.steps].count(Verdict.UNKNOWN) == 1
    assert chain.first is not None and "cut short" in chain.first.reason


def load_until_fusion(error: BaseException) -> Callable[..., Module]:
    """What loads every dump but the one after fusion, at which this is raised."""

    def loading(path: Path, **options: Any) -> Module:
        if "after_fusion." in path.name:
            raise error
        return load(path, **options)

    return loading


def test_a_defect_at_one_step_is_said_and_loses_nothing_else(
    dumps: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(each_pass, "load", load_until_fusion(ZeroDivisionError("oh")))
    assert cli.main(["--each-pass", str(dumps), "--format", "json"]) == 70
    [chain] = json.loads(capsys.readouterr().out)["modules"]
    assert chain["verdict"] == "UNKNOWN"
    [failed] = [step for step in chain["steps"] if step["verdict"] != "PROVED"]
    assert failed["code"] == "HV901" and "ZeroDivisionError: oh" in failed["reason"]


def test_an_interruption_keeps_what_is_known(
    dumps: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(each_pass, "load", load_until_fusion(KeyboardInterrupt()))
    assert cli.main(["--each-pass", str(dumps), "--format", "json"]) == 130
    [chain] = json.loads(capsys.readouterr().out)["modules"]
    assert chain["verdict"] == "UNKNOWN"
    assert chain["missing"] > 5
    assert {step["verdict"] for step in chain["steps"]} == {"PROVED"}


def test_behind_the_partitioner_alone_nothing_is_proved(dumps: Path, tmp_path: Path) -> None:
    folder = edited(dumps, tmp_path, LAST, other_constant)
    [chain] = find_chains(folder)
    for dump in chain.dumps[: chain.partitioned]:
        dump.path.unlink()
    assert {step.verdict for step in verified(folder).steps} == {Verdict.UNKNOWN}


def test_what_a_wrong_module_was_partitioned_into_is_wrong(dumps: Path, tmp_path: Path) -> None:
    """Nothing is proved again only because the partitioner did what it should."""
    [whole] = find_chains(dumps)
    folder, file = tmp_path, whole.dumps[whole.partitioned - 1].path.name

    def other_factor(text: str) -> str:
        return text.replace("constant(0.044715", "constant(0.054715", 1)

    chain = verified(edited(dumps, folder, file, other_factor))
    steps = {step.file: step for step in chain.steps}
    assert steps[file].verdict is Verdict.REFUTED
    assert chain.first is steps[file]
    assert all(step.verdict is not Verdict.PROVED for step in chain.steps[whole.partitioned :])


@pytest.mark.slow
def test_on_the_command_line(dumps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = edited(dumps, tmp_path, LAST, other_constant)
    assert cli.main(["--each-pass", str(folder), "--color", "never"]) == 1
    text = capsys.readouterr().out
    assert re.search(
        rf"The value was changed first in the pass end: optimizations \(step \d+\): .*{LAST}.txt computes something",
        text,
    )
    assert "  witness  " in text
    assert re.search(r"REFUTED  \d+ of \d+ dumps proved on 4 devices, ", text)


@pytest.mark.parametrize("options", [["--recheck"], ["second"], ["--keep", "there"]])
def test_what_does_not_go_with_it(tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--each-pass", str(tmp_path), *options]) == 2
    assert "HV400" in capsys.readouterr().err


def test_a_folder_without_a_chain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "module_0000.jit_f.cpu_after_optimizations.txt").write_text("HloModule m")
    assert cli.main(["--each-pass", str(tmp_path)]) == 2
    assert "HV417" in capsys.readouterr().err


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--each-pass", str(tmp_path / "nowhere")]) == 2
    assert f"HV401]: there is no folder {tmp_path / 'nowhere'}" in capsys.readouterr().err


THIRD = "0.333333343"


def written(folder: Path, *bodies: str) -> ChainReport:
    """A chain of three-line programs in HLO, verified: each is an expression that ends in %y."""
    folder.mkdir()
    for n, body in enumerate(bodies):
        text = "HloModule m\n\nENTRY main {\n  %x = f32[4] parameter(0)\n" + body + "\n}\n"
        (folder / f"module_0000.m.{n:04}.simplification.after_pass-{n}.before_pass-{n + 1}.txt").write_text(text)
    return verified(folder)


def lines(*operations: str) -> str:
    return "\n".join(f"  {operation}" for operation in operations)


def splat(name: str, value: str) -> str:
    return f"%{name}.0 = f32[] constant({value})\n  %{name} = f32[4] broadcast(%{name}.0), dimensions={{}}"


def test_a_rounding_that_is_amplified_is_not_taken_for_a_rounding(tmp_path: Path) -> None:
    """(x / 3 * 3 - x) * 1e9 is 0; with x / 3 folded into a product it is 29.8 x."""
    rest = (
        splat("three", "3"), splat("many", "1e9"), "%t = f32[4] multiply(%s, %three)", "%u = f32[4] subtract(%t, %x)",
        "ROOT %y = f32[4] multiply(%u, %many)",
    )  # fmt: skip
    divided = lines(splat("c", "3"), "%s = f32[4] divide(%x, %c)", *rest)
    folded = lines(splat("c", THIRD), "%s = f32[4] multiply(%x, %c)", *rest)
    found = written(tmp_path / "bad", divided, folded, lines(splat("y.1", "0"), "ROOT %y = f32[4] copy(%y.1)"))
    assert [step.verdict for step in found.steps] == [Verdict.PROVED, Verdict.UNKNOWN, Verdict.PROVED]
    assert found.steps[1].code == "HV310"
    assert f"the constant {THIRD} is 1 / 3, rounded; in the result of subtract" in found.steps[1].reason
    assert not any("1 / 3" in assumption for assumption in found.assumptions)
    end = "ROOT %y = f32[4] add(%s, %x)"
    divided, folded = (text.replace(lines(*rest), lines(end)) for text in (divided, folded))
    found = written(tmp_path / "good", divided, folded)
    assert found.verdict is Verdict.PROVED
    assert f"the constant {THIRD} is 1 / 3, rounded" in found.assumptions


def test_what_works_device_by_device_is_not_compared_as_if_there_were_one(tmp_path: Path) -> None:
    """`x * number of the device` is `x * 0` on a single one."""
    numbered = lines(
        "%p = u32[] partition-id()",
        "%c.0 = f32[] convert(%p)",
        "%c = f32[4] broadcast(%c.0), dimensions={}",
        "ROOT %y = f32[4] multiply(%x, %c)",
    )
    nothing = lines(splat("c", "0"), "ROOT %y = f32[4] multiply(%x, %c)")
    for n, chain in enumerate(((numbered, nothing), (nothing, numbered))):
        found = written(tmp_path / str(n), *chain)
        assert [step.verdict for step in found.steps] == [Verdict.PROVED, Verdict.UNKNOWN]
        assert found.steps[1].reason == each_pass.BY_DEVICE
    assert written(tmp_path / "same", numbered, numbered).verdict is Verdict.PROVED


@pytest.mark.parametrize("moved", ["argument", "result"])
def test_no_pass_may_move_what_the_program_places(tmp_path: Path, moved: str) -> None:
    def placed(argument: str, result: str) -> str:
        said = [f'tensor<8xf32> {{mhlo.sharding = "{{devices=[4]{order}}}"}}' for order in (argument, result)]
        return (
            "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
            f"func.func public @main(%x: {said[0]}) -> ({said[1]}) {{\n"
            "%o = stablehlo.add %x, %x : tensor<8xf32>\nreturn %o : tensor<8xf32>\n}\n}\n"
        )

    other = ("3,2,1,0", "<=[4]") if moved == "argument" else ("<=[4]", "3,2,1,0")
    for n, text in enumerate((placed("<=[4]", "<=[4]"), placed("<=[4]", "0,1,2,3"), placed(*other))):
        (tmp_path / f"module_0000.m.{n:04}.simplification.after_pass-{n}.before_pass-{n + 1}.txt").write_text(text)
    found = verified(tmp_path)
    assert [step.verdict for step in found.steps] == [Verdict.PROVED, Verdict.PROVED, Verdict.UNKNOWN]
    assert found.steps[2].code == "HV108" and moved in found.steps[2].reason


def test_each_reading_is_asked_about_where_none_is_equal_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which reading of 0.1 is the right one is only seen case by case then; a wrong product is none in any."""
    monkeypatch.setattr(each_pass._Walk, "_is_equal_at_once", lambda *_: False)
    added = (splat("a", "0.1"), "%b = f32[4] add(%x, %a)")
    divided = lines(*added, splat("c", "10"), "%d = f32[4] divide(%x, %c)", "ROOT %y = f32[4] add(%b, %d)")
    multiplied = lines(*added, "%d = f32[4] multiply(%x, %a)", "ROOT %y = f32[4] add(%b, %d)")
    found = written(tmp_path / "good", divided, multiplied)
    assert [(step.verdict, step.how) for step in found.steps][1:] == [(Verdict.PROVED, each_pass.PROVED_AGAIN)]
    assert "the constant 0.100000001 is 1 / 10, rounded" in found.assumptions
    wrong = multiplied.replace("add(%b, %d)", "add(%a, %d)")
    found = written(tmp_path / "bad", divided, wrong)
    assert found.steps[1].verdict is Verdict.REFUTED
    many = (splat("g", "1e9"), splat("t", "10"), "%u = f32[4] multiply(%d, %t)", "%v = f32[4] subtract(%u, %x)")
    end = (*many, "%w = f32[4] multiply(%v, %g)", "ROOT %y = f32[4] add(%b, %w)")
    far = [text.replace("ROOT %y = f32[4] add(%b, %d)", lines(*end).strip()) for text in (divided, multiplied)]
    assert written(tmp_path / "far", *far).steps[1].verdict is Verdict.UNKNOWN
