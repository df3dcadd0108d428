"""The process in which XLA runs: who gets the one that waits, and when it ends."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hlo_verify.xla import child
from hlo_verify.xla.child import Child
from hlo_verify.xla.execute import ExecutionError, Executor

ROOT = Path(__file__).resolve().parents[2]

NUMBERS = """
module @m attributes {mhlo.num_partitions = N : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<ui32>) {
    %d = stablehlo.partition_id : tensor<ui32>
    %y = "stablehlo.all_reduce"(%x) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<GROUP> : tensor<1xNxi64>, use_global_device_ids,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<f32>) -> tensor<f32>
    return %y, %d : tensor<f32>, tensor<ui32>
  }
}
"""
"""What all devices have in sum, and which one each is."""


def run(executor: Executor) -> None:
    """See that XLA runs a module on as many devices as the executor has."""
    n = executor.devices
    text = NUMBERS.replace("GROUP", str([list(range(n))])).replace("N", str(n))
    total, number = executor.run(text, [2 ** np.arange(n, dtype=np.float32)])
    assert total.tolist() == [2**n - 1] * n and number.tolist() == list(range(n))


def held(executor: Executor) -> Child:
    assert executor._child is not None
    return executor._child


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[child._Waiting]:
    """A place of this test's own for the child that waits."""
    own = child._Waiting()
    monkeypatch.setattr(child, "take", own.take)
    monkeypatch.setattr(child, "keep", own.keep)
    yield own
    own.end()


def test_the_next_executor_gets_the_child_of_the_last(waiting: child._Waiting) -> None:
    """For any number of devices up to what the child has; and who comes while it is used gets another."""
    seen = []
    for devices in (3, 8, 1):
        with Executor(devices) as executor:
            run(executor)
            seen.append(held(executor))
    assert seen[0] is seen[1] is seen[2]
    with Executor(2) as one, Executor(2) as another:
        one.start()
        another.start()
        assert held(one) is seen[0] is not held(another)
        second = held(another)
    assert second.is_alive() ^ seen[0].is_alive(), "one waits, at most"
    waiting.end()
    assert not second.is_alive() and not seen[0].is_alive()


def test_who_would_start_another_gets_none_that_waits(waiting: child._Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    with Executor(2) as executor:
        executor.start()
        first = held(executor)
    assert waiting.take(child._DEVICES + 1) is None, "more devices"
    monkeypatch.setenv("XLA_SOMETHING", "1")
    assert waiting.take(2) is None, "another environment"
    monkeypatch.delenv("XLA_SOMETHING")
    monkeypatch.setenv("SOMETHING", "1")
    assert waiting.take(2) is first
    waiting.keep(first)
    first.process.kill()
    first.process.wait()
    assert waiting.take(2) is None, "it has died"


def test_a_child_is_not_left_with_what_it_may_still_answer(waiting: child._Waiting) -> None:
    with Executor(2, timeout=0) as executor, pytest.raises(ExecutionError, match="more than 0 s"):
        run(executor)
    assert waiting.take(2) is None


def test_it_ends_when_nobody_comes(waiting: child._Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_WAITING", 0.05)
    with Executor(2) as executor:
        executor.start()
        left = held(executor)
    deadline = time.monotonic() + 60
    while left.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left.is_alive()


def test_it_ends_with_the_process_and_is_none_of_one_that_is_forked() -> None:
    program = """
import os
from hlo_verify.xla import child
own = child.Child(2)
child.keep(own)
if (forked := os.fork()) == 0:
    os._exit(child.take(2) is not None)
assert os.waitpid(forked, 0)[1] == 0 and child.take(2) is own
child.keep(own)
print(own.process.pid)
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning:__main__", "-c", program]  # of a fork beside a thread
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert not Path(f"/proc/{int(done.stdout)}").exists() and not done.stderr
