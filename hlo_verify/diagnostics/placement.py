"""HV5xx: what is wrong with where values lie: addends that are not added up, or twice, or over other devices."""

from __future__ import annotations

from hlo_verify.diagnostics.code import Code


class Placement(Code):
    """A value that is one addend of a sum, or another one on each device, where it should be whole or equal."""

    PARTIAL_INTO_REPLICATED_RESULT = (
        "HV501",
        """a result that should be equal on devices is one addend of a sum on each

        Each device sums over its own shard of a dimension, nothing adds up what the devices have, and a result comes of
        it of which the shardings say that those devices hold the same. They do not, for almost all inputs.

        What to do: add up the addends (`psum`) over the axis that the dimension is split over, or say of the result
        that it is split over it.
        """,
    )

    PARTIAL_INTO_NONLINEAR = (
        "HV502",
        """one addend of a sum goes into a function that is not linear

        A sum over devices of `tanh(addend)` is not `tanh` of the sum. It is an error where what comes of it reaches a
        result that should be equal on the devices, and is not. It is a warning where it is added up later on: a model
        may mean that.

        What to do: add up the addends (`psum`) before the function.
        """,
    )

    PARTIAL_TIMES_PARTIAL = (
        "HV503",
        """two addends of sums over the same devices are multiplied

        The sum of the products is not the product of the sums. It is an error where what comes of it reaches a result
        that should be equal on the devices, and is not; else a warning.

        What to do: add up one of the two (`psum`) before they are multiplied.
        """,
    )

    MISSING_REDUCTION = (
        "HV504",
        """a sum that was split over devices is never added up

        Outside of code that each device runs for itself (`shard_map`) it is the compiler that splits sums, and it has
        to add up their addends again. Here they are not added up, and a result that should be equal on devices is not.

        What to do: the all-reduce got lost on the way from the program to this module: look at the passes between, and
        at edits by hand.
        """,
    )

    WRONG_AXIS_REDUCTION = (
        "HV505",
        """addends are added up over other devices than those that have them

        A sum is split over some devices, and the all-reduce behind it has other groups: it adds up parts of different
        values, and the addends stay apart.

        What to do: reduce over the axis that the summed dimension is split over.
        """,
    )

    DOUBLE_REDUCTION = (
        "HV506",
        """a sum is added up again

        All devices of a group hold the same sum already, and another all-reduce adds up those equal values: it comes
        out as many times too large as the group has devices. It is a warning where a factor may make up for it, as in
        a mean, or does not matter, as in a comparison; and where the compiler made the all-reduce: of the sum of a
        broadcast that is spread over devices, nothing else may be left in the module.

        What to do: leave one of the two out. With `jax.grad` inside of `shard_map`, the gradients of replicated
        arguments are summed already.
        """,
    )

    UNEQUAL_REPLICATED_RESULT = (
        "HV507",
        """a result that should be equal on devices is computed of other shards on each

        The shardings say that some devices hold the same of a result. Each of them computes it, in one way, of its own
        shard of a parameter, and nothing was exchanged that would make it equal.

        What to do: gather or reduce it, or say of the result that it is split.
        """,
    )

    LOCAL_STATISTIC = (
        "HV508",
        """a maximum or mean of a device's own part is used as if it were of all

        A maximum, sum or mean is taken over a dimension that is split, and meets the elements of that dimension again,
        as in a softmax or a normalisation, without being brought together with those of the other devices. It is a
        warning: a model may mean it, as with batch statistics of each device.

        Example: `jax.nn.softmax(scores)` in a `shard_map` that splits the last dimension.

        What to do: bring the statistics together (`pmax`, `psum`, `pmean`) before they are used.
        """,
    )

    UNREDUCED_GRADIENT = (
        "HV509",
        """an addend of a gradient is added to a weight that devices hold the same of

        The gradient of a replicated argument is a sum over the devices that use it. Here each device adds its own
        addend to the weight (or to a moment of it), so that the copies drift apart. It is a warning: devices may train
        by themselves for some steps, and average the weights later. Where the shardings say that the result is the
        same on the devices, it is an error of another code (HV501).

        What to do: add up the gradient (`psum`, `pmean`) over the axis that the data are split over.
        """,
    )

    BACKWARD_NOT_DUAL = (
        "HV510",
        """the backward pass does not exchange what the forward pass asks for

        Behind an all-gather of the forward pass, the backward pass has a reduce-scatter; behind a sum over devices,
        none, since the cotangent is the same on all of them: another sum makes gradients as many times too large. Which
        is which is known from `transpose(jvp(…))` in the names that JAX gives operations.

        Example: `lax.psum` in a `shard_map` with `check_vma=False`: its backward is a psum again.

        What to do: leave `check_vma` on, or write the pair by hand (`custom_vjp`): psum forward and nothing
        backward, nothing forward and psum backward.
        """,
    )
