"""HV2xx: operations whose meaning is not known exactly."""

from __future__ import annotations

from hlo_verify.diagnostics.code import Code


class Unsupported(Code):
    """An operation is not understood exactly, so its results are opaque: they equal nothing else, and what depends on
    them is UNKNOWN. What does not depend on them is still proved."""

    OPERATION = (
        "HV201",
        """an operation has no rule

        hlo-verify knows no meaning for this operation.

        In practice: operations of a dialect that a newer jaxlib writes, or that only an intermediate stage of a
        compiler has.

        What to do: verify the module from an earlier stage, where the operation is still made of ordinary ones.
        """,
    )

    USE = (
        "HV202",
        """an operation is used in a way that has no rule

        The operation is known, but not with these attributes, shapes or operands.

        Example: a custom call with batch dimensions that its operands do not share; a scan without inputs.

        What to do: the report says which attribute or operand it is. Where the module breaks StableHLO's own
        constraints, it is the module that wants mending.
        """,
    )

    CUSTOM_CALL = (
        "HV203",
        """a custom call has no registered meaning

        Nothing is assumed of a custom call to a kernel that hlo-verify does not know (cuDNN, a library's).

        What to do: say in pyproject.toml what it computes, by a JAX function or by name alone:

            [tool.hlo-verify.custom-calls]
            "my.rms_norm" = "my_package.reference:rms_norm"
            "my.attention" = { trailing = 2 }    # equal operands give equal results; maps over all but 2 dimensions

        The report then names it among its assumptions (docs/usage.md, "Custom calls").
        """,
    )

    OUTSIDE_WORLD = (
        "HV204",
        """an operation exchanges something with the world outside

        Its results are no function of its operands, or it does something that no result shows: `rng`, `infeed`,
        `outfeed`, `send`, `recv`, and custom calls with a side effect (callbacks, debugging prints).

        What a program does beside giving results is part of what is compared. It is seen to be the same where both
        modules do it by the same operations, on the same values, in the same order and under the same conditions, on
        one device; otherwise no result is PROVED, though it may be the same.

        What to do: pass such data in as arguments; use `rng_bit_generator` (JAX's keys) for random numbers; leave
        callbacks out of the program that is verified.
        """,
    )

    REGION = (
        "HV205",
        """a reducer, comparator or other region is not understood

        The region of a reduction, sort, scan, selection or collective has to be recognised: its order, or that it is
        commutative and associative.

        Example: an all_reduce whose region computes `a + 2 * b`; a select_and_scatter that scatters by maximum.

        What to do: write it with the usual reducers (add, mul, max, min, and, or). XLA's own partitioner makes no
        others.
        """,
    )

    GROUPS = (
        "HV206",
        """the groups of a collective have no agreed meaning

        Replica groups that name a device twice or leave one out, that do not fit the number of pieces, or that are of
        different sizes where the result's shape needs one size; pairs of a collective_permute with one target twice; a
        channel that is not understood; a combination of replicas and partitions whose members StableHLO's specification
        and XLA order differently.

        Example: `replica_groups = [[0, 1], [1, 2, 3]]`.

        In practice: groups edited by hand, or written for another number of devices.

        What to do: correct the groups: each device once, and groups of one size.
        """,
    )

    MANUAL = (
        "HV207",
        """a manual region is not understood

        What a `sdy.manual_computation`, or SPMDFullToShardShape and SPMDShardToFullShape, take and give back cannot be
        placed: over another mesh than the module's, in blocks that do not make up the tensor, with addends of an
        unreduced tensor; or a collective inside runs across axes that the region is not manual over.

        In practice: a module from between two steps of a partitioner, meshes of different sizes in one program.

        What to do: verify the module before the region is lowered, or let the region be manual over the axes that it
        communicates along.
        """,
    )

    LOOP = (
        "HV208",
        """a loop is not understood

        The number of its iterations depends on data, and no loop of the logical module goes on under the same
        condition; its counter overflows; or it is a long loop of the partitioned module that no loop of the logical one
        matches by induction.

        Example: `while_loop` until an error is small enough, where each device looks at its own part of the error; a
        ring of 128 turns that the partitioner made out of one matmul.

        What to do: use `fori_loop` or `scan` where the number is known, and the same condition on all devices where it
        is not. For a windowed einsum, compare with the module from before that pass.
        """,
    )

    BRANCH = (
        "HV209",
        """only some devices take a branch or turn of a loop in which devices communicate

        A `case` or `if` whose condition differs from device to device has a collective inside, or a call of which
        nothing is known, or so has a loop that some devices leave earlier: those never arrive, and what the others
        receive is not defined. The program may hang, so that none of its results is proved.

        Example: `lax.cond(lax.axis_index("stage") == 0, lambda: lax.psum(x, "stage"), lambda: x)`.

        What to do: communicate outside of the branch, and select the result.
        """,
    )

    ELEMENT_TYPE = (
        "HV210",
        """no arithmetic for an element type

        The operation has no rule for elements of this type: quantized types, truth values where numbers are meant, the
        bits of a complex number.

        What to do: verify the module from before quantization, or with the types that the operation is meant for.
        """,
    )

    DYNAMIC = (
        "HV211",
        """a shape, offset or size that has to be constant is not

        An operation of StableHLO's dynamic family has an operand that is computed from data, and that decides how the
        result's elements are placed.

        Example: `real_dynamic_slice` with strides that are an argument.

        What to do: lower the program for concrete shapes; jax.export's symbolic shapes are refined before XLA runs.
        """,
    )
