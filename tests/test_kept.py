"""Verdicts of files that are kept: found for the same question, and for no other."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from hlo_verify import asked, cli, kept
from hlo_verify.cache import keys
from hlo_verify.cache.store import Store
from hlo_verify.diagnostics import Input, Internal, Solver
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jobs import Job
from hlo_verify.kept import ANEW, HERE, HOW, Kept, is_final
from hlo_verify.registered_calls import Said, as_said
from hlo_verify.render import Outcome
from hlo_verify.report import ChainReport, Report, Result, Spent, Step, Verdict
from hlo_verify.tasks import Asking
from tests.programs import report
from tests.test_in_parallel import fill, without_times

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN

MODULE = "HloModule m\nENTRY e { ROOT c = f32[] constant(%s) }\n"


class Counted:
    """Decides with a report, and counts how often."""

    def __init__(self, answer: Report | BaseException | None = None, meanwhile: Callable[[], object] = int) -> None:
        self.answer, self.meanwhile, self.times = answer or report(P, U), meanwhile, 0

    def __call__(self, *_: object, **options: object) -> Report:
        self.times += 1
        self.meanwhile()
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.hlo").write_text(MODULE % 1)
    Path("b.hlo").write_text(MODULE % 2)
    Path("s.toml").write_text("")
    Path("r.toml").write_text("")
    return tmp_path


USUAL = ("a.hlo", "b.hlo", "--cache", "kept", "--shardings", "s.toml", "--results", "r.toml")


def run(*more: str, given: tuple[str, ...] = USUAL, **of: Any) -> int:
    """How often something was decided."""
    counted = Counted(**of)
    cli.main([*given, *more], verify=counted)
    return counted.times


def test_the_same_question_is_decided_once(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for times in (1, 0, 0):
        assert run("--format", "json") == times
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1] | {"kept": False}
    assert said[1] == said[2] and said[1]["kept"]
    assert run() == 0 and "1.4 s in an earlier run, kept\n" in capsys.readouterr().out
    assert run("--no-cache") == 1 and "kept" not in capsys.readouterr().out
    assert cli.main(["cache", "info", "--cache", "kept"]) == 0 and "1 verdict" in capsys.readouterr().out
    assert cli.main(["cache", "clear", "--cache", "kept"]) == 0
    assert run() == 1


def write(name: str, text: str) -> Callable[[], object]:
    return lambda: Path(name).write_text(text)


@pytest.mark.parametrize(
    "change",
    [
        write("a.hlo", MODULE % 3),
        write("b.hlo", MODULE % 2.0000001),
        write("b.hlo", MODULE % 2 + "\n"),
        write("s.toml", "devices = 2"),
        write("r.toml", "devices = 2"),
        write("pyproject.toml", '[tool.hlo-verify.assume]\nx = "positive"\n'),
        write("pyproject.toml", '[tool.hlo-verify]\neffort = "low"\n'),
    ],
    ids=["logical", "partitioned", "a line", "shardings", "results", "precondition", "effort"],
)
def test_other_files_are_another_question(change: Callable[[], object]) -> None:
    assert (run(), run()) == (1, 0)
    change()
    assert (run(), run()) == (1, 0)


@pytest.mark.parametrize(
    "more",
    [
        ("--devices", "2"),
        ("--assume", "x is positive"),
        ("--effort", "high"),
        ("--time-limit", "299"),
        ("--no-refute",),
        ("--approximation", "x = y"),
    ],
)
def test_other_options_are_another_question(more: tuple[str, ...]) -> None:
    assert (run(), run(*more), run(*more), run()) == (1, 1, 0, 0)


def test_other_names_and_roles_are_another_question() -> None:
    assert run() == 1
    Path("c.hlo").write_bytes(Path("b.hlo").read_bytes())
    rest = USUAL[2:]
    for given in (("a.hlo", "c.hlo"), ("b.hlo", "a.hlo"), ("a.hlo",), ("a.hlo", "a.hlo"), ("a.hlo", "b.hlo", "c.hlo")):
        assert run(given=(*given, *rest[:2])) == 1, given
        assert run(given=(*given, *rest[:2])) == 0, given


@pytest.mark.parametrize("name", ["XLA_FLAGS", "JAX_ENABLE_X64", "TPU_SKIP_MDS_QUERY"])
def test_other_settings_of_xla_are_another_question(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (run(), run()) == (1, 0)
    monkeypatch.setenv(name, "another value")
    assert (run(), run()) == (1, 0)


@pytest.mark.parametrize("changed", ["version", "_source"])
def test_another_tool_is_another_question(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (run(), run()) == (1, 0)
    monkeypatch.setattr(keys, changed, lambda *_: "9")
    keys.this_tool.cache_clear()
    assert (run(), run()) == (1, 0)
    monkeypatch.undo()
    keys.this_tool.cache_clear()


def test_what_is_compressed_counts_by_what_it_holds() -> None:
    for time in (1, 2):
        Path("b.hlo").write_bytes(gzip.compress((MODULE % 2).encode(), mtime=time))
        assert run() == 2 - time
    Path("b.hlo").write_bytes(Path("b.hlo").read_bytes()[:-9])
    assert (run(), run()) == (1, 1)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE verdicts SET report = zeroblob(100)",
        "UPDATE verdicts SET seal = zeroblob(32)",
        "UPDATE verdicts SET key = zeroblob(32)",
        "DROP TABLE verdicts",
    ],
)
def test_a_damaged_table_has_no_verdicts(damage: str) -> None:
    assert (run(), run()) == (1, 0)
    with sqlite3.connect(Store(Path("kept")).path) as table:
        table.execute(damage)
    table.close()
    assert (run(), run()) == (1, 0)


def test_a_file_that_is_no_table_keeps_nothing() -> None:
    assert run() == 1
    Store(Path("kept")).path.write_bytes(b"nothing of SQLite" * 1000)
    assert (run(), run()) == (1, 1)


def with_result(**given: Any) -> Report:
    return replace(report(P), results=(replace(Result(0, "y", U, "no proof"), **given),))


@pytest.mark.parametrize(
    "answer",
    [
        with_result(spent=Spent((), 0, 0, (), "equal layers were derived")),
        with_result(reason=f"no proof{asked.INTERRUPTED}"),
        with_result(code=Internal.DISAGREEMENT),
        InputError("damaged", Input.DAMAGED),
        KeyError("a defect"),
    ],
    ids=["late", "interrupted", "disagreement", "input", "defect"],
)
def test_what_is_not_final_is_not_kept(answer: Report | BaseException) -> None:
    assert (run(answer=answer), run()) == (1, 1)


@pytest.mark.parametrize("more", [("--recheck",), ("--witness", "found.zip")])
def test_what_is_asked_for_besides_is_made_each_time(more: tuple[str, ...]) -> None:
    assert (run(), run(*more), run(*more)) == (1, 1, 1)
    assert run("--keep", "modules", given=("a.hlo", "--cache", "kept")) == 1
    assert run("--keep", "modules", given=("a.hlo", "--cache", "kept")) == 1


def test_a_file_that_is_written_meanwhile_has_no_verdict() -> None:
    """Nor has what was there before: the report is about neither for certain."""
    assert run(meanwhile=write("b.hlo", MODULE % 3)) == 1
    assert run(meanwhile=write("b.hlo", MODULE % 2)) == 1
    assert (run(), run()) == (1, 0)


def test_meanings_of_custom_calls_have_no_content_to_go_by() -> None:
    other = Said("f computes g", lambda: None)
    for target, times in (("constant", 1), ("other", 0), ("ot\\her", 1), ("ö", 1)):
        assert run() in (0, 1)
        with as_said({target: other}):
            assert run() == times, target


def test_it_is_off_unless_somebody_asks(capsys: pytest.CaptureFixture[str]) -> None:
    pair = ("a.hlo", "b.hlo")
    assert (run(given=pair), run(given=pair)) == (1, 1)
    Path("pyproject.toml").write_text('[tool.hlo-verify]\ncache = "there"\n')
    assert (run(given=pair), run(given=pair), run("--no-cache", given=pair)) == (1, 0, 1)
    assert Store(Path("there")).path.exists()
    Path("pyproject.toml").write_text("[tool.hlo-verify]\ncache = 3\n")
    assert (
        run(given=pair) == 0 and "cache in [tool.hlo-verify] must be of type bool or of type" in capsys.readouterr().err
    )


def test_every_part_of_what_is_asked_is_a_part_of_the_key_or_of_no_report() -> None:
    assert {each.name for each in fields(Asking)} == {*HOW, *ANEW, *HERE, "shardings", "results"}


def test_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two runs, with real modules and several processes; then one module is another one."""
    (tmp_path / "dump").mkdir()
    folder = fill(tmp_path / "dump")
    told = []
    for _ in range(3):
        assert cli.main([str(folder), "--cache", "kept", "--jobs", "2", "--format", "json"]) == 1
        told.append(json.loads(capsys.readouterr().out)["modules"])
        first = (
            folder
            / "module_0000.jit_a.0002.spmd-partitioner.after_spmd-partitioning.before_control-dep-rewriter.txt.gz"
        )
        if len(told) == 2:
            first.write_bytes(gzip.compress(gzip.decompress(first.read_bytes()) + b"\n"))
    assert [each.get("kept") for each in told[0]] == [False, False, False, None, None]
    assert [each.get("kept") for each in told[1]] == [True, True, True, None, None]
    assert [each.get("kept") for each in told[2]] == [False, True, True, None, None]

    def plain(modules: Any) -> Any:
        return [{k: v for k, v in each.items() if k != "kept"} for each in without_times(modules)]

    assert plain(told[0]) == plain(told[1]) == plain(told[2])


