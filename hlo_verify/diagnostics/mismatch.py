"""HV0xx: the two modules differ, or seem to."""

from __future__ import annotations

from hlo_verify.diagnostics.code import Code


class Mismatch(Code):
    """How the partitioned module differs from the logical one. Of a REFUTED result this was replayed; of an UNKNOWN one
    it is what the nearest logical value suggests, and the code is a suspicion."""

    DIFFERS = (
        "HV001",
        """a result differs

        The devices together do not return their shards of the logical result, and how they differ is none of the kinds
        that have a code of their own: another function is applied, a mask or a condition is another one, a summand is
        missing or too many, a loop runs too often.

        Example: `compare LT` where the logical module has `LE`, so the causal mask leaves out the diagonal.

        In practice: a hand-written kernel or `shard_map` body that was changed on one side only, an edited module, a
        pass that rewrites more than it may.

        What to do: look at the operation and the source line that the report names. Its operands are shards of logical
        values and its own value is none; "term" is what it computes and "expected" what the logical module has there.
        """,
    )

    NEVER_REDUCED = (
        "HV002",
        """a partial value is never reduced

        Each device holds one addend of a value (or a maximum over its own part), and no collective joins them: an
        all_reduce or reduce_scatter is missing.

        Example: rows of `w` are split over the axis `model`, so each device has a part of the contraction alone.

            y = x @ w                           # wrong: sum k<512 on each device
            y = jax.lax.psum(x @ w, "model")    # right: sum k<4096

        In practice: a row-parallel matmul without its psum; a gradient of a replicated parameter that is not summed
        over the data axis; a `custom_vjp` whose backward pass lacks the psum that its forward pass makes necessary; a
        softmax, LayerNorm or mean over a split dimension that uses local statistics.

        What to do: reduce over the devices that the report names, before the value is used by anything that is not
        linear.
        """,
    )

    WRONG_DEVICES = (
        "HV003",
        """reduced or communicated over the wrong devices

        A collective is where it belongs, but over another mesh axis, in other replica groups, or along other pairs of
        source and target than the sharding of its operand asks for.

        Example: on a 2 × 4 mesh of `data` and `model`, partial sums over `model` lie on devices 0–3 and 4–7.

            replica_groups = [[0, 4], [1, 5], [2, 6], [3, 7]]    # wrong: over data
            replica_groups = [[0, 1, 2, 3], [4, 5, 6, 7]]        # right: over model

        In practice: the wrong axis name in `psum`; groups computed for another order of devices than the mesh has; half
        of a group forgotten, or each device in a group of its own; permutation pairs of a pipeline or ring that are off
        by one stage or run backwards; ids of partitions taken for ids of replicas.

        What to do: compare the groups with those that the report expects ("the sum over d mod 4 is missing" means
        groups of the devices that differ in that digit alone).
        """,
    )

    REDUCED_TWICE = (
        "HV004",
        """reduced once too often

        A value that is already complete, and the same on the devices of a group, is summed over that group: the result
        is too large by the number of devices.

        Example: `g` is replicated over `data` after the first psum.

            g = jax.lax.psum(g, "data")
            g = jax.lax.psum(g, "data")    # wrong: every element times the size of data

        In practice: a gradient that both the optimizer and the backward pass synchronise; a transposed psum that makes
        another psum; a gradient norm that counts replicated parameters once a replica; a residual added on every device
        before the all_reduce of a row-parallel matmul.

        What to do: drop the collective, or take the mean where that is meant.
        """,
    )

    WRONG_PLACE = (
        "HV005",
        """elements come from the wrong place

        The value holds elements of the right logical tensor, but at other indices than this device's shard has: an
        offset, an order, a slice, or shards put together in another order.

        Example: device `d` masks the keys of its shard of 1024 rows.

            start = 1023 * jax.lax.axis_index("model")    # wrong: short by d
            start = 1024 * jax.lax.axis_index("model")

        In practice: the offset of a vocabulary shard in an embedding lookup; rotary tables that start at 0 on every
        sequence shard; an all_to_all with the split and the concatenated dimension exchanged; shards of a
        reduce_scatter in another order than the mesh's; a halo taken from the wrong rows; padding by one amount and
        slicing by another; a value that is not gathered where a whole one is needed.

        What to do: the report gives the index that was found and the one that is expected; `d` is the device.
        """,
    )

    WRONG_FACTOR = (
        "HV006",
        """a constant factor is wrong

        The value is the right one times a number that does not depend on the input.

        Example: a mean over all tokens, split over 8 devices.

            loss = jax.lax.psum(local.mean(), "data")     # wrong: 8 times too large
            loss = jax.lax.pmean(local.mean(), "data")

        In practice: psum for pmean; a mean divided by the local count, or by the global one twice; attention scores
        scaled by another head size; a loss scaled for one parallel axis and averaged over another; gradient
        accumulation that does not divide by the number of steps.

        What to do: the report gives both factors. One that is a product of mesh axis sizes says which axes were counted
        too often or not at all.
        """,
    )

    WRONG_VALUE = (
        "HV007",
        """another value stands in place of the right one

        An operand is a shard of some logical value, but not of the one that the logical module uses there; or a logical
        operation is left out on the way.

        Example: a backward pass that returns the gradients of query and key in the wrong order.

            return dk, dq    # wrong
            return dq, dk

        In practice: swapped operands or results; a stale value (parameters or gradients from before an update, the
        accumulator before the last microbatch); an activation saved for another layer; `g1 + g1` for `g1 + g2`; an
        activation function, bias or normalisation that one side does not have.

        What to do: the report says which logical operation is missing, or what was found and what is expected.
        """,
    )

    JOINED_LATE = (
        "HV008",
        """reduced too late, after an operation that is not linear

        Devices take the mean of what each made of its own part. That is the mean over all only where it was made by
        additions and factors: the mean of quotients is not the quotient of sums, nor that of squares the square of it.

        Example: a loss over the tokens that count, of which each device has another number.

            loss = jax.lax.pmean(total / count, "data")                         # wrong: a mean of means
            loss = jax.lax.psum(total, "data") / jax.lax.psum(count, "data")    # right

        In practice: masked losses averaged over devices; a norm or a perplexity of each part; an auxiliary loss that
        multiplies two means.

        What to do: reduce the sums that it is made of, before anything that is not linear. Where the average of the
        devices' own values is what you want, write the reference so.
        """,
    )

    DEVICES_DISAGREE = (
        "HV009",
        """devices hold different values of what should be the same on them

        By its sharding a result, or a part of it, is the same on several devices, and these have different values of
        it. It takes no other program to say that this is wrong: what one reads of such an array hangs on the device
        that one asks, and what is computed from it, on the device that computes.

        Example: the gradient of a weight that every device holds, of each device's own rows.

            g = jax.grad(loss)(w, x)                       # wrong where out_specs say P()
            g = jax.lax.psum(jax.grad(loss)(w, x), "data")

        In practice: a gradient, loss or metric without its psum in a `shard_map` with `check_vma=False`; a key that is
        folded with the device's number and returned; statistics of each device's own batch; an axis that `out_specs`
        leave out.

        What to do: reduce or gather the value over the axes that the sharding of the result leaves out, or name these
        in `out_specs`. The witness says which two devices differ, and for which inputs.
        """,
    )
