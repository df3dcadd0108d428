"""One seed for all that is drawn, fresh in each run; and profiles of hypothesis.

The seed is printed at the head of a run; HLO_VERIFY_SEED=NUMBER in the environment draws the same once more. Profiles:
`quick` (a few examples) for every run, `thorough` to look for new bugs, chosen by `--hypothesis-profile thorough` or by
HYPOTHESIS_PROFILE=thorough.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import random

import hypothesis
import pytest
from hypothesis import HealthCheck, settings

import hlo_verify

SEED = int(os.environ.setdefault("HLO_VERIFY_SEED", str(random.SystemRandom().randrange(2**31))))
"""In the environment too, where processes that run a part of the tests find it."""

_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("quick", max_examples=8, deadline=None, database=None, suppress_health_check=_CHECKS)
settings.register_profile(
    "thorough", max_examples=400, deadline=None, report_multiple_bugs=False, suppress_health_check=_CHECKS
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


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
