"""Best and shortest ways, step by step and in parts: greatest values of sums, as sums of products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify.ops  # noqa: F401  # which equality is about
from hlo_verify import Verdict, verify
from hlo_verify.equality.greatest_sums import same_greatest_sum
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.extrema import reduce_extremum
from hlo_verify.terms.functions import EXTREMA
from hlo_verify.terms.laws import apply
from hlo_verify.terms.term import Poly, Tensor, number, tensor
from tests.support.evaluate import Evaluator
from tests.support.lowering import Placed, floats

MESH = AbstractMesh((4,), ("d",))
SIZE = 2
KINDS = "max", "min"


class Made:
    """Terms of three matrices and a vector, of numbers or integers."""

    def __init__(self, kind: str, dtype: str = "f32") -> None:
        self.kind = kind
        self.tensors = {
            name: tensor("argument", name, dtype, (SIZE,) * (1 if name == "v" else 2)) for name in ("a", "b", "c", "v")
        }
        self.i, self.j = (expr.fresh(name, SIZE) for name in "ij")

    def at(self, name: str, *places: Var) -> Poly:
        return algebra.read(self.tensors[name], [expr.of_var(v) for v in places])

    def best(self, body: Callable[[Var], Poly]) -> Poly:
        v = expr.fresh("k", SIZE)
        return reduce_extremum(self.kind, [v], body(v))

    def joined(self, one: Callable[[Var, Var], Poly], other: Callable[[Var, Var], Poly]) -> Callable[[Var, Var], Poly]:
        return lambda i, j: self.best(lambda k: algebra.add(one(i, k), other(k, j)))

    def matrix(self, name: str) -> Callable[[Var, Var], Poly]:
        return lambda i, j: self.at(name, i, j)

    def pair(self, name: str) -> tuple[Poly, Poly]:
        a, b, c = map(self.matrix, "abc")
        i, j = self.i, self.j
        left, right = self.joined(self.joined(a, b), c), self.joined(a, self.joined(b, c))
        if name == "in either order":
            return left(i, j), right(i, j)
        if name == "to a vector":
            steps = self.best(lambda k: algebra.add(self.at("a", i, k), self.best(lambda m: self._on(k, m))))
            return steps, self.best(lambda m: algebra.add(self.joined(a, b)(i, m), self.at("v", m)))
        if name == "with one beside":
            both = apply(EXTREMA[self.kind], (left(i, j), a(i, j)))
            return both, apply(EXTREMA[self.kind], (a(i, j), right(i, j)))
        if name == "another order":
            return left(i, j), self.joined(self.joined(b, a), c)(i, j)
        if name == "turned":
            return left(i, j), right(j, i)
        if name == "one is missing":
            return left(i, j), self.joined(a, b)(i, j)
        if name == "another number":
            return left(i, j), algebra.add(right(i, j), number(1))
        if name == "twice":
            return left(i, j), self.joined(a, self.joined(b, lambda i, j: algebra.scale(c(i, j), 2)))(i, j)
        assert name == "the other kind inside"
        other = Made("min" if self.kind == "max" else "max")
        other.tensors = self.tensors
        return left(i, j), self.joined(a, other.joined(b, c))(i, j)

    def _on(self, k: Var, m: Var) -> Poly:
        return algebra.add(self.at("b", k, m), self.at("v", m))


SAME = "in either order", "to a vector", "with one beside"
OTHERS = "another order", "turned", "one is missing", "another number", "twice", "the other kind inside"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*SAME, *OTHERS])
def test_terms(name: str, kind: str) -> None:
    session = Session()
    with session.on():
        made = Made(kind)
        found, expected = made.pair(name)
        assert same_greatest_sum(found, expected, session) == (name in SAME)
        places = {made.i: np.arange(SIZE)[:, None], made.j: np.arange(SIZE)}
        drawn = np.random.default_rng(1)
        differ = False
        for _ in range(20):
            values: dict[Tensor, Any] = {x: drawn.integers(-9, 9, x.shape) for x in made.tensors.values()}
            one, other = (np.asarray(Evaluator(values).poly(p, places)) for p in (found, expected))
            differ |= bool((np.broadcast_to(one, (SIZE, SIZE)) != np.broadcast_to(other, (SIZE, SIZE))).any())
        assert differ == (name in OTHERS)


@pytest.mark.parametrize("dtype", ["i32", "i1"])
def test_integers_wrap(dtype: str) -> None:
    """100 + max(50, -100) is less than max(100 + 50, 100 - 100) in 8 bits."""
    session = Session()
    with session.on():
        assert not same_greatest_sum(*Made("max", dtype).pair("in either order"), session)


def best_way(start: Any, step: Any, gains: Any) -> Any:
    """Viterbi's recursion: the greatest sum of a way to each state."""

    def turn(so_far: Any, gain: Any) -> tuple[Any, None]:
        return (so_far[:, None] + step).max(0) + gain, None

    return lax.scan(turn, start, gains)[0]


def in_parts(start: Any, step: Any, gains: Any, one: int = 0) -> Any:
    """Each device's part of the way between any two states, and these one after another."""
    part = step + gains[0]
    part = (part[:, :, None] + (step + gains[1])[None]).max(1)
    for k, there in enumerate(lax.all_gather(part, "d")):
        start = (start[:, None] + (there.T if k == one - 1 else there)).max(0)
    return start


def verdict(other: Callable[..., Any]) -> Verdict:
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((2,), (2, 2), (8, 2))]
    specs = P(), P(), P("d")
    mapped = jax.shard_map(other, mesh=MESH, in_specs=specs, out_specs=P(), check_vma=False)
    return verify(jax.jit(best_way).trace(*shapes), jax.jit(mapped).trace(*shapes), devices=4, refute=False).verdict


def test_the_best_way_in_parts(prover_alone: None) -> None:
    assert verdict(in_parts) is Verdict.PROVED


@pytest.mark.parametrize("one", [1, 4])
def test_a_part_that_is_turned(one: int, prover_alone: None) -> None:
    assert verdict(lambda *given: in_parts(*given, one)) is not Verdict.PROVED


ALL_AT_ONCE: dict[str, Callable[..., Any]] = {
    "": lambda a, b, c: lax.pmax(jnp.max(a[:, :, None] + b[None] + c, (1, 2)), "d"),
    "the other first": lambda a, b, c: jnp.max(lax.pmax(jnp.max(a[:, :, None] + b[None], 1), "d") + c, 1),
    "subtracted": lambda a, b, c: lax.pmax(jnp.max(a[:, :, None] + b[None] - c, (1, 2)), "d"),
    "apart": lambda a, b, c: lax.pmax(jnp.max(a, 1) + jnp.max(b + c), "d"),
}


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("other", ALL_AT_ONCE)
def test_sums_that_have_a_name(other: str) -> None:
    """Of three numbers that are added up, two in a maximum of their own."""

    def in_turn(a: Any, b: Any, c: Any) -> Any:
        return jnp.max(a + jnp.max(b + c, 1), 1)

    placed = Placed(AbstractMesh((4,), ("d",)), (P(None, "d"), P("d"), P()), P(), floats((4, 8), (8, 4), (4,)))
    report = verify(*placed.pair(in_turn, ALL_AT_ONCE[other]), refute=False)
    assert (report.verdict is Verdict.PROVED) == (other in ("", "the other first"))
