"""What people write by hand as other sums of products: each form, and a twin that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict, verify
from tests.support.lowering import Placed, Specs, floats

Function = Callable[..., Any]
Form = tuple[Specs, Specs, Sequence[tuple[int, ...]], Function, Function, Function]
"""Specs of arguments and results, shapes, a function of whole arrays, one of shards, and a wrong one."""

X, COLUMNS, WHOLE = P("x"), P(None, "x"), P()


def total(t: jax.Array) -> jax.Array:
    return lax.psum(t, "x")


def mean(t: jax.Array) -> jax.Array:
    return lax.pmean(t.mean(0), "x")


def centred(t: jax.Array) -> jax.Array:
    return t - t.mean(0)


def moments(x: jax.Array, times: float = 1) -> tuple[jax.Array, jax.Array]:
    """Mean and variance along features, by the mean of squares."""
    m = x.mean(-1, keepdims=True)
    return m, (x * x).mean(-1, keepdims=True) - times * m * m


def layer_norm(x: jax.Array) -> jax.Array:
    m = x.mean(-1, keepdims=True)
    return (x - m) / jnp.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5)


def layer_norm_of_squares(x: jax.Array, times: float = 1) -> jax.Array:
    m, v = moments(x, times)
    return (x - m) / jnp.sqrt(v + 1e-5)


def newton_schulz(x: jax.Array) -> jax.Array:
    s = x.T @ x
    return 3 * x + (x @ (2 * s - 5 * s @ s))


def newton_schulz_of_shards(x: jax.Array, times: float = 5) -> jax.Array:
    s = total(x.T @ x)
    return 3 * x + 2 * x @ s - times * (x @ s) @ s


def two_linear_layers(order: str) -> Function:
    """The gradient of a linear network's loss in its first weights, by hand."""

    def gradient(x: jax.Array, y: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
        if order == "error first":
            return total(x.T @ ((x @ a @ b - y) @ b.T))
        if order == "products of weights":
            return total((x.T @ x) @ (a @ b) - x.T @ y) @ b.T
        return total((x.T @ x) @ (a @ b) - x.T @ y) @ b

    return gradient


def loss_of_two_layers(a: jax.Array, x: jax.Array, y: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.sum((x @ a @ b - y) ** 2) / 2


def attention(q: jax.Array, k: jax.Array, w: jax.Array) -> jax.Array:
    return jax.nn.softmax((q @ w) @ (k @ w).T)


def attention_of_shards(q: jax.Array, k: jax.Array, w: jax.Array) -> jax.Array:
    return jax.nn.softmax(q @ ((w @ w.T) @ k.T))


def window(x: jax.Array, taps: Sequence[jax.Array]) -> jax.Array:
    n = x.shape[1]
    padded = jnp.pad(x, ((0, 0), (1, 1)))
    return jnp.asarray(sum(padded[:, k : k + n] * tap for k, tap in enumerate(taps)))


def convolution(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x[:, None], w[None, None], (1,), "SAME")[:, 0]


FORMS: dict[str, Form] = {
    "matrices in another order": (
        (X, WHOLE, WHOLE), X, [(8, 6), (6, 3), (3, 5)],
        lambda x, a, b: x @ (a @ b),
        lambda x, a, b: (x @ a) @ b,
        lambda x, a, b: (x @ a) @ b + x[:, :5],
    ),
    "inside of a function": (
        (X, WHOLE, WHOLE), X, [(8, 6), (6, 3), (3, 5)],
        lambda x, a, b: jnp.tanh(x @ (a @ b)),
        lambda x, a, b: jnp.tanh((x @ a) @ b),
        lambda x, a, b: jnp.tanh(2 * (x @ a) @ b),
    ),
    "a transposed factor": (
        (X, WHOLE, WHOLE), X, [(8, 4), (4, 4), (4, 4)],
        lambda x, a, b: x @ (a @ b),
        lambda x, a, b: (x @ a) @ b,
        lambda x, a, b: (x @ a.T) @ b,
    ),
    "Gram matrix times a vector": (
        (X, WHOLE), WHOLE, [(8, 6), (6,)],
        lambda x, v: (x.T @ x) @ v,
        lambda x, v: total(x.T @ (x @ v)),
        lambda x, v: total(x.T @ (x @ v)) + v,
    ),
    "Gram matrix is symmetric": (
        (X,), WHOLE, [(8, 4)],
        lambda x: (x.T @ x).T,
        lambda x: total(x.T @ x),
        lambda x: total(x[:, ::-1].T @ x),
    ),
    "a matrix that is not symmetric": (
        (X, X), WHOLE, [(8, 4), (8, 4)],
        lambda x, y: (x.T @ y).T,
        lambda x, y: total(y.T @ x),
        lambda x, y: total(x.T @ y),
    ),
    "three operands": (
        (X, X, WHOLE), X, [(8, 3), (8, 4), (3, 4, 5)],
        lambda a, b, c: jnp.einsum("te,tm,emn->tn", a, b, c),
        lambda a, b, c: jnp.einsum("tm,tmn->tn", b, jnp.einsum("te,emn->tmn", a, c)),
        lambda a, b, c: jnp.einsum("tm,tmn->tn", b, jnp.einsum("te,emn->tmn", a * a, c)),
    ),
    "bilinear form": (
        (X, WHOLE, X), X, [(8, 4), (4, 4), (8, 4)],
        lambda x, w, y: jnp.einsum("bi,ij,bj->b", x, w, y),
        lambda x, w, y: jnp.sum((y @ w.T) * x, -1),
        lambda x, w, y: jnp.sum((y @ w) * x, -1),
    ),
    "trace of a product": (
        (X, X), WHOLE, [(8, 4), (8, 4)],
        lambda x, y: jnp.trace(x.T @ y),
        lambda x, y: total(jnp.sum(x * y)),
        lambda x, y: total(jnp.sum(x)) * total(jnp.sum(y)),
    ),
    "Frobenius norm of a product": (
        (X, WHOLE), WHOLE, [(8, 3), (3, 5)],
        lambda x, b: jnp.sum((x @ b) ** 2),
        lambda x, b: jnp.sum(total(x.T @ x) * (b @ b.T)),
        lambda x, b: jnp.sum(total(x.T @ x) @ (b @ b.T)),
    ),
    "dot product of a gradient": (
        (X,), WHOLE, [(8, 3)],
        lambda g: jnp.vdot(g, g),
        lambda g: total(jnp.sum(g * g)),
        lambda g: total(jnp.sum(g)) ** 2,
    ),
    "low-rank update": (
        (X, WHOLE, WHOLE, WHOLE), WHOLE, [(8, 6), (6, 2), (2, 5), (6, 5)],
        lambda x, a, b, w: jnp.sum((x @ (w + 4 * a @ b)) ** 2),
        lambda x, a, b, w: total(jnp.sum((x @ w + 4 * ((x @ a) @ b)) ** 2)),
        lambda x, a, b, w: total(jnp.sum((x @ w + 2 * ((x @ a) @ b)) ** 2)),
    ),
    "covariance": (
        (X,), WHOLE, [(24, 5)],
        lambda x: centred(x).T @ centred(x) / 24,
        lambda x: total(x.T @ x) / 24 - jnp.outer(mean(x), mean(x)),
        lambda x: total(x.T @ x) / 23 - jnp.outer(mean(x), mean(x)),
    ),
    "variance": (
        (X,), WHOLE, [(8, 3)],
        lambda x: jnp.var(x, 0),
        lambda x: mean(x * x) - mean(x) ** 2,
        lambda x: mean(x * x) - mean(x),
    ),
    "layer norm by the mean of squares": (
        (X,), X, [(8, 6)],
        layer_norm,
        layer_norm_of_squares,
        lambda x: layer_norm_of_squares(x, 2),
    ),
    "batch norm by the mean of squares": (
        (X,), X, [(8, 6)],
        lambda x: centred(x) / jnp.sqrt(x.var(0) + 0.01),
        lambda x: (x - mean(x)) / jnp.sqrt(mean(x * x) - mean(x) ** 2 + 0.01),
        lambda x: (x - mean(x)) / jnp.sqrt(mean(x * x) - (x.mean(0)) ** 2 + 0.01),
    ),
    "Newton-Schulz": (
        (X,), X, [(16, 4)],
        newton_schulz,
        newton_schulz_of_shards,
        lambda x: newton_schulz_of_shards(x, 4),
    ),
    "a sum unrolled": (
        (X, WHOLE), X, [(8, 3, 4), (3, 4, 5)],
        lambda x, w: jnp.einsum("bkm,kmn->bn", x, w),
        lambda x, w: sum(x[:, k] @ w[k] for k in range(3)),
        lambda x, w: sum(x[:, k] @ w[k] for k in range(2)),
    ),
    "a shared operand unrolled": (
        (X, WHOLE), X, [(8, 4), (3, 4, 5)],
        lambda x, w: jnp.tanh(jnp.einsum("bm,kmn->bn", x, w)),
        lambda x, w: jnp.tanh(sum(x @ w[k] for k in range(3))),
        lambda x, w: jnp.tanh(sum(x @ w[k - k % 2] for k in range(3))),
    ),
    "slices of a contraction": (
        (X, WHOLE), X, [(8, 12), (12, 5)],
        lambda x, w: x @ w,
        lambda x, w: x[:, :4] @ w[:4] + x[:, 4:] @ w[4:],
        lambda x, w: x[:, :4] @ w[:4] + x[:, 4:] @ w[:8],
    ),
    "microbatches": (
        (COLUMNS, WHOLE), WHOLE, [(3, 8, 4), (4, 4)],
        lambda x, w: jnp.einsum("kbm,kbn->mn", x, jnp.tanh(x @ w)),
        lambda x, w: total(sum(x[k].T @ jnp.tanh(x[k] @ w) for k in range(3))),
        lambda x, w: total(sum(x[k].T @ jnp.tanh(x[0] @ w) for k in range(3))),
    ),
    "a convolution as shifted products": (
        (X, WHOLE), X, [(8, 6), (3,)],
        convolution,
        lambda x, w: window(x, [w[0], w[1], w[2]]),
        lambda x, w: window(x, [w[2], w[1], w[0]]),
    ),
    "gradient of two linear layers": (
        (X, X, WHOLE, WHOLE), WHOLE, [(8, 4), (8, 3), (4, 3), (3, 3)],
        lambda x, y, a, b: jax.grad(loss_of_two_layers)(a, x, y, b),
        two_linear_layers("products of weights"),
        two_linear_layers("a transposed weight"),
    ),
    "the same, error first": (
        (X, X, WHOLE, WHOLE), WHOLE, [(8, 4), (8, 3), (4, 3), (3, 3)],
        lambda x, y, a, b: (x.T @ x) @ a @ (b @ b.T) - x.T @ (y @ b.T),
        two_linear_layers("error first"),
        lambda x, y, a, b: total(x.T @ ((x @ a @ b) @ b.T)),
    ),
    "scores by the product of two projections": (
        (X, WHOLE, WHOLE), X, [(8, 4), (6, 4), (4, 2)],
        attention,
        attention_of_shards,
        lambda q, k, w: jax.nn.softmax(2 * q @ ((w @ w.T) @ k.T)),
    ),
    "Kronecker product": (
        (X, WHOLE, WHOLE), X, [(8, 6), (2, 4), (3, 5)],
        lambda x, a, b: x @ jnp.kron(a, b),
        lambda x, a, b: jnp.einsum("tij,ik,jl->tkl", x.reshape(-1, 2, 3), a, b).reshape(-1, 20),
        lambda x, a, b: jnp.einsum("tij,jk,il->tkl", x.reshape(-1, 3, 2), a, b).reshape(-1, 20),
    ),
    "one-hot rows": (
        (X, WHOLE), X, [(8, 4), (4, 5)],
        lambda x, w: x @ (jnp.eye(4) @ w),
        lambda x, w: x @ w,
        lambda x, w: x @ jnp.roll(w, 1, 0),
    ),
}  # fmt: skip


def verdict(form: Form, local: Function, devices: int) -> Verdict:
    given, wanted, shapes, whole, *_ = form
    placed = Placed(AbstractMesh((devices,), ("x",), axis_types=(AxisType.Auto,)), given, wanted, floats(*shapes))
    return verify(*placed.pair(whole, local), refute=False).verdict


@pytest.mark.drawn(25)
@pytest.mark.parametrize("devices", (2, 4))
@pytest.mark.parametrize("name", FORMS)
def test_right(name: str, devices: int) -> None:
    assert verdict(FORMS[name], FORMS[name][4], devices) is Verdict.PROVED


@pytest.mark.drawn(15)
@pytest.mark.parametrize("name", FORMS)
def test_wrong(name: str) -> None:
    assert verdict(FORMS[name], FORMS[name][5], 2) is Verdict.UNKNOWN


HIDING: dict[str, Callable[[Any], Any]] = {
    "comparison with itself": lambda v: lax.eq(v, v),
    "comparison": lambda v: v > 0,
    "sum of comparisons": lambda v: jnp.sum(v > 0),
    "choice": lambda v: jnp.where(v > 0, 1.0, 2.0),
    "is finite": jnp.isfinite,
    "argmax": lambda v: jnp.argmax(v, 0),
    "order": lambda v: jnp.argsort(v, 0),
    "integer": lambda v: jnp.floor(v).astype(jnp.int32),
    "linear algebra": lambda v: jnp.linalg.qr(v)[1],
    "loop": lambda v: lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c @ v), v),
}
NOTHING: dict[str, Callable[[Any], Any]] = {
    "a number": lambda x: 0.0,
    "logarithms less themselves": lambda x: jnp.log(x) - jnp.log(x),
    "logarithms in two orders": lambda x: (jnp.log(x) @ x) @ x - jnp.log(x) @ (x @ x),
}


@pytest.mark.drawn(5)
@pytest.mark.parametrize("nothing", NOTHING)
@pytest.mark.parametrize("hiding", HIDING)
def test_truth_values_do_not_hide_what_may_be_none(hiding: str, nothing: str) -> None:
    """What is no number is neither equal to itself nor greater than another, and the greatest of all."""
    hide, add = HIDING[hiding], NOTHING[nothing]
    x = jax.ShapeDtypeStruct((3, 3), jnp.float32)
    one, other = lambda x, y: hide((y @ y) @ x), lambda x, y: hide(y @ (y @ x) + add(x))
    texts = [str(jax.jit(f).trace(x, x).lower(lowering_platforms=("cpu",)).as_text()) for f in (one, other)]
    found = verify(*texts, refute=False).verdict
    assert found is (Verdict.PROVED if nothing == "a number" else Verdict.UNKNOWN)
