"""HV55x: casts that lose what is needed later."""

from __future__ import annotations

from hlo_verify.diagnostics.code import Code


class Precision(Code):
    """Numbers of few digits where more are needed: sums, weights, scales. All are warnings: how much is lost hangs on
    the data, and backends may compute in more digits than the text says.
    """

    LOW_PRECISION_SUM = (
        "HV551",
        """so many terms are added up in so few digits that the sum stands still

        A number of bf16 has 8 binary digits: 256 + 1 is 256 there, so that a sum of more than 256 equal terms,
        one after another, stands still (f16: 2048; fp8: 16 or 8). It is said of reductions, of all-reduces over as
        many devices, of contractions whose `algorithm` asks for it, and of what a loop carries from turn to turn. A
        contraction without `algorithm` is taken to add up in f32 inside, and to round once.

        Example: the gradient of a bias, `jnp.sum` over batch and sequence that `jax.grad` makes in the type of the
        activations, bf16.

        What to do: convert to f32 before the sum (`jnp.sum(x, dtype=jnp.float32)`), and back behind it.
        """,
    )

    ROUNDED_ACCUMULATOR = (
        "HV552",
        """a running sum is rounded to few digits between its turns

        The additions are in f32, and what a loop carries from one to the next is cast down and up again: nothing is
        won by the wider additions.

        Example: gradients of microbatches, added up in f32 and kept in bf16, over more than 256 microbatches.

        What to do: carry the sum in f32, and cast it once, behind the loop.
        """,
    )

    LOW_PRECISION_UPDATE = (
        "HV553",
        """weights are updated in few digits

        A step of training returns an argument with something of a gradient added to it, and the sum is rounded to
        few digits on the way: what is less than 1/256 of a weight (bf16) is lost, step after step. Either the weight is
        kept in the low type, or, worse, an f32 weight is read through a copy in the low type.

        Example: `params = params - lr * grads` where `params` was cast to bf16 for the forward pass.

        What to do: update the f32 weights themselves, and cast a copy of them for the forward pass; or round
        stochastically.
        """,
    )

    SCALE_NOT_REMOVED = (
        "HV554",
        """a loss scale is applied, and an update adds gradients that still have it

        The gradients are multiplied with a scale, to keep them within the range of f16 or fp8, and nothing divides by
        it before they are added to weights or moments, or compared with a threshold of their own.

        Example: `updates, state = optimizer.update(grads, state)` before `grads = grads / scale`.

        What to do: divide the gradients by the scale first.
        """,
    )

    SCALE_OF_ANOTHER = (
        "HV555",
        """a tensor is quantized with a scale that was not found from its own values

        What is cast to int8 or fp8 is divided by a scale first, so that its largest value fits. Here the scale is found
        from the largest value of another tensor, or it is an argument that is not called a scale: of an earlier step.
        What is larger than that saturates, what is much smaller is lost.

        Example: queries that are quantized with the scale of the keys.

        What to do: find the scale from the tensor itself; or, where it is meant (delayed scaling), name the argument
        so: what is called `scale`, `amax`, `history` or `quant` is taken for declared.
        """,
    )
