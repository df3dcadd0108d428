"""Mistakes in uses of `hlo_verify.jit`, of `verify` and of the plugin of pytest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hlo_verify
from hlo_verify.pytest_plugin import Checker
from tests.mistakes.common import Program, W, X, loss, over_batch, parallel
from tests.support.pairs import LOGICAL, PARTIAL

ARRAYS = np.ones((16, 6), np.float32), np.ones((6, 8), np.float32)


def _jit(function: Any, **options: Any) -> Any:
    return hlo_verify.jit(function, cache=False, **options)


MISTAKES: dict[str, Program] = {
    "decorator_with_a_second_function": lambda _: hlo_verify.jit(parallel, loss),
    "decorator_with_an_unknown_option": lambda _: hlo_verify.jit(parallel, refernce=loss),
    "decorator_that_ignores": lambda _: hlo_verify.jit(parallel, on_failure="ignore"),
    "decorator_with_another_reference": lambda _: _jit(loss, reference=lambda x: x.sum())(*ARRAYS),
    "decorator_with_a_reference_that_fails": lambda _: _jit(loss, reference=lambda x, w: w @ x)(*ARRAYS),
    "decorator_with_other_results": lambda _: _jit(loss, reference=lambda x, w: {"loss": loss(x, w)})(*ARRAYS),
    "decorator_with_a_number_for_a_reference": lambda _: _jit(parallel, reference=0.1),
    "decorator_with_a_time_limit_in_words": lambda _: _jit(parallel, reference=loss, time_limit="10s"),
    "decorator_with_an_effort_that_there_is_not": lambda _: _jit(parallel, reference=loss, effort="max"),
    "decorator_of_what_returns_nothing": lambda _: _jit(lambda x, w: None)(*ARRAYS),
    "verify_a_jitted_function": lambda _: hlo_verify.verify(jax.jit(parallel)),
    "verify_a_plain_function": lambda _: hlo_verify.verify(parallel),
    "verify_with_arguments": lambda _: hlo_verify.verify(loss, parallel, X, W),
    "verify_a_file_that_is_not_there": lambda folder: hlo_verify.verify(folder / "step.mlir"),
    "verify_with_a_folder_to_keep": lambda folder: hlo_verify.verify(LOGICAL, PARTIAL, keep=folder),
    "replay_of_a_module": lambda folder: hlo_verify.replay(_written(folder, LOGICAL)),
    "result_that_there_is_not": lambda _: _checked().results["losses"],
    "report_that_is_not_proved": lambda _: _wrong().raise_for_verdict(),
    "pytest_that_fails": lambda _: Checker(None, None).check(
        loss, over_batch(lambda x, w: jax.lax.pmean(loss(x, w), "d")), X, W
    ),
    "pytest_lint_of_no_module": lambda folder: Checker(None, None).lint(folder / "nowhere.txt"),
    "custom_call_with_two_meanings": lambda _: hlo_verify.register_custom_call("my.norm", jnp.tanh, trailing=1),
    "custom_call_of_no_function": lambda _: hlo_verify.register_custom_call("my.norm", "my_package:norm"),
    "custom_call_that_was_not_named": lambda _: hlo_verify.register_custom_call(jnp.tanh),
}


def _written(folder: Path, text: str) -> Path:
    path = folder / "module.mlir"
    path.write_text(text)
    return path


def _checked() -> hlo_verify.Report:
    return hlo_verify.check(lambda x, w: {"loss": loss(x, w)}, lambda x, w: {"loss": parallel(x, w)}, X, W)


def _wrong() -> hlo_verify.Report:
    return hlo_verify.check(loss, over_batch(lambda x, w: jax.lax.pmean(loss(x, w), "d")), X, W)
