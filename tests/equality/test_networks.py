"""Sums of products are equal however they are associated, ordered, distributed and unrolled, and not otherwise."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_verify.equality.networks import same_network
from hlo_verify.index import expr
from hlo_verify.index.expr import Var
from hlo_verify.session import Session
from hlo_verify.terms import algebra
from hlo_verify.terms.definitions import named
from hlo_verify.terms.functions import real
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, Tensor, tensor
from tests.support import recipes
from tests.support.evaluate import Evaluator
from tests.support.expressions import many
from tests.support.recipes import Builder, computed

SIZES = {"i": 4, "j": 4, "k": 4, "l": 2, "m": 6, "n": 2}
"""Two of them are often equal, so that what is transposed still has a shape that fits."""

SEEDS = range(60)


@dataclass(frozen=True, slots=True)
class Network:
    """`scale * sum over all letters but those of out of the product of factors`, each a sum of some."""

    out: str
    factors: tuple[tuple[Factor, ...], ...]
    scale: int = 1


@dataclass(frozen=True, slots=True)
class Factor:
    """A tensor at some letters, or a function of a network's elements."""

    letters: str
    name: str
    inside: Network | None = None


@dataclass(slots=True)
class Writer:
    """Writes a network as a term, each time in another way."""

    way: random.Random
    variables: dict[str, Var]
    tensors: dict[tuple[str, int], Tensor] = field(default_factory=dict)

    def write(self, network: Network) -> Poly:
        """Contract two factors after the other, sum a letter as soon as or later than it may be; distribute or not."""
        if self.way.random() < 0.3:
            for n, several in enumerate(network.factors):
                if len(several) > 1:
                    before, after = network.factors[:n], network.factors[n + 1 :]
                    each = (replace(network, factors=(*before, (one,), *after)) for one in several)
                    return algebra.add(*(self.write(one) for one in each))
        parts = [(set(several[0].letters), self._sum_of(several)) for several in network.factors]
        self.way.shuffle(parts)
        while len(parts) > 1:
            a, b = self.way.sample(range(len(parts)), 2)
            letters = parts[a][0] | parts[b][0]
            product = algebra.multiply(parts[a][1], parts[b][1])
            parts = [part for n, part in enumerate(parts) if n not in (a, b)]
            parts.append(self._summed(letters, product, set(network.out).union(*(own for own, _ in parts))))
        letters, product = self._summed(*parts[0], set(network.out), always=True)
        return algebra.scale(product, network.scale)

    def _sum_of(self, several: Sequence[Factor]) -> Poly:
        found = algebra.add(*map(self._factor, several))
        return named(found) if self.way.random() < 0.3 else found

    def _factor(self, factor: Factor) -> Poly:
        if factor.inside is not None:
            return apply(real("tanh"), (self.write(factor.inside),))
        key = factor.name, len(factor.letters)
        if key not in self.tensors:
            self.tensors[key] = tensor("argument", factor.name, "f32", tuple(SIZES[v] for v in factor.letters))
        return algebra.read(self.tensors[key], [expr.of_var(self.variables[v]) for v in factor.letters])

    def _summed(self, letters: set[str], p: Poly, kept: set[str], always: bool = False) -> tuple[set[str], Poly]:
        for letter in sorted(letters - kept):
            if always or self.way.random() < 0.7:
                p = self._sum(self.variables[letter], p)
                letters = letters - {letter}
        return letters, named(p) if self.way.random() < 0.2 else p

    def _sum(self, v: Var, p: Poly) -> Poly:
        """A sum: as one, over a device's part and the rest, of slices, or written out."""
        form = self.way.randrange(5)
        if form == 0:
            return algebra.add(*(algebra.substitute(p, {v: expr.constant(n)}) for n in range(v.size)))
        half = v.size // 2
        low = expr.fresh("f", half)
        if form == 1 and half > 1:
            parts = (algebra.substitute(p, {v: expr.shift(expr.of_var(low), at)}) for at in (0, half))
            return algebra.add(*(reduce_sum([low], part) for part in parts))
        if form == 2 and half > 1:
            high = expr.fresh("f", 2)
            place = expr.add(expr.of_var(low), expr.scale(expr.of_var(high), half))
            return reduce_sum([high], reduce_sum([low], algebra.substitute(p, {v: place})))
        return reduce_sum([v], p)


