"""The same tasks on the machines of a Ray cluster, with the extra `hlo-verify[ray]`.

Each task goes with the files that it reads, as the other machines need not see them, and is worked on there by a
process of `workers`, as on this machine: what dies costs its task alone. A task whose machine is lost is given to
another one, once. Verdicts are the same because the tool is: a machine with another source, Python or jaxlib ends the
run.
"""

from __future__ import annotations

import functools
import logging
import os
import socket
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from hlo_verify.cache.keys import this_tool
from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.in_parallel import RECYCLED, TRIES
from hlo_verify.passes.diagnose.scenes import excerpt
from hlo_verify.registered_calls import registered
from hlo_verify.render import Outcome
from hlo_verify.report import Finding
from hlo_verify.tasks import Task, run
from hlo_verify.version import told
from hlo_verify.workers import Lost, Pool, Told

SECONDS = 5.0
"""To reach a cluster's address."""

SETTINGS = ("JAX_", "XLA_")
"""How variables of the environment begin that go along."""

Function = Callable[[Task, Callable[[Any], None]], Outcome]


@dataclass(frozen=True, slots=True)
class Parcel:
    """A task with all that another machine needs for it."""

    function: Function
    task: Task
    contents: dict[Path, bytes | None]
    """By name; None of what cannot be read, and will be said to be missing."""
    tool: str
    settings: dict[str, str]


@dataclass(frozen=True, slots=True)
class OtherTool:
    """What a machine is that has another version of something."""

    machine: str
    versions: str


@dataclass(slots=True)
class Cluster:
    """Works on tasks as `workers.Pool` does, which is a context manager too."""

    address: str
    most: int | None = None
    """Tasks at a time, where it is not for all processors that there are."""
    function: Function = run
    _running: dict[Any, int] = field(default_factory=dict)

    def __enter__(self) -> Cluster:
        """Raises `InputError` where there is no Ray, or no cluster."""
        _connect(self.address)
        return self

    def __exit__(self, *_: object) -> None:
        import ray

        for reference in self._running:
            with suppress(Exception):  # it is done, or its machine is gone
                ray.cancel(reference, force=True)
        self._running.clear()
        ray.shutdown()

    def answers(self, tasks: Sequence[Task]) -> Iterator[tuple[int, Outcome | Lost]]:
        """The number of each task with its answer, as they come.

        Raises `InputError` where a machine has another tool.
        """
        import ray

        work = ray.remote(max_retries=0, max_calls=RECYCLED, num_cpus=1, scheduling_strategy="SPREAD")(worked_on)
        waiting, lost = deque(range(len(tasks))), Counter[int]()
        while waiting or self._running:
            while waiting and len(self._running) < self._slots():
                number = waiting.popleft()
                self._running[work.remote(_packed(self.function, tasks[number]))] = number
            done, _ = ray.wait(list(self._running), num_returns=1, timeout=1.0)
            for reference in done:
                number = self._running.pop(reference)
                try:
                    answer = ray.get(reference)
                except ray.exceptions.RayTaskError as error:
                    if "No module named 'hlo_verify" in str(error):
                        raise _unlike("a machine of the cluster has no hlo-verify") from error
                    answer = Lost(f"failed: {_line(error)}")
                except ray.exceptions.RayError as error:
                    lost[number] += 1
                    if lost[number] < TRIES:
                        waiting.append(number)
                        continue
                    answer = Lost(f"was lost with its machine, {lost[number]} times: {_line(error)}")
                if isinstance(answer, OtherTool):
                    raise _unlike(f"{answer.machine} has {answer.versions}, and this is {told()}, or sources differ")
                yield number, _with_own_lines(answer)

    def _slots(self) -> int:
        """How many tasks may be on their way: machines come and go."""
        import ray

        there = int(ray.cluster_resources().get("CPU", 0))
        return max(1, min(there, self.most or there))


def on_cluster(address: str, most: int | None = None) -> Callable[[int, Told], Cluster]:
    """What starts workers there. Raises `InputError` for what does not go along."""
    if registered():
        raise InputError(
            "--ray does not go with meanings of custom calls in pyproject.toml: other machines do not have them",
            Input.CLUSTER,
        )
    return lambda count, hears: Cluster(address, most)


