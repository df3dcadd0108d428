"""Fourier transforms of numbers and of enclosures, of each type and along several dimensions, are those of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flint import acb

from hlo_verify.evaluate import Blocks, dense, evaluate, of_dense
from hlo_verify.evaluate.balls import exact
from hlo_verify.passes.load.load import load
from tests.support.compare import Array

NUMPY = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}
SHAPES = [(1,), (2,), (6,), (7,), (3, 4), (4, 5), (2, 3, 4)]


def transform(kind: str, shape: tuple[int, ...], lengths: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """A module with a transform whose result, or for the inverse of a real one whose operand, has half a dimension."""
    half = (*shape[:-1], shape[-1] // 2 + 1)
    given, made = (half if kind == "IRFFT" else shape), (half if kind == "RFFT" else shape)
    types = {"FFT": ("complex<f32>",) * 2, "RFFT": ("f32", "complex<f32>"), "IRFFT": ("complex<f32>", "f32")}
    old, new = types.get(kind, types["FFT"])
    one, other = ("x".join([*map(str, s), t]) for s, t in ((given, old), (made, new)))
    text = f"""module @m {{ func.func public @main(%x: tensor<{one}>) -> tensor<{other}> {{
      %y = stablehlo.fft %x, type = {kind}, length = {list(lengths)} : (tensor<{one}>) -> tensor<{other}>
      return %y : tensor<{other}> }} }}"""
    return text, given


def wanted(kind: str, x: Array, lengths: tuple[int, ...]) -> Array:
    axes = range(x.ndim - len(lengths), x.ndim)
    return np.asarray(NUMPY[kind](x.astype(float if kind == "RFFT" else complex), s=lengths, axes=list(axes)))


@pytest.mark.parametrize("kind", NUMPY)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_transform_is_that_of_numpy(kind: str, shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(len(shape))
    for count in range(1, len(shape) + 1):
        lengths = shape[len(shape) - count :]
        text, given = transform(kind, shape, lengths)
        x: Any = generator.normal(size=given).astype(np.float32)
        if kind != "RFFT":
            x = (x + 1j * generator.normal(size=given)).astype(np.complex64)
        module = load(text)
        (found,) = evaluate(module, [of_dense(x)], 1).results
        assert found is not None
        np.testing.assert_allclose(dense(found, 0), wanted(kind, x, lengths), rtol=1e-4, atol=1e-5)
        (enclosed,) = evaluate(module, [of_dense(exact(x))], 1, real=np.dtype(object)).results
        assert enclosed is not None
        for ball, value in zip(dense(enclosed, 0).reshape(-1), wanted(kind, x, lengths).reshape(-1), strict=True):
            distance = abs(acb(ball) - acb(complex(value)))
            assert distance < 1e-10 and ball.is_finite()
            assert isinstance(ball, acb) is (kind != "IRFFT")


def test_elements_that_are_alike_are_transformed_one_by_one() -> None:
    text, _ = transform("FFT", (3, 4), (4,))
    x = Blocks((np.zeros(1, np.int64), np.array([0, 1, 0]), np.zeros(4, np.int64)), np.array([[[1.0 + 0j], [2.0]]]))
    (found,) = evaluate(load(text), [x], 1).results
    assert found is not None
    np.testing.assert_allclose(dense(found, 0), np.fft.fft(np.array([[1.0] * 4, [2.0] * 4, [1.0] * 4])), atol=1e-6)