def chain(**given: Any) -> ChainReport:
    step = Step(1, "simplification", "algsimp", "a.txt", P, "same operations", "", "", "b.txt", 0.5)
    return replace(ChainReport("m", (step,), ("real",), 8, 0.5), **given)


def test_chains(tmp_path: Path) -> None:
    store = Store(tmp_path / "kept")
    whole = chain(report=report(R))
    store.keep(b"a", whole)
    assert store.find(b"a") == whole
    late = replace(whole.steps[0], verdict=U, code=Solver.TIME_UP.value)
    read = replace(late, code=Input.DAMAGED.value)
    assert is_final(whole)
    for other in (
        chain(missing=1),
        chain(steps=(late,)),
        chain(steps=(read,)),
        chain(report=with_result(code=Internal.DEFECT)),
    ):
        assert not is_final(other)


def test_verdicts_are_kept_under_the_job_that_they_are_of(tmp_path: Path) -> None:
    """Whatever the order in which they are found and kept."""
    names = ["a", "b", "c"]
    for name in names:
        Path(name).write_text(name)
    jobs = [Job(name, Path(name), Path(name)) for name in names]
    asking = Asking(tmp_path)

    def found() -> list[Outcome | None]:
        one = Kept(Store(tmp_path / "kept"), asking, dict(os.environ))
        return [one.find(job) for job in jobs]

    first = Kept(Store(tmp_path / "kept"), asking, dict(os.environ))
    assert [first.find(job) for job in jobs] == [None] * 3
    for n in (2, 0):
        first.keep(jobs[n], replace(report(P), name=names[n]))
    first.keep(jobs[0], replace(report(R), name="again"))
    assert [each and each.name for each in found()] == ["a", None, "c"]
    assert kept.FORM.endswith("1")
