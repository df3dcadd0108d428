"""Hypothesis profiles: `quick` (a few examples, the same every time) for every run, `thorough` to look for new bugs.

Chosen by `--hypothesis-profile thorough` or by HYPOTHESIS_PROFILE=thorough in the environment.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile(
    "quick", max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=_CHECKS
)
settings.register_profile(
    "thorough", max_examples=400, deadline=None, report_multiple_bugs=False, suppress_health_check=_CHECKS
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
