"""Batch normalization as other operations, as StableHLO's specification defines it.

Every function takes epsilon, the dimension of the features, and the operands, which are JAX arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def _others(x: Any, feature: int) -> tuple[int, ...]:
    return tuple(k for k in range(x.ndim) if k != feature)


def _spread(x: Any, like: Any, feature: int) -> Any:
    """A value for each feature, for all elements."""
    return x.reshape([-1 if k == feature else 1 for k in range(like.ndim)])


def inference(epsilon: float, feature: int, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    """`batch_norm_inference`."""
    import jax.numpy as jnp

    scale, offset, mean, variance = (_spread(each, x, feature) for each in (scale, offset, mean, variance))
    return (x - mean) / jnp.sqrt(variance + epsilon) * scale + offset


def training(epsilon: float, feature: int, x: Any, scale: Any, offset: Any) -> Any:
    """`batch_norm_training`: the result, the means and the variances."""
    import jax.numpy as jnp

    mean = jnp.mean(x, _others(x, feature))
    centered = x - _spread(mean, x, feature)
    variance = jnp.mean(centered * centered, _others(x, feature))
    return inference(epsilon, feature, x, scale, offset, mean, variance), mean, variance


def gradient(epsilon: float, feature: int, x: Any, scale: Any, mean: Any, variance: Any, gradient: Any) -> Any:
    """`batch_norm_grad`: with respect to the operand, the scale and the offset."""
    import jax.numpy as jnp

    count = x.size // x.shape[feature]
    wide, centered = _spread(variance, x, feature) + epsilon, x - _spread(mean, x, feature)
    summed = jnp.sum(gradient, _others(x, feature))
    along = jnp.sum(gradient * centered, _others(x, feature))
    rest = gradient * count - _spread(summed, x, feature) - _spread(along, x, feature) * centered / wide
    of_scale = jnp.sum(gradient * (centered / jnp.sqrt(wide)), _others(x, feature))
    return _spread(scale, x, feature) / jnp.sqrt(wide) / count * rest, of_scale, summed


MEANINGS: Mapping[str, Callable[..., Any]] = {
    "batch_norm_inference": inference,
    "batch_norm_training": training,
    "batch_norm_grad": gradient,
}
