"""Means and softmaxes over a mask that may be empty: guards in several spellings, shared out over devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.equality.presence import never_zero
from hlo_verify.index import expr
from hlo_verify.terms import algebra
from hlo_verify.terms.functions import INVERSE
from hlo_verify.terms.functions import Function as Named
from hlo_verify.terms.laws import apply
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import Poly, Tensor, number, tensor
from tests.passes.prove.each_device.programs import on

Function = Callable[..., Any]


def total(x: jax.Array) -> jax.Array:
    return lax.psum(jnp.sum(x), "i")


def verdict(reference: Function, local: Function, ins: Any, outs: Any) -> Verdict:
    def masked(function: Function) -> Function:
        return lambda x, m: function(x, m > 0)

    placed = on({"i": 4}, ins, outs, (8, 16), (8, 16))
    return hlo_verify.verify(*placed.pair(masked(reference), masked(local)), refute=False).verdict


WHOLE: dict[str, Function] = {
    "guarded": lambda x, m: jnp.where(m.sum() > 0, (x * m).sum() / m.sum(), 0),
    "at_least_one": lambda x, m: (x * m).sum() / jnp.maximum(m.sum(), 1),
    "at_least_one_of_floats": lambda x, m: (x * m).sum() / jnp.maximum(m.astype(jnp.float32).sum(), 1),
}
PARTS: dict[str, Function] = {
    "guarded": lambda x, m: jnp.where(total(m) > 0, total(jnp.where(m, x, 0)) / total(m), 0),
    "at_least_one": lambda x, m: total(x * m) / jnp.maximum(total(m.astype(jnp.float32)), 1),
    "one_instead_of_none": lambda x, m: total(x * m) / jnp.where(total(m) == 0, 1, total(m)),
    "any": lambda x, m: jnp.where(lax.pmax(jnp.any(m).astype(jnp.int32), "i") > 0, total(x * m) / total(m), 0),
}
WRONG: dict[str, Function] = {
    "unguarded": lambda x, m: total(x * m) / total(m),
    "own_count": lambda x, m: total(x * m) / jnp.maximum(m.sum(), 1),
    "at_least_two": lambda x, m: total(x * m) / jnp.maximum(total(m.astype(jnp.float32)), 2),
    "more_than_one": lambda x, m: jnp.where(total(m) > 1, total(x * m) / total(m), 0),
    "one_for_none": lambda x, m: jnp.where(total(m) > 0, total(x * m) / total(m), 1),
    "unmasked": lambda x, m: total(x) / jnp.maximum(total(m.astype(jnp.float32)), 1),
    "unmasked_for_none": lambda x, m: jnp.where(total(m) > 0, total(x * m) / total(m), total(x)),
    "of_the_first_row": lambda x, m: jnp.where(total(m[0]) > 0, total(x * m) / total(m), 0),
    "of_its_own": lambda x, m: jnp.where(jnp.any(m), total(x * m) / total(m), 0),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("reference", WHOLE)
def test_a_mean_over_a_mask(reference: str, name: str) -> None:
    assert verdict(WHOLE[reference], PARTS[name], (P("i"), P("i")), P()) is Verdict.PROVED


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("reference", WHOLE)
def test_a_wrong_mean_over_a_mask(reference: str, name: str) -> None:
    assert verdict(WHOLE[reference], WRONG[name], (P("i"), P("i")), P()) is not Verdict.PROVED


@pytest.mark.parametrize("name", [*PARTS, "unguarded", "one_for_none", "unmasked_for_none"])
def test_a_mean_that_the_reference_divides_by_none(name: str) -> None:
    """Where the mask is empty, the logical module divides by 0."""
    local = PARTS.get(name) or WRONG[name]
    assert verdict(lambda x, m: (x * m).sum() / m.sum(), local, (P("i"), P("i")), P()) is Verdict.PROVED


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", sorted(WRONG.keys() - {"unguarded", "one_for_none", "unmasked_for_none"}))
def test_a_wrong_mean_that_the_reference_divides_by_none(name: str) -> None:
    found = verdict(lambda x, m: (x * m).sum() / m.sum(), WRONG[name], (P("i"), P("i")), P())
    assert found is not Verdict.PROVED


@pytest.mark.parametrize(("dtype", "size"), [("uint8", 255), ("uint8", 256), ("int8", 127), ("int8", 128)])
def test_a_count_in_a_narrow_type(dtype: str, size: int) -> None:
    """256 of what holds are none in eight bits, of which the greater of it and 1 is 1."""
    count = lambda m: jnp.maximum(jnp.sum(m, dtype=dtype), 1).astype(jnp.float32)  # noqa: E731
    mean = lambda m: m.sum() / count(m)  # noqa: E731
    masks = jax.ShapeDtypeStruct((size,), jnp.bool_)
    for narrow, wide in (
        (count, lambda m: jnp.maximum(m.astype(jnp.float32).sum(), 1)),
        (mean, lambda m: jnp.where(m.any(), m.sum() / m.astype(jnp.float32).sum(), 0)),
    ):
        pairs = [jax.jit(f).trace(masks) for f in (narrow, wide)]
        for pair in (pairs, pairs[::-1]):
            proved = hlo_verify.verify(*pair, refute=False).verdict is Verdict.PROVED
            assert proved is (size % 2 == 1), (narrow, pair is pairs)


def test_what_the_reference_divides_by_where_it_is_selected() -> None:
    """Where the first column is masked, it divides by nothing, whatever else is masked."""
    whole = lambda x, m: jnp.where(m[0, 0], (x * m).sum() / m.sum(), 1)  # noqa: E731
    other = lambda x, m: jnp.where(total(m) > 0, jnp.where(m[0, 0], total(x * m) / total(m), 1), 0)  # noqa: E731
    assert verdict(whole, other, (P(None, "i"), P(None, "i")), P()) is not Verdict.PROVED


def shares(z: jax.Array, m: jax.Array) -> jax.Array:
    e = jnp.where(m, jnp.exp(z), 0)
    return e / jnp.where((e.sum(1) == 0)[:, None], 1, e.sum(1, keepdims=True))


def parts_of_shares(z: jax.Array, m: jax.Array, shared: bool = True, none: float = 0.0, by: int = 4) -> jax.Array:
    e = jnp.exp(z) * m
    whole = lax.psum(e.sum(1, keepdims=True), "i") if shared else e.sum(1, keepdims=True)
    held = lax.psum(m[:, :by].sum(1, keepdims=True), "i")
    return jnp.where(held > 0, e / whole, none)


SHARES: dict[str, tuple[Function, bool]] = {
    "right": (parts_of_shares, True),
    "what_is_masked_for_none": (lambda z, m: jnp.where(total_of_rows(z, m) > 0, parts_of_shares(z, m), m), True),
    "sum_of_its_own": (lambda z, m: parts_of_shares(z, m, shared=False), False),
    "another_value_for_none": (lambda z, m: parts_of_shares(z, m, none=1.0), False),
    "part_of_the_mask": (lambda z, m: parts_of_shares(z, m, by=1), False),
}


def total_of_rows(z: jax.Array, m: jax.Array) -> jax.Array:
    return lax.psum((jnp.exp(z) * m).sum(1, keepdims=True), "i")


@pytest.mark.parametrize("name", SHARES)
def test_shares_of_what_is_there(name: str) -> None:
    local, is_right = SHARES[name]
    along = P(None, "i")
    assert (verdict(shares, local, (along, along), along) is Verdict.PROVED) is is_right


def variance(x: jax.Array, m: jax.Array) -> jax.Array:
    mean = (x * m).sum() / m.sum()
    return ((x - mean) ** 2 * m).sum() / m.sum()


def variance_in_one_pass(x: jax.Array, m: jax.Array, *, own: bool = False, times: int = 1) -> jax.Array:
    n = m.sum() if own else total(m)
    return total(x * x * m) / n - times * (total(x * m) / n) ** 2


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.int32])
def test_a_variance_over_a_mask(dtype: Any) -> None:
    """Where the mask is empty, the logical module divides 0 by 0."""
    local = lambda x, m: variance_in_one_pass(x, m.astype(dtype))  # noqa: E731
    assert verdict(variance, local, (P("i"), P("i")), P()) is Verdict.PROVED


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    "local",
    [
        partial(variance_in_one_pass, own=True),
        partial(variance_in_one_pass, times=2),
        lambda x, m: variance_in_one_pass(x, m) * 8 / total(m),
        lambda x, m: jnp.where(total(m) > 0, variance_in_one_pass(x, m), 0) + 0 / total(x),
    ],
)
def test_a_wrong_variance_over_a_mask(local: Function) -> None:
    assert verdict(variance, local, (P("i"), P("i")), P()) is not Verdict.PROVED


def norm(x: jax.Array) -> jax.Array:
    return jnp.sqrt(total(x * x))


UNITS: dict[str, tuple[Function, Function, bool]] = {
    "a vector": (
        lambda x, w: x / jnp.where((x * x).sum() == 0, 1, jnp.sqrt((x * x).sum())),
        lambda x, w: jnp.where((n := total(x * x)) > 0, x * lax.rsqrt(jnp.where(n > 0, n, 1)), 0),
        True,
    ),
    "a vector, or one": (
        lambda x, w: x / jnp.where((x * x).sum() == 0, 1, jnp.sqrt((x * x).sum())),
        lambda x, w: jnp.where(norm(x) > 0, x / norm(x), 1),
        False,
    ),
    "another vector": (
        lambda x, w: w / jnp.where((x * x).sum() == 0, 1, jnp.sqrt((x * x).sum())),
        lambda x, w: jnp.where((n := total(x * x)) > 0, w * lax.rsqrt(jnp.where(n > 0, n, 1)), 0),
        False,
    ),
    "a vector's own part": (
        lambda x, w: x / jnp.where((x * x).sum() == 0, 1, jnp.sqrt((x * x).sum())),
        lambda x, w: jnp.where((x * x).sum() > 0, x / norm(x), 0),
        False,
    ),
    "weights": (
        lambda x, w: (w := jnp.maximum(w, 0)) * jnp.where(w.sum() > 0, (w * x).sum() / w.sum(), 0),
        lambda x, w: (w := jnp.maximum(w, 0)) * total(w * x) / jnp.where(total(w) == 0, 1, total(w)),
        True,
    ),
    "weights of any sign": (
        lambda x, w: jnp.where(w.sum() != 0, (w * x).sum() / w.sum(), 0) + 0 * x,
        lambda x, w: total(w * x) / jnp.where(total(w) == 0, 1, total(w)) + 0 * x,
        False,
    ),
    "sizes": (
        lambda x, w: (w * abs(x)).sum() / jnp.where(abs(x).sum() == 0, 1, abs(x).sum()) + 0 * x,
        lambda x, w: jnp.where(total(abs(x)) > 0, total(w * abs(x)) / total(abs(x)), 0) + 0 * x,
        True,
    ),
    "quotients that are multiplied by 0": (
        lambda x, w: jnp.where((x * x).sum() > 0, (x / w).sum(), 0) + 0 * x,
        lambda x, w: total(x / w) + 0 * x,
        False,
    ),
    "logarithms that are multiplied by 0": (
        lambda x, w: jnp.where((n := abs(x).sum()) > 0, (x * jnp.log(w * w)).sum() / n, 0) + 0 * x,
        lambda x, w: total(x * jnp.log(w * w)) / jnp.where((n := total(abs(x))) == 0, 1, n) + 0 * x,
        False,
    ),
    "infinities that are multiplied by 0": (
        lambda x, w: jnp.where((x * x).sum() > 0, (x * jnp.where(w > 0, jnp.inf, 1)).sum(), 0) + 0 * x,
        lambda x, w: total(x * jnp.where(w > 0, jnp.inf, 1)) + 0 * x,
        False,
    ),
    "what the reference divides by": (
        lambda x, w: (w - 3) / (x * w).sum(),
        lambda x, w: (w - 3) / jnp.where(total(x * w) == 0, 1, total(x * w)),
        True,
    ),
    "what it divides by, of either sign": (
        lambda x, w: (w - 3) / (x * w).sum(),
        lambda x, w: jnp.where(total(x * w) > 0, (w - 3) / total(x * w), 0),
        False,
    ),
    "what it divides by in a case": (
        lambda x, w: jnp.where(w > 0, w / (x * w).sum(), 2),
        lambda x, w: jnp.where(total(x * w) == 0, 0, jnp.where(w > 0, w / total(x * w), 2)),
        False,
    ),
}
"""Quotients by what is never negative, or by what the reference divides by, and whether both are one."""


@pytest.mark.parametrize("name", UNITS)
def test_quotients_by_what_is_never_negative(name: str) -> None:
    whole, local, is_right = UNITS[name]
    placed = on({"i": 4}, (P("i"), P("i")), P("i"), (8, 3), (8, 3))
    assert (hlo_verify.verify(*placed.pair(whole, local), refute=False).verdict is Verdict.PROVED) is is_right


def divided_by_none(x: jax.Array) -> jax.Array:
    return 1 / jnp.tril(jnp.broadcast_to(jnp.exp(x), (8, 8)), -1).sum(1)


def divided_by_one(x: jax.Array) -> jax.Array:
    d = jnp.tril(jnp.broadcast_to(jnp.exp(lax.all_gather(x, "i", tiled=True)), (8, 8)), -1).sum(1)
    return jnp.where(d == 0, 0, 1 / jnp.where(d == 0, 1, d))


def test_a_row_of_which_nothing_is_left_for_any_input() -> None:
    """What the reference makes there is an infinity, which it means."""
    placed = on({"i": 4}, P("i"), P(), (8,))
    pair = placed.pair(divided_by_none, divided_by_one)
    assert hlo_verify.verify(*pair, refute=False).verdict is not Verdict.PROVED


def masked_attention(q: jax.Array, k: jax.Array, m: jax.Array) -> jax.Array:
    """Rows that may attend to nothing are 0."""
    s = jnp.where(m > 0, q @ k.T / 2, -jnp.inf)
    return jnp.where((m > 0).any(1, keepdims=True), jax.nn.softmax(s, 1) @ k, 0)


def attention_of_parts(
    q: jax.Array, k: jax.Array, m: jax.Array, *, none: float = 0, own: bool = False, units: float = 0
) -> jax.Array:
    s = jnp.where(m > 0, q @ k.T / 2, -jnp.inf)
    top = s.max(1, keepdims=True) if own else lax.pmax(s.max(1, keepdims=True), "i")
    e = jnp.exp(s - jnp.where(top == -jnp.inf, units, top))
    n = lax.psum(e.sum(1, keepdims=True), "i")
    return jnp.where(n > 0, lax.psum(e @ k, "i") / jnp.where(n > 0, n, 1), none)


@pytest.mark.parametrize(
    ("changed", "is_right"),
    [({}, True), ({"units": 3}, True), ({"none": 1}, False), ({"own": True}, False)],
    ids=str,
)
def test_rows_that_attend_to_nothing(changed: dict[str, Any], is_right: bool) -> None:
    placed = on({"i": 4}, (P(), P("i"), P(None, "i")), P(), (3, 4), (8, 4), (3, 8))
    pair = placed.pair(masked_attention, partial(attention_of_parts, **changed))
    assert (hlo_verify.verify(*pair, refute=False).verdict is Verdict.PROVED) is is_right


X, M, V = tensor("argument", "x", "f32", (4,)), tensor("argument", "m", "i1", (4,)), expr.var("v", "", 4)


def summed(*of: Tensor) -> Poly:
    body = reduce(algebra.expanded, (algebra.read(each, [expr.of_var(V)]) for each in of))
    return reduce_sum([V], body)


def over_count(p: Poly, power: int = 1) -> Poly:
    return algebra.expanded(p, algebra.power_of(apply(INVERSE, (summed(M),)), power))


@pytest.mark.parametrize(
    ("expected", "is_known"),
    [
        (over_count(summed(X, M)), True),  # 0/0 where nothing holds
        (over_count(summed(X, M), 2), True),
        (algebra.add(over_count(summed(X, M)), number(1)), True),
        (over_count(summed(X)), False),  # an infinity, which a function may take
        (over_count(algebra.read(X, [expr.constant(0)])), False),
        (algebra.expanded(algebra.read(M, [expr.constant(0)]), over_count(summed(X, M))), False),  # selected
        (apply(Named("tanh"), (over_count(summed(X, M)),)), False),
        (summed(X, M), False),
    ],
)
def test_counts_that_are_not_0_where_a_term_is_a_number(expected: Poly, is_known: bool) -> None:
    assert never_zero(expected) == (frozenset({summed(M)}) if is_known else frozenset())
