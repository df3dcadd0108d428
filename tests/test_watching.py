"""`--watch`: modules are verified as they appear, once they are complete, and again where they change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_verify import cli, watching
from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.render import Outcome
from hlo_verify.report import Report, Verdict
from hlo_verify.watching import Appeared, Watched, watch
from tests.programs import report
from tests.sources.test_dump_pairs import SHARDY_CPU, fill
from tests.test_cli import Prover

P, R, U = Verdict.PROVED, Verdict.REFUTED, Verdict.UNKNOWN


def watched(folder: Path, *steps: Callable[[], object]) -> tuple[Watched, list[str]]:
    """What is known after those steps, one between two looks, of files of which each is a module; and what of them was
    verified."""
    left = list(steps)

    def pause() -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    def decide(each: Appeared, waiting: int) -> Outcome:
        seen.append(f"{each.name}={each.files[0].read_text()}")
        return report(P, name=each.name)

    def find() -> list[Appeared]:
        return [Appeared(file.name, (file,)) for file in sorted(folder.iterdir())]

    seen: list[str] = []
    return watch(find, decide, lambda outcome: None, pause), seen


def nothing() -> None:
    pass


def test_a_module_is_verified_once_it_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("1")
    found, seen = watched(tmp_path, lambda: file.write_text("12"), lambda: file.write_text("123"), nothing, nothing)
    assert seen == ["a=123"] and list(found.outcomes) == ["a"] and found.left == ()


def test_what_changes_is_verified_again(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("1")
    found, seen = watched(tmp_path, nothing, nothing, lambda: file.write_text("12"), nothing, nothing)
    assert seen == ["a=1", "a=12"] and list(found.outcomes) == ["a"]


def test_what_is_taken_away_was_what_it_was(tmp_path: Path) -> None:
    """A folder that is cleaned keeps no refutation from being told; what was never looked at is left."""
    both = [tmp_path / name for name in "ab"]
    both[0].write_text("1")

    def find() -> list[Appeared]:
        return [Appeared(file.name, (file,)) for file in both]

    steps = iter([nothing, lambda: both[1].write_text("1"), lambda: [file.unlink() for file in both], nothing, nothing])

    def pause() -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    def decide(each: Appeared, waiting: int) -> Outcome:
        assert each.files[0].exists(), "what is not there is not looked at again"
        return report(R, name=each.name)

    found = watch(find, decide, lambda outcome: None, pause)
    assert (list(found.outcomes), found.left) == (["a"], ("b",))


def test_what_was_not_verified_is_left(tmp_path: Path) -> None:
    """A module that changed since is not known any more; one that came last was not looked at."""
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")
    found, seen = watched(tmp_path, nothing, lambda: [(tmp_path / name).write_text("12") for name in "ac"])
    assert seen == ["a=1", "b=1"]
    assert (list(found.outcomes), found.left) == (["b"], ("a", "c"))


def test_what_is_interrupted_is_left(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")

    def decide(each: Appeared, waiting: int) -> Outcome:
        raise KeyboardInterrupt

    found = watch(lambda: [Appeared("a", (tmp_path / "a",))], decide, lambda outcome: None, lambda: None)
    assert found == Watched({}, ("a",))


def on_command_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *answers: Report | BaseException, looks: int = 3, arguments: str = ""
) -> int:
    """The status of `--watch`, where the dumps appear after the first look."""
    looked = []

    def sleep(seconds: float) -> None:
        looked.append(seconds)
        if len(looked) == 1:
            fill(folder, *SHARDY_CPU)
        if len(looked) > looks:
            raise KeyboardInterrupt

    monkeypatch.setattr(watching.time, "sleep", sleep)
    return cli.main(["--watch", str(folder), *arguments.split()], verify=Prover(*answers))


def test_dumps_that_appear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert on_command_line(tmp_path, monkeypatch, report(P)) == 0
    out, err = capsys.readouterr()
    assert f"watching {tmp_path} (ctrl-C ends)" in err
    assert out.count("1 result on 8 devices") == 1 and out.endswith("PROVED   1 module: 1 proved\n")


@pytest.mark.parametrize(
    ("answer", "looks", "status"),
    [
        (report(R), 3, 1),
        (report(U), 3, 3),
        (InputError("no", Input.DAMAGED), 3, 2),
        (KeyboardInterrupt(), 3, 3),
        (report(P), 1, 3),
    ],
    ids=["refuted", "unknown", "damaged", "interrupted", "not complete"],
)
def test_the_status_is_that_of_what_is_known(
    answer: Report | BaseException, looks: int, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert on_command_line(tmp_path, monkeypatch, answer, looks=looks) == status


def test_other_formats_are_written_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dump").mkdir()
    more = f"--format json --report junit={tmp_path / 'a.xml'} -q"
    assert on_command_line(tmp_path / "dump", monkeypatch, report(R), arguments=more) == 1
    assert capsys.readouterr().out.startswith('{\n  "verdict": "REFUTED"')
    assert "failure" in (tmp_path / "a.xml").read_text()


@pytest.mark.parametrize("given", [["a.mlir", "b.mlir"], ["a.mlir"], [".", "--each-pass"]], ids=str)
def test_it_goes_with_one_folder(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--watch", *given], verify=Prover()) == 2
    assert "--watch" in capsys.readouterr().err
