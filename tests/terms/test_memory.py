"""A verification does not depend on what its process did before, nor on how Python hashes strings there."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from hlo_verify.index import expr
from hlo_verify.ops.constants import constant_term
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.term import tensor


def keys() -> list[int]:
    """Of terms about arguments and constants: what decides the order in which terms are written and tried."""
    with Session().on():
        x, y = (tensor("argument", name, "f32", (3,)) for name in "xy")
        place = (expr.of_var(expr.var("p", 0, 3)),)
        table = constant_term(np.array([0.5, 2.5, -1.5], np.float32), "f32", (3,))
        terms = (algebra.read(x, place), algebra.read(y, place), table, algebra.multiply(table, algebra.read(y, place)))
        return [each.skey for each in terms]


def test_keys_are_those_of_a_process_that_did_nothing_before() -> None:
    first = keys()
    assert len(set(first)) == len(first)
    for n in range(100):
        tensor("argument", f"other{n}", "f32", ())
    assert keys() == first
    for seed in "01":
        environment = os.environ | {"PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", "from tests.terms.test_memory import keys; print(keys())"]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        assert found == f"{first}\n"
