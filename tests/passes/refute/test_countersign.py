"""What evaluation takes back of a proof: results that differ, and numbers where the logical module has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.diagnostics import Internal, Solver
from hlo_verify.evaluate import state
from hlo_verify.limits import Limits
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.load import load
from hlo_verify.passes.refute import when_asked
from hlo_verify.passes.refute.when_asked import countersigned
from hlo_verify.report import Report
from hlo_verify.session import Session
from tests.support.pairs import LOGICAL, PARTIAL, elementwise

pytestmark = pytest.mark.countersigned

ROWS, COLUMNS = 8, 6
MESH = AbstractMesh((4,), ("x",), axis_types=(AxisType.Auto,))

Of = Callable[[jax.Array], jax.Array]


def by_rows(function: Of) -> Of:
    return jax.shard_map(function, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)


def taken_for_proved(logical: str, partitioned: str, limits: Limits | None = None) -> tuple[Report, Report]:
    """The report of a prover that proves anything, and what is left of it."""
    whole, parts = load(logical), load(partitioned)
    report = prove(whole, parts)
    results = tuple(replace(result, verdict=Verdict.PROVED, reason="") for result in report.results)
    wrong = replace(report, results=results)
    return wrong, countersigned(wrong, whole, parts, Session(limits or Limits()))


def test_a_result_that_differs_is_not_proved() -> None:
    _, left = taken_for_proved(LOGICAL, PARTIAL)
    (result,) = left.results
    assert (result.verdict, result.code) == (Verdict.UNKNOWN, Internal.DISAGREEMENT)
    assert "on device" in result.reason


REST = "%one = stablehlo.constant dense<1.0> : TYPE\n %rest0 = stablehlo.subtract %one, %one : TYPE" + "".join(
    f"""
    %k{n} = stablehlo.constant dense<{n}.0> : TYPE
    %x{n} = stablehlo.add %x, %k{n} : TYPE
    %sine{n} = stablehlo.sine %x{n} : TYPE
    %cosine{n} = stablehlo.cosine %x{n} : TYPE
    %s{n} = stablehlo.multiply %sine{n}, %sine{n} : TYPE
    %c{n} = stablehlo.multiply %cosine{n}, %cosine{n} : TYPE
    %sum{n} = stablehlo.add %s{n}, %c{n} : TYPE
    %left{n} = stablehlo.subtract %sum{n}, %one : TYPE
    %size{n} = stablehlo.abs %left{n} : TYPE
    %rest{n} = stablehlo.add %rest{n - 1}, %size{n} : TYPE"""
    for n in range(1, 33)
)
"""0, of which floats leave something for hardly any input."""

EQUAL = {
    "a law that numbers only nearly show": (
        "%a = stablehlo.exponential %x : TYPE\n %y = stablehlo.log %a : TYPE",
        "%z = stablehlo.add %x, %x : TYPE\n %y = stablehlo.subtract %z, %x : TYPE",
    ),
    "no numbers for some inputs": (
        "%a = stablehlo.sqrt %x : TYPE\n %y = stablehlo.multiply %a, %a : TYPE",
        "%c = stablehlo.constant dense<0.0> : TYPE\n %y = stablehlo.add %x, %c : TYPE",
    ),
    "a number that is too small for floats": (
        "%c = stablehlo.constant dense<-1.0e9> : TYPE\n %s = stablehlo.add %x, %c : TYPE\n"
        "%e = stablehlo.exponential %s : TYPE\n %y = stablehlo.divide %e, %e : TYPE",
        "%n = stablehlo.subtract %x, %x : TYPE\n %y = stablehlo.exponential %n : TYPE",
    ),
    "0 divided by 0, and what rounding leaves of both": (
        "%a = stablehlo.subtract %x, %x : TYPE\n %y = stablehlo.divide %a, %a : TYPE",
        f"{REST}\n %d = stablehlo.add %rest32, %rest32 : TYPE\n %y = stablehlo.divide %rest32, %d : TYPE",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_stays_proved(name: str) -> None:
    whole, part = elementwise("f32", *EQUAL[name])
    wrong, left = taken_for_proved(whole.replace("<Nx", "<8x"), part.replace("<Nx", "<2x"))
    assert left == wrong


def test_modules_that_are_not_small_are_not_evaluated() -> None:
    wrong, left = taken_for_proved(LOGICAL, PARTIAL, replace(Limits(), countersigned_work=100_000))
    assert left == wrong


def test_an_operation_counts_as_it_does_where_it_is_evaluated() -> None:
    assert when_asked.OPERATION == state.OPERATION


def a_running_mean(x: jax.Array, is_guarded: bool) -> jax.Array:
    """Of what came before: nothing, at first."""
    e = jnp.exp(x)
    count = jnp.cumsum(e, axis=1) - e
    total = jnp.cumsum(x * e, axis=1) - x * e
    is_first = jnp.arange(COLUMNS) == 0
    return jnp.where(is_first, 0.0, total / jnp.where(is_first, 1.0, count)) if is_guarded else total / count


def a_minimum(x: jax.Array, is_guarded: bool) -> jax.Array:
    """Of what is positive and a place: 0 at the first."""
    least = jnp.minimum(jnp.exp(x), jnp.arange(COLUMNS, dtype=jnp.float32))
    is_first = jnp.arange(COLUMNS) == 0
    return jnp.where(is_first, 0.0, least / jnp.where(is_first, 1.0, least)) if is_guarded else least / least


def a_sorted_share(x: jax.Array, is_guarded: bool) -> jax.Array:
    """The least of what is positive and a 0 comes first."""
    ordered = jnp.sort(jnp.concatenate([jnp.exp(x), jnp.zeros((x.shape[0], 1))], axis=1), axis=1)
    is_first = jnp.arange(COLUMNS + 1) == 0
    return jnp.where(is_first, 0.0, ordered / jnp.where(is_first, 1.0, ordered)) if is_guarded else ordered / ordered


def a_loops_rows(x: jax.Array, is_guarded: bool) -> jax.Array:
    """A mean over what a mask leaves of a row, a row a turn: nothing, of the first."""

    def row(total: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
        kept = jnp.where(jnp.arange(COLUMNS) < n, jnp.exp(x), 0.0)
        share = kept.sum(axis=1)
        mean = (kept * x).sum(axis=1) / (jnp.where(n == 0, 1.0, share) if is_guarded else share)
        return total + share, mean

    return lax.scan(row, jnp.zeros(x.shape[0]), jnp.arange(COLUMNS))[1].T


@pytest.mark.parametrize("program", [a_running_mean, a_minimum, a_sorted_share, a_loops_rows])
def test_a_number_where_there_is_none_for_all_inputs(program: Callable[[jax.Array, bool], jax.Array]) -> None:
    x = jax.ShapeDtypeStruct((ROWS, COLUMNS), jnp.float32)
    right = hlo_verify.check(lambda x: program(x, False), by_rows(lambda x: program(x, False)), x, refute=False)
    wrong = hlo_verify.check(lambda x: program(x, False), by_rows(lambda x: program(x, True)), x, refute=False)
    assert right.verdict is Verdict.PROVED
    assert wrong.verdict is Verdict.UNKNOWN


def test_what_is_said_of_it() -> None:
    x = jax.ShapeDtypeStruct((ROWS, COLUMNS), jnp.float32)
    (result,) = hlo_verify.check(
        lambda x: a_running_mean(x, False), by_rows(lambda x: a_running_mean(x, True)), x
    ).results
    assert result.code is Solver.NO_NUMBER
    assert "place [0, 0] of device 0" in result.reason
