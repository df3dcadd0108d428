"""A Ray cluster: the same reports as of one process, whatever becomes of a machine. With the extra `ray` alone."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hlo_verify import cli, cluster
from hlo_verify.cluster import Cluster, OtherTool, Parcel, worked_on
from hlo_verify.diagnostics import Diagnostic, Input, Severity
from hlo_verify.in_parallel import in_parallel
from hlo_verify.jobs import Job
from hlo_verify.registered_calls import Said, as_said
from hlo_verify.render import Failure, Outcome
from hlo_verify.render.progress import Bar
from hlo_verify.tasks import Asking, Task, run
from tests.test_in_parallel import fill, proved, without_times

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
ROOT = Path(__file__).resolve().parents[1]


def slow(task: Task, _: object) -> Outcome:
    """Long enough for its machine to be lost meanwhile; leaves a mark for each try."""
    Path(f"{task.job.name}.{os.getpid()}").touch()
    time.sleep(5)
    return proved(task)


def killed(task: Task, _: object) -> Outcome:
    if task.job.name == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return proved(task)


@pytest.fixture(scope="module")
def machines() -> Iterator[Any]:
    """Two, of one processor each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("PYTHONWARNINGS", "ignore")
        patch.setenv("RAY_health_check_period_ms", "500")
        patch.setenv("RAY_health_check_failure_threshold", "3")
        from ray.cluster_utils import Cluster as Machines

        small = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
        made = Machines(initialize_head=True, head_node_args=small)
        made.add_node(**{key: value for key, value in small.items() if key != "include_dashboard"})
        yield made
        made.shutdown()


@needs_ray
@pytest.mark.filterwarnings("ignore")
class TestMachines:
    def test_reports_are_those_of_one_process(
        self, machines: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        folder, told = fill(tmp_path), []
        for more in (("--jobs", "1"), ("--ray", machines.address), ("--ray", machines.address, "--cache", "kept")):
            assert cli.main([".", *more, "--format", "json"]) == 1
            told.append(without_times(json.loads(capsys.readouterr().out)))
        assert told[0] == told[1] == told[2]
        assert folder == tmp_path

    def test_a_task_that_kills_its_process_is_lost_alone(self, machines: Any, tmp_path: Path) -> None:
        jobs = [Job(name) for name in ("one", "dies", "two")]
        start = self.start(machines, killed)
        (_, one), (_, lost), (_, two) = in_parallel(jobs, Asking(tmp_path), 2, Bar(False), start)
        assert [each.name for each in (one, two)] == ["one", "two"]
        assert isinstance(lost, Failure) and "was ended by signal 9, 2 times" in lost.diagnostic.message

    def test_another_tool_ends_the_run(
        self, machines: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cluster, "this_tool", lambda: "another")
        assert cli.main([str(fill(tmp_path)), "--ray", machines.address]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1 and "error[HV425]" in err and "or sources differ: install the same" in err

    def test_a_machine_that_is_lost_costs_its_task_a_second_try(self, machines: Any, tmp_path: Path) -> None:
        """The last test, as one machine is less."""
        jobs = [Job(str(tmp_path / str(n))) for n in range(6)]
        second = next(node for node in machines.list_all_nodes() if node is not machines.head_node)

        def lose() -> None:
            """Once both are at work."""
            while len({mark.suffix for mark in tmp_path.iterdir()}) < 2:
                time.sleep(0.1)
            machines.remove_node(second, allow_graceful=False)

        losing = threading.Thread(target=lose, daemon=True)
        losing.start()
        found = list(in_parallel(jobs, Asking(tmp_path), 2, Bar(False), self.start(machines, slow)))
        assert found == [(n, proved(Task(job, Asking(tmp_path)))) for n, job in enumerate(jobs)]
        losing.join()
        assert len(list(tmp_path.iterdir())) > len(jobs), "no task was under way on the machine that was lost"

    @staticmethod
    def start(machines: Any, function: Callable[..., Outcome]) -> Any:
        return lambda count, hears: Cluster(machines.address, None, function)


class TestErrors:
    """Each is one message."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> str:
        return str(fill(tmp_path))

    def said(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
        assert cli.main(list(arguments)) == 2
        err = capsys.readouterr().err
        assert err.startswith("hlo-verify: error[HV4") and err.count("\n") == 1
        return err

    def test_no_ray(self, folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ray", None)
        assert "pip install 'hlo-verify[ray]'" in self.said(capsys, folder, "--ray", "auto")

    @needs_ray
    @pytest.mark.filterwarnings("ignore")
    def test_no_cluster(self, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{nobody.getsockname()[1]}"
            assert f"there is no Ray cluster at {address} to work on (" in self.said(capsys, folder, "--ray", address)
        for address in ("nowhere", "nowhere:x", "127.0.0.1:99999"):
            assert f"there is no Ray cluster at {address} to" in self.said(capsys, folder, "--ray", address)

    def test_no_folder(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "--ray goes with a folder" in self.said(capsys, "a.hlo", "b.hlo", "--ray", "auto")

    def test_meanings_of_custom_calls(self) -> None:
        with as_said({"f": Said("f computes g", lambda: None)}), pytest.raises(Exception, match="custom calls"):
            cluster.on_cluster("auto")


class TestParcels:
    """What a machine does, in this process."""

    def packed(self, task: Task, function: Callable[..., Outcome] = run) -> Parcel:
        return cluster._packed(function, task)

    @pytest.mark.parametrize("is_relative", [False, True])
    def test_files_go_along_and_keep_their_names(
        self, is_relative: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The machine does not see them where they were."""
        monkeypatch.chdir(tmp_path)
        path = Path("a.hlo") if is_relative else tmp_path / "a.hlo"
        path.write_text("HloModule m\n\nENTRY e { ROOT c = f32[] constant({...}) }\n")
        parcel = self.packed(Task(Job("a", path, path), Asking(tmp_path, several=True)))
        path.unlink()
        found = worked_on(parcel)
        assert isinstance(found, Failure) and found.diagnostic.code is Input.ELIDED_CONSTANTS
        assert found.diagnostic.message.startswith(f"{path}: ")

    def test_what_is_not_there_is_said_of_its_own_name(self, tmp_path: Path) -> None:
        path = tmp_path / "nowhere.hlo"
        found = worked_on(self.packed(Task(Job("a", path, path), Asking(tmp_path, several=True))))
        assert isinstance(found, Failure) and str(found.diagnostic.message).startswith(f"{path}: there is no such file")

    def test_another_tool(self, tmp_path: Path) -> None:
        parcel = replace(self.packed(Task(Job("a"), Asking(tmp_path)), killed), tool="another")
        assert isinstance(worked_on(parcel), OtherTool)

    def test_names_within_reports(self) -> None:
        said = Failure("m", Diagnostic(Input.USAGE, Severity.ERROR, "in /x/a: no", notes=(("at", "/x/a:3"),)))
        found = cluster._renamed((said, 3, None), {"/x/a": "a"})
        assert found[0].diagnostic.message == "in a: no" and found[0].diagnostic.notes == (("at", "a:3"),)
        assert found[1:] == (3, None)
