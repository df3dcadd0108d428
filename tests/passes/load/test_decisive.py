"""Roots, inverses and the like of numbers that floats may have on either side of an edge are marked."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.decisive import may_be_beyond
from hlo_verify.passes.load.load import load
from hlo_verify.program.ir import IN_FLOATS, operations
from hlo_verify.program.op_families import HAS_EDGES, plain_name
from tests.support.places import GIVEN, MESH, PLACES, own_places, places

OfPlaces = Callable[[jax.Array], jax.Array]


def nothing(i: jax.Array) -> jax.Array:
    """0 of real numbers, and less at 41 on XLA, which multiplies by 1/41."""
    return i / 41 * 41 - i


AT_EDGES = {
    "sqrt": lambda i: jnp.sqrt(nothing(i)),
    "rsqrt": lambda i: lax.rsqrt(nothing(i)),
    "log": lambda i: jnp.log(nothing(i)),
    "log1p": lambda i: jnp.log1p(nothing(i) - 1),
    "power": lambda i: nothing(i) ** 0.3,
    "inverse": lambda i: 1 / nothing(i),
    "an angle": lambda i: jnp.arctan2(nothing(i), -1.0),
    "an angle to the left": lambda i: jnp.arctan2(jnp.where(i > 8, i, nothing(i)), i / 3 - 2.5),
    "an exponent": lambda i: jnp.zeros_like(i) ** nothing(i),
    "an exponent of a negative number": lambda i: (0 * i - 1) ** (nothing(i) + 3),
    "an inverse error function": lambda i: lax.erf_inv(nothing(i) + 1),
    "a complex root": lambda i: jnp.sqrt(lax.complex(0 * i - 1, nothing(i))).imag,
    "a complex logarithm": lambda i: jnp.log(lax.complex(0 * i - 1, nothing(i))).imag,
    "arccos": lambda i: jnp.arccos(1 - nothing(i)),
    "arcsin": lambda i: jnp.arcsin(nothing(i) - 1),
    "arccosh": lambda i: jnp.arccosh(nothing(i) + 1),
    "arctanh": lambda i: jnp.arctanh(nothing(i) + 1),
    "a half circle": lambda i: jnp.sqrt(1 - (i / (PLACES - 1)) ** 2),
}
WITH_POLES = ("digamma", "lgamma", "polygamma", "zeta")
INSIDE = {
    "sqrt": lambda i: jnp.sqrt(i / 41),
    "clipped": lambda i: jnp.sqrt(jnp.maximum(nothing(i), 0)),
    "rsqrt": lambda i: lax.rsqrt(i / 41 + 0.01),
    "log": lambda i: jnp.log(i / 8),
    "power": lambda i: 10000.0 ** (-i / 41),
    "inverse": lambda i: 1 / (jnp.sin(i) - 2),
    "an angle": lambda i: jnp.arctan2(i / 41 + 0.1, -1.0),
    "an angle to the right": lambda i: jnp.arctan2(nothing(i), i + 0.5),
    "angles above and to the right": lambda i: jnp.arctan2(jnp.where(i < 8, 0.3 * i + 1, nothing(i)), i / 3 - 2.5),
    "arccos": lambda i: jnp.arccos(jnp.sin(i) * 0.99),
    "arcsin": lambda i: jnp.arcsin(lax.clamp(-1.0, i / 41 - 1, 1.0)),
    "arctanh": lambda i: jnp.arctanh(jnp.sin(i) * 0.99),
    "noise schedule": lambda i: jnp.sqrt(1 - jnp.cumprod(1 - jnp.linspace(1e-4, 0.02, PLACES))),
}


def marked(function: OfPlaces) -> list[str]:
    module = load(jax.jit(lambda x: x * function(places())).lower(jnp.zeros(PLACES)).as_text())
    return [op.name for op in operations(module.main) if IN_FLOATS in op.attributes]


@pytest.mark.parametrize("function", AT_EDGES.values(), ids=AT_EDGES)
def test_numbers_that_may_be_beyond_an_edge(function: OfPlaces) -> None:
    """They are equal to the same, computed alike, and to nothing else."""
    assert len(marked(function)) == 1
    assert set(marked(function)) <= HAS_EDGES
    value = function(jnp.zeros(()))

    def verdict(other: OfPlaces) -> Verdict:
        def body(x: jax.Array) -> jax.Array:
            return x * other(own_places())

        mapped = jax.shard_map(body, mesh=MESH, in_specs=P("d"), out_specs=P("d"))
        return hlo_verify.check(lambda x: x * function(places()), mapped, GIVEN).verdict

    assert verdict(function) is Verdict.PROVED
    assert verdict(lambda i: value + 0 * i) is Verdict.UNKNOWN or function is AT_EDGES["a half circle"]


@pytest.mark.parametrize("function", INSIDE.values(), ids=INSIDE)
def test_numbers_that_are_inside(function: OfPlaces) -> None:
    assert marked(function) == []


def test_what_is_divided_may_be_an_argument() -> None:
    module = load(jax.jit(lambda x: x / nothing(places())).lower(jnp.zeros(PLACES)).as_text())
    assert [op.name for op in operations(module.main) if IN_FLOATS in op.attributes] == ["divide"]


@pytest.mark.parametrize("name", sorted(name for name in HAS_EDGES if plain_name(name) not in WITH_POLES))
def test_where_the_edges_are(name: str) -> None:
    """Between one of the floats and the next, functions are steady but there: by numpy's."""
    known = {
        "atan2": lambda x: np.arctan2(x, -1),
        "divide": lambda x: 1 / x,
        "power": lambda x: x**0.3,
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "log_plus_one": np.log1p,
        "acos": np.arccos,
        "erf_inv": lambda x: np.where(np.abs(x) < 1, np.tan(np.pi / 2 * x), np.nan),
        "acosh": np.arccosh,
        "asin": np.arcsin,
        "atanh": np.arctanh,
    }
    plain = name.rpartition(".")[2]
    function = known.get(plain) or getattr(np, plain)
    for middle in (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0):
        values = np.array([middle - 1e-6, middle, middle + 1e-6])
        with np.errstate(all="ignore"):
            found = function(values)
        is_steady = bool(np.isnan(found).all() or np.ptp(found) < 0.01)
        bounds = np.array([(values[0], values[2])], dtype=[("low", float), ("high", float)])
        assert may_be_beyond(name, [bounds]) == (not is_steady), middle
        inside = np.array([(a, a) for a in values], dtype=bounds.dtype)
        assert not may_be_beyond(name, [inside])
