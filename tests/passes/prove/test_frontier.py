"""Layers that need case distinction are decided one by one: their number costs no proof, and steps in proportion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.index import expr
from hlo_verify.index.interned import next_uid
from hlo_verify.passes.prove.frontier import Frontier
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import define
from hlo_verify.terms.functions import INFINITY
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import ONE, Poly, Read, tensor
from tests.support.lowering import floats

LINE = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
GRID = AbstractMesh((2, 4), ("a", "d"), axis_types=(AxisType.Auto,) * 2)

X = expr.of_var(expr.var("p", 0, 8))


def _on(mesh: AbstractMesh, *axes: str | None) -> NamedSharding:
    return NamedSharding(mesh, P(*axes))


def _shifted(x: jax.Array, axis: int = 0) -> jax.Array:
    pads = [(0, int(axis == n)) for n in range(x.ndim)]
    return lax.slice_in_dim(jnp.pad(x, pads), 1, None, axis=axis)


def _traced(layer: Callable[..., jax.Array], mesh: AbstractMesh, axes: Any, shape: Any, weights: Any) -> Any:
    """Layers of the same line, each with its own weights, of what is split over those axes."""
    placed = _on(mesh, *axes)

    def network(x: jax.Array, weights: list[jax.Array]) -> jax.Array:
        x = lax.with_sharding_constraint(x, placed)
        for w in weights:
            x = lax.with_sharding_constraint(layer(x, w), placed)
        return x

    jitted = jax.jit(network, in_shardings=(_on(mesh), [_on(mesh)] * len(weights)), out_shardings=_on(mesh))
    return jitted.trace(*floats(shape), floats(*weights))


def _halo(n: int) -> Any:
    return _traced(lambda x, w: jnp.tanh(x * w + _shifted(x)), LINE, ("d",), (64,), [()] * n)


def _uneven_halo(n: int) -> Any:
    return _traced(lambda x, w: jnp.tanh(x * w + _shifted(x)), LINE, ("d",), (10,), [()] * n)


def _two_halos(n: int) -> Any:
    def layer(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.tanh(x * w + _shifted(x, 0) - _shifted(x, 1))

    return _traced(layer, GRID, ("a", "d"), (16, 32), [()] * n)


def _convolutions(n: int) -> Any:
    def layer(x: jax.Array, w: jax.Array) -> jax.Array:
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers))

    return _traced(layer, LINE, (None, "d"), (2, 16, 8, 4), [(3, 3, 4, 4)] * n)


def _padded_softmax(n: int) -> Any:
    return _traced(lambda x, w: jax.nn.softmax(x * w, axis=0) + x, LINE, ("d",), (10, 3), [(3,)] * n)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], Any]], list[int]]:
    """How many terms and tensors the proofs of a network of 3, 6 and 9 layers make."""
    counts: list[int] = []
    on = Session.on

    @contextmanager
    def counted(session: Session) -> Iterator[Session]:
        with on(session) as entered:
            yield entered
            counts.append(next_uid())

    monkeypatch.setattr(Session, "on", counted)

    def of(network: Callable[[int], Any]) -> list[int]:
        terms = []
        for layers in (3, 6, 9):
            counts.clear()
            assert hlo_verify.verify(network(layers), refute=False).verdict is Verdict.PROVED
            terms.append(sum(counts))
        return terms

    return of


@pytest.mark.drawn(1)
@pytest.mark.parametrize("network", [_uneven_halo, _convolutions, _padded_softmax])
def test_steps_are_as_many_as_layers(network: Callable[[int], Any], made: Callable[..., list[int]]) -> None:
    terms = made(network)
    assert 100 < terms[2] - terms[1] < 1.5 * (terms[1] - terms[0])


@pytest.mark.drawn(1)
@pytest.mark.parametrize("network", [_halo, _two_halos])
def test_layers_whose_halos_are_one_function_share_their_steps(
    network: Callable[[int], Any], made: Callable[..., list[int]]
) -> None:
    terms = made(network)
    assert terms[2] - terms[1] < 100 < terms[1] < terms[0]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("wrong", [1, 10, 20])
def test_a_layer_that_differs_is_found_among_many(wrong: int, tmp_path: Path) -> None:
    hlo_verify.verify(_halo(20), refute=False, keep=tmp_path)
    partitioned = (tmp_path / "partitioned.hlo").read_text()
    pairs = "source_target_pairs={{1,0},{2,1},{3,2}}"
    parts = partitioned.split(pairs)
    assert len(parts) == 21
    changed = pairs.join(parts[:wrong]) + "source_target_pairs={{1,0},{2,1},{0,2}}" + pairs.join(parts[wrong:])
    report = hlo_verify.verify(tmp_path / "annotated.hlo", changed, refute=False)
    assert report.verdict is Verdict.UNKNOWN


def _defined(body: Poly) -> Poly:
    return define("term", (), (body,))


def test_what_stands_for_a_definition_is_not_looked_into() -> None:
    read = _defined(algebra.add(algebra.read(tensor("argument", "x", "f32", (8,)), (X,)), ONE))
    frontier = Frontier()
    assert frontier.view(read) is read
    assert isinstance(read.atom, Read)
    frontier.pass_by([read.atom.tensor])
    seen = frontier.view(algebra.multiply(read, read)).items[0][0][0][0]
    assert isinstance(seen, Read)
    assert not seen.tensor.bodies
    assert seen.indices == read.atom.indices


def test_nothing_stands_for_what_may_be_infinite() -> None:
    x = algebra.read(tensor("argument", "x", "f32", (8,)), (X,))
    read = _defined(algebra.add(x, apply(INFINITY, ())))
    assert isinstance(read.atom, Read)
    frontier = Frontier()
    frontier.pass_by([read.atom.tensor])
    assert frontier.view(read) is read