def drawn(way: random.Random, depth: int = 1) -> Network:
    """A network of two to four factors, every letter of which is in one of them."""
    letters = way.sample(sorted(SIZES), way.randint(3, 4))
    out = "".join(way.sample(letters, way.randint(0, 2)))
    factors = []
    for n in range(way.randint(2, 4)):
        own = "".join(way.sample(letters, way.randint(1, 2)))
        several = [Factor(own, way.choice("ABC") + str([SIZES[v] for v in own])) for _ in range(way.randint(1, 2))]
        if depth and n == 0 and way.random() < 0.4:
            inside = drawn(way, depth - 1)
            several = [Factor(inside.out, "f", inside)]
        factors.append(tuple(several))
    used = set().union(*(factor.letters for several in factors for factor in several))
    return Network("".join(v for v in out if v in used), tuple(factors), way.choice((1, 1, 2, -3)))


def mutated(way: random.Random, network: Network) -> Network:
    """A network with one thing changed: a factor transposed or exchanged, an addend missed, a scale, a letter."""
    n = way.randrange(len(network.factors))
    several = list(network.factors[n])
    k = way.randrange(len(several))
    one = several[k]
    kind = way.randrange(5)
    if one.inside is not None:
        several[k] = replace(one, inside=mutated(way, one.inside))
    elif kind == 0:
        several[k] = replace(
            one, letters=one.letters[::-1], name=one.name[0] + str([SIZES[v] for v in one.letters[::-1]])
        )
    elif kind == 1 and len(several) > 1:
        del several[k]
    elif kind == 2:
        return replace(network, scale=network.scale + 1)
    elif kind == 3:
        several[k] = replace(one, name=way.choice("ABC") + one.name[1:])
    else:
        other = {"i": "j", "j": "k", "k": "i", "l": "n", "n": "l"}
        letters = "".join(other.get(v, v) for v in one.letters)
        several = [replace(each, letters=letters) for each in several] if len(several) == 1 else several
    return replace(network, factors=(*network.factors[:n], tuple(several), *network.factors[n + 1 :]))


def letters_of(network: Network) -> set[str]:
    own = set(network.out)
    for several in network.factors:
        for factor in several:
            own |= set(factor.letters) | (letters_of(factor.inside) if factor.inside else set())
    return own


def values(p: Poly, writer: Writer, out: str) -> np.ndarray:
    """A term in exact numbers (tanh is some cubic polynomial, so that what differs, differs)."""
    numbers = np.random.default_rng(0)
    held = {source: numbers.integers(-3, 4, source.shape) for source in writer.tensors.values()}
    places = np.ogrid[tuple(slice(SIZES[v]) for v in out)] if out else []
    env = {writer.variables[v]: place for v, place in zip(out, places, strict=True)}
    return np.asarray(Evaluator(held).poly(p, env), dtype=float)


def writer_of(way: random.Random) -> Writer:
    return Writer(way, {letter: expr.var(letter, "", size) for letter, size in SIZES.items()})


@pytest.mark.drawn(25)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_network_written_in_two_ways(seed: int) -> None:
    way = random.Random(seed)
    network, writer = drawn(way), writer_of(way)
    assert same_network(writer.write(network), writer.write(network), Session()), network


@pytest.mark.drawn(12)
@pytest.mark.parametrize("seed", SEEDS)
def test_networks_that_differ(seed: int) -> None:
    way = random.Random(seed)
    network, writer = drawn(way), writer_of(way)
    other = mutated(way, network)
    one, two = writer.write(network), writer.write(other)
    if same_network(one, two, Session()):
        here, there = values(one, writer, network.out), values(two, writer, network.out)
        assert np.allclose(here, there, rtol=1e-9, atol=1e-9), (network, other)


@many
@given(data=st.data())
def test_what_is_found_equal_is_equal(data: st.DataObject) -> None:
    """Functions with conditions, sums and index values, and such that differ in a number, a name or an order."""
    sizes = list(data.draw(st.lists(st.sampled_from((1, 2, 3, 4, 6)), min_size=1, max_size=2)))
    one = recipes.recipe(data.draw, len(sizes), data.draw(st.integers(1, 3)))
    other = recipes.mutated(data.draw, one)
    builder, way = Builder(), random.Random(data.draw(st.integers(0, 2**16)))
    variables = tuple(expr.of_var(expr.var("x", n, size)) for n, size in enumerate(sizes))
    found, expected = (builder.build(r, variables, way) for r in (one, other))
    true = all(computed(one, p) == computed(other, p) for p in np.ndindex(*sizes))
    assert true or not same_network(found, expected, Session()), (one, other, sizes)