def _connect(address: str) -> None:
    try:
        import ray
    except ImportError as error:
        raise InputError(
            f"--ray needs Ray, which is not installed here ({error}): pip install 'hlo-verify[ray]'", Input.CLUSTER
        ) from error
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if address != "auto":
            socket.create_connection((host, int(port)), SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
        if ray.cluster_resources().get("CPU", 0) < 1:
            raise OSError("it has no processors")
    except (OSError, ValueError, OverflowError, RuntimeError, ConnectionError, TimeoutError) as error:
        with suppress(Exception):
            ray.shutdown()
        raise InputError(
            f"there is no Ray cluster at {address} to work on ({_line(error)}); `ray start --head` begins one, and "
            "--ray takes its HOST:PORT, or auto on a machine of it",
            Input.CLUSTER,
        ) from error


def _unlike(what: str) -> InputError:
    advice = "install the same hlo-verify, Python and jaxlib on every machine"
    return InputError(f"{what}: {advice}", Input.CLUSTER)


def _line(error: Exception) -> str:
    """What an exception says, in a line."""
    said = [line.strip() for line in str(error).splitlines() if line.strip()]
    return said[-1][:300] if said else type(error).__name__


def _packed(function: Function, task: Task) -> Parcel:
    contents: dict[Path, bytes | None] = {}
    for path in (*task.job.files, task.asking.shardings, task.asking.results):
        if path is not None:
            contents[path] = None
            with suppress(OSError):
                contents[path] = path.read_bytes()
    settings = {name: value for name, value in os.environ.items() if name.startswith(SETTINGS)}
    return Parcel(function, task, contents, this_tool(), settings)


def worked_on(parcel: Parcel) -> Outcome | Lost | OtherTool:
    """What a machine of the cluster does: a process of its own works on the task, and on its next ones."""
    if parcel.tool != this_tool():
        return OtherTool(socket.gethostname(), told())
    os.environ.update(parcel.settings)
    with tempfile.TemporaryDirectory(prefix="hlo-verify-") as folder:
        home = Path(folder)
        for path, content in parcel.contents.items():
            placed = _in(home, path)
            placed.parent.mkdir(parents=True, exist_ok=True)
            if content is not None:
                placed.write_bytes(content)
        (answer,) = _process(parcel.function).map([_moved(parcel.task, home)])
    found: Outcome | Lost = _renamed(answer, {str(_in(home, path)): str(path) for path in parcel.contents})
    return found


@functools.cache
def _process(function: Function) -> Pool[Task, Outcome]:
    return Pool(function, jobs=1, tasks=RECYCLED, quiet=True, tries=TRIES, hears=lambda *_: None)


def _in(home: Path, path: Path) -> Path:
    """Where a file lies on another machine: its whole path, in a folder of the task's own."""
    return home / path.absolute().relative_to(path.absolute().anchor)


def _moved(task: Task, home: Path) -> Task:
    """The task where its files are; the project's own settings were read where it was begun."""

    def at(path: Path | None) -> Path | None:
        return None if path is None else _in(home, path)

    job, asking, chain = task.job, task.asking, task.job.chain
    parts = job.partitioned
    moved = replace(
        job,
        logical=at(job.logical),
        partitioned=tuple(_in(home, part) for part in parts) if isinstance(parts, tuple) else at(parts),
        annotated=at(job.annotated),
        chain=chain and replace(chain, dumps=tuple(replace(each, path=_in(home, each.path)) for each in chain.dumps)),
    )
    return Task(moved, replace(asking, project=None, shardings=at(asking.shardings), results=at(asking.results)))


def _renamed(said: Any, names: Mapping[str, str]) -> Any:
    """A report in which files have the names that they were given by."""

    def change(part: Any) -> Any:
        if type(part) is str:
            for there, here in names.items():
                part = part.replace(there, here)
        return part

    return _changed(said, change)


def _with_own_lines(said: Any) -> Any:
    """A report with source lines as this machine has them, where whoever asked is."""

    def change(part: Any) -> Any:
        if not isinstance(part, Finding) or part.scene is None:
            return part
        return replace(part, scene=replace(part.scene, excerpt=excerpt(part.location)))

    return _changed(said, change)


def _changed(said: Any, change: Callable[[Any], Any]) -> Any:
    """A report of which every part was changed, inner ones first."""
    if isinstance(said, tuple):
        return type(said)([_changed(each, change) for each in said])
    if is_dataclass(said) and not isinstance(said, type):
        parts = {each.name: getattr(said, each.name) for each in fields(said)}
        said = replace(said, **{name: _changed(part, change) for name, part in parts.items()})
    return change(said)
