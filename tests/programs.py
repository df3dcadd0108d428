"""Small JAX programs, lowered for devices that are not there, and hand-made reports."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

from hlo_verify.diagnostics import Diagnostic, Mismatch, Severity, Solver, Unsupported
from hlo_verify.report import ChainReport, Finding, LawUse, Report, Result, Stage, Step, Verdict


def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
    y = jnp.tanh(x @ w)
    return y, y.sum()


def jitted(axes: dict[str, int], *, out_shardings: bool = True) -> Any:
    """`layer` with x split over the first axis and w's columns over the second."""
    mesh = AbstractMesh(tuple(axes.values()), tuple(axes))
    data, model = axes

    def on(*axes: str | None) -> NamedSharding:
        return NamedSharding(mesh, P(*axes))

    results = {"out_shardings": (on(data, model), on())} if out_shardings else {}
    return jax.jit(layer, in_shardings=(on(data), on(None, model)), **results)


def arguments() -> tuple[jax.ShapeDtypeStruct, jax.ShapeDtypeStruct]:
    return jax.ShapeDtypeStruct((32, 16), jnp.float32), jax.ShapeDtypeStruct((16, 64), jnp.float32)


def lowered(axes: dict[str, int] | None = None, *, out_shardings: bool = True) -> Any:
    """What `jax.jit(...).lower(...)` returns, without the devices that it would ask for."""
    function = jitted(axes or {"data": 2, "model": 4}, out_shardings=out_shardings)
    return function.trace(*arguments()).lower(lowering_platforms=("cpu",))


FINDING = Finding(
    operation="%5 = stablehlo.multiply %3, %4 : tensor<512x4096xf32>",
    location="train.py:57",
    found="sum k<512. x[i,k] * w[k,j]",
    expected="sum k<4096. x[i,k] * w[k,j]",
    nearest="y: sum over d1 is missing",
    code=Mismatch.NEVER_REDUCED,
)


UNSUPPORTED = Diagnostic(Unsupported.USE, Severity.WARNING, "along a split dimension", "train.py:60", "sort")


LAWS = (LawUse("digits joined", "sum a<m. sum b<n. g(a + m*b) = sum k<m*n. g(k)", 12), LawUse("sum of one term", "", 1))


def report(*verdicts: Verdict, name: str = "jit_step", finding: Finding = FINDING) -> Report:
    """A report with a result for each verdict; those not proved share the finding."""
    codes = {Verdict.UNKNOWN: Solver.NO_PROOF, Verdict.REFUTED: finding.code}
    results = tuple(
        Result(n, f"result[{n}]", verdict)
        if verdict is Verdict.PROVED
        else Result(n, f"result[{n}]", verdict, "no logical tensor matches", "train.py:57", finding, codes[verdict])
        for n, verdict in enumerate(verdicts)
    )
    stages = (
        Stage("dot_general", "train.py:50", "dot_general@train.py:50[128*d + i,j]"),
        Stage("all_reduce", "train.py:51", "dot_general@train.py:51[128*d + i,j]", shared=True),
    )
    return Report(name, results, ("real arithmetic", "no NaN"), 8, 1.42, stages, (UNSUPPORTED,), laws=LAWS)


def chain(*verdicts: Verdict) -> ChainReport:
    """A chain with a step for each verdict, and the report of the first that is not proved."""
    steps = tuple(
        Step(
            n,
            "simplification",
            f"pass-{n}",
            f"m.{n}.txt",
            verdict,
            "",
            "" if verdict is Verdict.PROVED else "lost",
            "" if verdict is Verdict.PROVED else "HV301",
            f"m.{n - 1}.txt" if n else "",
            0.5,
        )
        for n, verdict in enumerate(verdicts)
    )
    stopped = next((verdict for verdict in verdicts if verdict is not Verdict.PROVED), None)
    return ChainReport("jit_step", steps, ("no NaN",), 8, 2.5, None if stopped is None else report(stopped))
