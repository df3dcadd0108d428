"""What the custom calls of AWS's Neuron compiler compute, as functions of JAX arrays.

That is known from torch-neuronx and transformers-neuronx, whose Python emits the calls; how the compiler rounds is not
said there. A target that is not in the table (a kernel of the user's, a call that draws numbers) has no meaning here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Meaning:
    """`compute(config, *operands)` are the results; `config` is the call's `backend_config`. `said` is it in words.

    Of a call that communicates, `gathered(config)` ranks' first operands are joined along dimension 0 before: rank 0's
    first.
    """

    compute: Callable[..., Any]
    said: str
    gathered: Callable[[str], int] = lambda config: 1

    @property
    def is_mark(self) -> bool:
        """Whether it only marks a place: it may say that it has an effect, so that it stays there."""
        return self.compute is _same


def _same(config: str, *operands: Any) -> Any:
    return operands


def _rms_norm(config: str, x: Any, weight: Any, epsilon: Any) -> Any:
    import jax.numpy as jnp
    from jax import lax

    axis, wide = int(config), x.astype(jnp.promote_types(x.dtype, jnp.float32))
    scale = lax.rsqrt(jnp.mean(wide * wide, axis, keepdims=True) + epsilon)
    return wide * scale * weight.reshape([-1 if k == axis else 1 for k in range(x.ndim)])


def _softmax(config: str, x: Any) -> Any:
    import jax.numpy as jnp

    axis = int(config)
    powers = jnp.exp(x - jnp.max(x, axis, keepdims=True))
    return powers / jnp.sum(powers, axis, keepdims=True)


def _softmax_backward(config: str, gradient: Any, y: Any) -> Any:
    import jax.numpy as jnp

    return y * (gradient - jnp.sum(gradient * y, int(config), keepdims=True))


def _erf(config: str, x: Any) -> Any:
    from jax import lax

    return lax.erf(x)


def _gelu(config: str, x: Any) -> Any:
    from jax import lax

    return 0.5 * x * (1 + lax.erf(x * 0.5**0.5))


def _gelu_tanh(config: str, x: Any) -> Any:
    import jax.numpy as jnp

    return 0.5 * x * (1 + jnp.tanh((2 / jnp.pi) ** 0.5 * (x + 0.044715 * x * x * x)))


def _gelu_backward(config: str, x: Any) -> Any:
    import jax.numpy as jnp
    from jax import lax

    return 0.5 * (1 + lax.erf(x * 0.5**0.5)) + x * jnp.exp(-0.5 * x * x) / (2 * jnp.pi) ** 0.5


def _silu(config: str, x: Any) -> Any:
    from jax import lax

    return x * lax.logistic(x)


def _silu_backward(config: str, x: Any) -> Any:
    from jax import lax

    sigmoid = lax.logistic(x)
    return sigmoid * (1 + x * (1 - sigmoid))


def _argmax(config: str, x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.argmax(x, int(config))


def _argmin(config: str, x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.argmin(x, int(config))


def _top_k(config: str, x: Any) -> Any:
    from jax import lax

    return lax.top_k(x, int(config))


def _settings(config: str) -> dict[str, int]:
    """What `key=number,...` says. Raises ValueError for anything else."""
    return {key: int(value) for key, _, value in (each.partition("=") for each in config.split(","))}


def _ranks(config: str) -> int:
    """How many ranks are in the one group of a collective product; of several it is not said who is in them."""
    settings = _settings(config)
    if settings["num_groups"] != 1:
        raise ValueError("several groups")
    return settings["tp_degree"]


def _collective_matmul(config: str, weights: Any, x: Any) -> Any:
    from jax import lax

    return lax.dot_general(weights, x, (((1,), (_settings(config)["rhs_contracting_dim"],)), ((), ())))


_HERE = Meaning(_same, "its operands")

MEANINGS: Mapping[str, Meaning] = {
    "AwsNeuronTransferWithStaticRing": _HERE,
    "AwsNeuronLNCShardingConstraint": _HERE,
    "AwsNeuronModuleMarkerStart-Forward": _HERE,
    "AwsNeuronModuleMarkerStart-Backward": _HERE,
    "AwsNeuronModuleMarkerEnd-Forward": _HERE,
    "AwsNeuronModuleMarkerEnd-Backward": _HERE,
    "NeuronBoundaryMarker-Start": _HERE,
    "NeuronBoundaryMarker-End": _HERE,
    "AwsNeuronRmsNorm": Meaning(_rms_norm, "x * rsqrt(mean(x^2) + epsilon) * weight"),
    "AwsNeuronSoftmax": Meaning(_softmax, "exp(x - max(x)) / sum(exp(x - max(x)))"),
    "AwsNeuronSoftmaxBackward": Meaning(_softmax_backward, "y * (g - sum(g * y)) of the gradient g and the softmax y"),
    "AwsNeuronErf": Meaning(_erf, "erf(x)"),
    "AwsNeuronGelu": Meaning(_gelu, "x/2 * (1 + erf(x/sqrt(2)))"),
    "AwsNeuronGeluApprxTanh": Meaning(_gelu_tanh, "x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715*x^3)))"),
    "AwsNeuronGeluBackward": Meaning(_gelu_backward, "the derivative of AwsNeuronGelu"),
    "AwsNeuronSilu": Meaning(_silu, "x * logistic(x)"),
    "AwsNeuronSiluBackward": Meaning(_silu_backward, "the derivative of AwsNeuronSilu"),
    "AwsNeuronArgMax": Meaning(_argmax, "the index of the first of the largest elements"),
    "AwsNeuronArgMin": Meaning(_argmin, "the index of the first of the smallest elements"),
    "AwsNeuronCollectiveMatmul": Meaning(
        _collective_matmul,
        "the product of all ranks' first operands, one after another, with the second",
        _ranks,
    ),
    "AwsNeuronTopK": Meaning(_top_k, "the largest elements of the last dimension in order, and their indices"),
}
"""What a call's operands are is said by the functions; axes and counts are in `backend_config`, as decimal numbers."""
