"""Inverse Fourier transforms of products of two transforms are convolutions round a circle, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from tests.support.lowering import Placed

fft, ifft, rfft, irfft = jnp.fft.fft, jnp.fft.ifft, jnp.fft.rfft, jnp.fft.irfft
Function = Callable[[Any, Any], Any]


def around(x: Any, y: Any) -> Any:
    """The convolution of rows, element by element."""
    n = x.shape[1]
    back = (np.arange(n)[:, None] - np.arange(n)) % n
    return jnp.einsum("bs,bts->bt", x, y[:, back])


def causal(x: Any, y: Any) -> Any:
    n = x.shape[1]
    back = np.arange(n)[:, None] - np.arange(n)
    return jnp.einsum("bs,bts->bt", x, jnp.where(back >= 0, y[:, np.maximum(back, 0)], 0))


def padded(x: Any, y: Any) -> Any:
    n = x.shape[1]
    return irfft(rfft(x, 2 * n) * rfft(y, 2 * n), 2 * n)[:, :n]


def half(z: Any) -> Any:
    return fft(z)[:, : z.shape[1] // 2 + 1]


CASES: dict[str, tuple[Function, Function, str, int, bool]] = {
    "of complex numbers": (lambda x, y: ifft(fft(x) * fft(y)), around, "complex64", 4, True),
    "of real numbers": (lambda x, y: irfft(rfft(x) * rfft(y), x.shape[1]), around, "float32", 6, True),
    "of an odd number": (lambda x, y: irfft(rfft(x) * rfft(y), x.shape[1]), around, "float32", 5, True),
    "of one by itself": (lambda x, y: irfft(rfft(x) ** 2, x.shape[1]), lambda x, y: around(x, x), "float32", 4, True),
    "of multiples": (
        lambda x, y: irfft(3 * rfft(x) * rfft(y + x), 4),
        lambda x, y: 3 * around(y + x, x),
        "float32",
        4,
        True,
    ),
    "up to a place": (padded, causal, "float32", 4, True),
    "round, beside up to a place": (lambda x, y: irfft(rfft(x) * rfft(y)), causal, "float32", 4, False),
    "of complex numbers by halves": (
        lambda x, y: irfft(half(x) * half(y), 4).astype("complex64"),
        around,
        "complex64",
        4,
        False,
    ),
    "not inverse": (lambda x, y: fft(fft(x) * fft(y)), around, "complex64", 4, False),
    "of an inverse": (lambda x, y: ifft(fft(x) * ifft(y)), around, "complex64", 4, False),
    "with a conjugate": (lambda x, y: ifft(fft(x) * jnp.conj(fft(y))), around, "complex64", 4, False),
    "of three": (lambda x, y: irfft(rfft(x) * rfft(y) * rfft(y)), around, "float32", 4, False),
    "of another size": (lambda x, y: irfft(rfft(x) * rfft(y), 5)[:, :4], around, "float32", 4, False),
    "turned": (lambda x, y: irfft(rfft(x) * rfft(y)), lambda x, y: around(x, y)[:, ::-1], "float32", 4, False),
    "along the other dimension": (
        lambda x, y: ifft(fft(x, axis=2) * fft(y, axis=2), axis=1)[:, :, 0],
        lambda x, y: around(x[:, :, 0], y[:, :, 0]),
        "complex64",
        4,
        False,
    ),
}


@pytest.mark.usefixtures("prover_alone")
@pytest.mark.parametrize("name", CASES)
def test_products_of_transforms(name: str) -> None:
    reference, other, dtype, n, same = CASES[name]
    shape = (4, n, n) if "dimension" in name else (4, n)
    random = np.random.default_rng(0)
    x, y = (random.normal(size=shape) + (1j * random.normal(size=shape) if "complex" in dtype else 0) for _ in range(2))
    x, y = x.astype(dtype), y.astype(dtype)
    assert np.allclose(reference(x, y), other(x, y), atol=1e-3) == same
    given = [jax.ShapeDtypeStruct(shape, dtype)] * 2
    for first, second in ((reference, other), (other, reference)):
        placed = Placed(AbstractMesh((4,), ("x",)), (P("x"), P("x")), P("x"), given)
        report = hlo_verify.verify(*placed.pair(first, second), refute=False)
        assert (report.verdict is Verdict.PROVED) == same
