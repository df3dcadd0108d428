"""One seed for all that is drawn, fresh in each run; and profiles of hypothesis.

The seed is printed at the head of a run; HLO_VERIFY_SEED=NUMBER in the environment draws the same once more. Profiles:
`quick` (a few examples) for every run, `thorough` to look for new bugs, chosen by `--hypothesis-profile thorough` or by
HYPOTHESIS_PROFILE=thorough.

Tests that are slow run with `--slow` (`tests/support/sampling.py`), and all tests together run on all cores.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import hypothesis
import pytest
from hypothesis import HealthCheck, settings

import hlo_verify
from hlo_verify.cache.store import FOLDER
from hlo_verify.diagnostics import Code
from hlo_verify.diagnostics.errors import DisagreementError
from hlo_verify.passes.refute import countersign, when_asked
from hlo_verify.report import Report
from tests.support import sampling

SEED = int(os.environ.setdefault("HLO_VERIFY_SEED", str(random.SystemRandom().randrange(2**31))))
"""In the environment too, where processes that run a part of the tests find it."""

COST = "seconds of a processor"

_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("quick", max_examples=8, deadline=None, database=None, suppress_health_check=_CHECKS)
settings.register_profile(
    "thorough", max_examples=400, deadline=None, report_multiple_bugs=False, suppress_health_check=_CHECKS
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


MOST_PROCESSES = 8
"""Of a run on all cores: each has half a gibibyte of memory, and takes some seconds to start."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hlo-verify's own tests")
    group.addoption("--slow", action="store_true", help="run the slow tests too")
    group.addoption("--slow-part", metavar="K/N", help="run the K-th of N parts of the slow tests too")
    group.addoption("--costly-part", metavar="K/N", help="run the K-th of N parts of the costly tests, and all others")
    group.addoption("--write-costs", metavar="FILE", help="write what the costly tests of this run cost")
    group.addoption("--part", metavar="K/N", help="run the K-th of N parts of the tests")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """All tests run on all cores. Some, chosen on the command line, run here: processes would take longer to start."""
    if "PYTEST_XDIST_WORKER" in os.environ:  # one of those processes, or started by one
        return
    option = config.option
    is_all = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not option.keyword and not option.markexpr
    can_share = config.pluginmanager.hasplugin("xdist") and not option.usepdb and not option.collectonly
    if is_all and can_share and option.numprocesses is None and option.dist == "no":
        option.numprocesses = min(len(os.sched_getaffinity(0)), MOST_PROCESSES)
        option.dist = "worksteal"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = {item.nodeid for item in items} - (set() if config.getoption("slow") else _slow(config, items))
    costly = _part(config, "costly_part")
    if costly is not None:
        names -= sampling.others_than(costly, sampling.COSTLY.read_text(encoding="utf-8"))
    asked = _part(config, "part")
    if asked is not None:
        names = set(filter(asked.holds, names))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in names])
    items[:] = [item for item in items if item.nodeid in names]


def _slow(config: pytest.Config, items: list[pytest.Item]) -> set[str]:
    """The names of those that do not run, as they are slow."""
    part = _part(config, "slow_part")
    named = tuple("::" + arg.partition("::")[2].partition("[")[0] for arg in config.args if "::" in arg)
    return {
        name
        for name in sampling.slow(items, SEED)
        if not (part is not None and part.holds(name)) and not name.partition("[")[0].endswith(named)
    }


def _part(config: pytest.Config, option: str) -> sampling.Part | None:
    text = config.getoption(option)
    try:
        return sampling.part(text) if text else None
    except ValueError as error:
        raise pytest.UsageError(f"--{option.replace('_', '-')}: {error}") from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """What a test cost goes with its report to the process that writes it down, if that is asked for."""
    if not item.config.getoption("write_costs"):
        return (yield)
    before = _processor()
    try:
        return (yield)
    finally:
        item.user_properties.append((COST, _processor() - before))


def _processor() -> float:
    """Seconds of a processor until now, of children that have ended too."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    path = session.config.getoption("write_costs")
    if path is not None and reporter is not None:  # in the process that the others report to
        passed = reporter.stats.get("passed", [])
        Path(path).write_text(
            sampling.listed({each.nodeid: dict(each.user_properties)[COST] for each in passed}), encoding="utf-8"
        )


def pytest_collection_finish() -> None:
    """What is there for the whole run is not gone through whenever garbage is collected, a quarter of a second each."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--hypothesis-seed", default=None) is None:
        hypothesis.core.global_force_seed = SEED
    for module in pkgutil.walk_packages(
        hlo_verify.__path__, "hlo_verify."
    ):  # hypothesis draws constants of what is imported
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def pytest_report_header() -> str:
    return f"seed: {SEED}; HLO_VERIFY_SEED={SEED} draws the same examples again"


@pytest.fixture(scope="session")
def seed() -> int:
    """The seed of this run."""
    return SEED


@pytest.fixture
def all_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is verified under `hlo_verify.jit`: that is asked elsewhere."""
    from tests.support.promises import PROVED

    monkeypatch.setenv(FOLDER, "")
    monkeypatch.setattr(hlo_verify.decorator, "decide", lambda asked, settings: PROVED)


@pytest.fixture(autouse=True)
def nothing_is_taken_back(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof that evaluation contradicts fails the test, whatever that expects: the prover is wrong, or evaluation is.
    Otherwise a rule that proves too much would not show where nothing more is asked than that a wrong pair is not
    proved."""

    def fail(report: Report, said: Mapping[int, str], code: Code) -> NoReturn:
        raise DisagreementError(f"{code}: {'; '.join(said.values())}")

    if request.node.get_closest_marker("countersigned") is None:
        monkeypatch.setattr(countersign, "take_back", fail)


@pytest.fixture
def prover_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No evaluation takes anything back: what a prover without one of its rules proves is what it says."""
    monkeypatch.setattr(when_asked, "countersigned", lambda report, *_: report)
