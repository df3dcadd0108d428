"""Child process: run cases on virtual CPU devices, and have them verified. `children` starts it, and outlives it.

A line of JSON in, `{"case": ..., "draws": [...], "verify": ..., "confirm": ...}`, and one out: an `Outcome`. What XLA
prints goes to the error stream. The module that runs is the one that is verified: XLA dumps it around its partitioner.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import api
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.sources import dump_pairs
from hlo_verify.xla.partition import Partitioned
from tools.fuzz.programs.verdict import verify
from tools.hunt.case import Case, from_data
from tools.hunt.kinds import Outcome
from tools.hunt.maker import kinds
from tools.hunt.source import placed_program, plain_program, run
from tools.hunt.values import draw

Array = np.ndarray[Any, Any]

SECONDS = 10.0
"""For one verdict."""
ROUNDING = 1e-4
"""Of the largest element, what is no difference; values are whole numbers, and only some functions make others."""


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        outcome = examine(from_data(asked["case"]), asked["draws"], asked["verify"], asked["confirm"])
        answers.write(json.dumps(asdict(outcome)) + "\n")
        answers.flush()


def examine(case: Case, draws: Sequence[int], wants_verdict: bool, confirm: bool = False) -> Outcome:
    """Compile, run and compare; with `confirm`, XLA is asked about a witness too."""
    given = [draw(kinds(case), seed) for seed in draws]
    try:
        whole = run(plain_program(case))["whole"]
        jitted = jax.jit(whole, keep_unused=True)
        wanted = [np.asarray(jitted(*each)) for each in given]
    except Exception as error:
        return Outcome("invalid", _said(error))
    try:
        defined = run(placed_program(case))
        with _meshed(case, defined["mesh"]):
            places = [NamedSharding(defined["mesh"], P(*_parts(each.spec))) for each in case.arguments]
            put = [[jax.device_put(a, p) for a, p in zip(each, places, strict=True)] for each in given]
            lowered = defined["sharded"].lower(*put[0])
    except Exception as error:
        return Outcome("invalid", _said(error))
    with tempfile.TemporaryDirectory(prefix="hunt-") as name:
        folder = Path(name)
        try:
            compiled = lowered.compile(compiler_options=_dumping(folder))
            found = [compiled(*each) for each in put]
            jax.block_until_ready(found)
        except Exception as error:
            outcome = Outcome("refused", _said(error))
        else:
            outcome = _compared(draws, wanted, found)
            if outcome.truth == "differs":
                with jax.disable_jit():
                    apart = [np.asarray(whole(*each)) for each in given]
                unlike = not all(_alike(a, b) for a, b in zip(wanted, apart, strict=True))
                outcome = outcome.but(by_steps="unlike" if unlike else "alike")
        if wants_verdict and outcome.truth in ("equal", "differs"):
            outcome = _judged(outcome, lowered.as_text(debug_info=True), folder, confirm)
    return outcome


def _parts(spec: Any) -> list[Any]:
    return [each or None for each in spec]


def _meshed(case: Case, mesh: Any) -> Any:
    return jax.set_mesh(mesh) if case.explicit else contextlib.nullcontext()


def _dumping(folder: Path) -> dict[str, Any]:
    return {
        "xla_dump_to": str(folder),
        "xla_dump_hlo_as_text": True,
        "xla_dump_hlo_pass_re": "spmd|shardy|sharding",
        "xla_dump_large_constants": True,
    }


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:800]


def _compared(draws: Sequence[int], wanted: Sequence[Array], found: Sequence[Any]) -> Outcome:
    for number, whole, parts in zip(draws, wanted, found, strict=True):
        if tuple(parts.shape) != whole.shape:
            return Outcome("differs", f"of shape {parts.shape}, not {whole.shape}", draw=number)
        for shard in parts.addressable_shards:
            here, there = whole[shard.index], np.asarray(shard.data)
            if not _alike(here, there, whole):
                return Outcome("differs", _where(here, there, shard.device.id), draw=number)
    return Outcome("equal")


def _alike(a: Array, b: Array, whole: Array | None = None) -> bool:
    if a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    of = np.abs(a if whole is None else whole)
    scale = float(np.max(of[np.isfinite(of)], initial=1.0))
    return bool(np.allclose(a, b, rtol=ROUNDING, atol=ROUNDING * scale, equal_nan=True))


def _where(here: Array, there: Array, device: int) -> str:
    if here.shape != there.shape:
        return f"device {device} has a shard of shape {there.shape}, not {here.shape}"
    apart = ~np.isclose(here, there, rtol=ROUNDING, equal_nan=True) if here.dtype.kind == "f" else here != there
    return f"device {device} has {_short(there)}, not {_short(here)} ({int(apart.sum())} of {apart.size} differ)"


def _short(array: Array) -> str:
    return np.array2string(array.reshape(-1)[:16], separator=" ").replace("\n", "")


class _Done:
    """XLA's work, which is done already."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def wait(self, waiting: Any = None) -> Partitioned:
        pairs, _ = dump_pairs.find_pairs(self.folder)
        return Partitioned(pairs[0].annotated or pairs[0].logical, pairs[0].partitioned)


@contextlib.contextmanager
def _partitioned_as(folder: Path) -> Iterator[None]:
    """hlo-verify takes the module that ran for what XLA makes of the program."""
    with patch.object(api, "partition", lambda *_, **__: contextlib.nullcontext(_Done(folder))):
        yield


def _judged(outcome: Outcome, logical: str, folder: Path, confirm: bool) -> Outcome:
    with _partitioned_as(folder):
        judgement = verify(logical, None, True, SECONDS)
        outcome = outcome.but(
            verdict=judgement.verdict,
            reason=judgement.reason,
            seconds=judgement.seconds,
            codes=judgement.codes,
            operation=judgement.operation,
        )
        if not confirm or judgement.verdict != "REFUTED":
            return outcome
        try:
            report = hlo_verify.verify(logical)
        except InputError as error:
            return outcome.but(confirmed=f"error: {error}")
        return outcome.but(confirmed=str(report.verdict))


if __name__ == "__main__":
    main()
