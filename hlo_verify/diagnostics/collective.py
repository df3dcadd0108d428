"""HV6xx: what is wrong with a collective of one module."""

from __future__ import annotations

from hlo_verify.diagnostics.code import Code


class Collective(Code):
    """A collective operation that cannot do what is written: its groups, its pairs, its channel, or who enters it."""

    GROUPS_OVERLAP = (
        "HV601",
        """a device is in two groups of one collective

        The groups of a collective part the devices: each device sends its operand to one group. A device in two groups,
        or twice in one, makes the program hang or join values of the wrong devices.

        What to do: look at the mesh axes that the groups were made from.
        """,
    )

    GROUPS_ID_OUT_OF_RANGE = (
        "HV602",
        """a group names a device that there is not

        The module says how many replicas and partitions it is for, and a group has a number beyond.

        What to do: compare the groups with num_partitions and replica_count in the module's first line.
        """,
    )

    GROUPS_NOT_COVERING = (
        "HV603",
        """a device is in no group

        All devices run the collective, and one of them is in none of its groups: it waits for nobody, or forever.

        What to do: add the groups that are missing. A device that is to keep its value is a group of its own.
        """,
    )

    GROUPS_UNEQUAL = (
        "HV604",
        """groups of different sizes

        All devices have one program and so results of one shape; an all-gather, a reduce-scatter or an all-to-all over
        groups of different sizes would need results of different shapes. (An all-reduce may have them.)

        What to do: make the groups equally large.
        """,
    )

    GROUP_SIZE_SHAPE_MISMATCH = (
        "HV605",
        """the shapes say another group size than the groups

        An all-gather's result is its operand times the size of the group along one dimension, a reduce-scatter's is its
        operand divided by it; an all-to-all splits what each device has into as many parts, or is given as many, and
        its shapes stay, as those of an all-reduce do. The shapes of this one fit another size, or no size at all.

        What to do: the groups were probably made from other mesh axes than the shapes.
        """,
    )

    PERMUTE_DUPLICATE_SOURCE = (
        "HV606",
        """a device sends twice in one permute

        In a collective-permute each device is a source at most once.

        In practice: pairs built by hand from a table with a repeated row.

        What to do: a value for several devices takes one permute for each, or a broadcast.
        """,
    )

    PERMUTE_DUPLICATE_TARGET = (
        "HV607",
        """two devices send to one in a permute

        In a collective-permute each device is a target at most once: what arrives last would win.

        In practice: `(i, i // 2)` and the like, where two sources come to one target.

        What to do: sum or select what arrives; a permute does neither.
        """,
    )

    PERMUTE_ID_OUT_OF_RANGE = (
        "HV608",
        """a permute names a device that there is not

        A source or a target is beyond the devices that the module says it is for.

        In practice: `(i, i + 1)` without the modulo at the end of a ring.

        What to do: take the targets modulo the number of devices, or leave out the pair at the end.
        """,
    )

    CHANNEL_ILLEGAL = (
        "HV609",
        """the modes of a collective contradict each other

        `use_global_device_ids` needs a channel.

        In practice: a module that was edited or built by hand; XLA's own verifier rejects it.

        What to do: give the operation a channel_id, or leave the flag out.
        """,
    )

    GROUPS_ILLEGAL = (
        "HV610",
        """groups that no runtime takes

        Groups of devices by their global numbers have to be written out, and none are; or what is written is no list of
        devices, of places such as `[2,4]<=[8]`, or of axes of a mesh.

        In practice: a module that was edited or built by hand; XLA's own verifier rejects it.

        What to do: write the groups out, all devices in one if that is meant.
        """,
    )

    PERMUTE_ILLEGAL = (
        "HV611",
        """a permute whose operands and results do not fit

        As many inputs as outputs, of the same shapes, and offsets for both or for none; and its pairs are a source and
        a target each.

        In practice: a module that was edited or built by hand; XLA's own verifier rejects it.

        What to do: make the shapes of what is sent and of what arrives the same.
        """,
    )

    COLLECTIVE_NOT_ENTERED_BY_ALL = (
        "HV612",
        """devices of one group take branches with different collectives

        A collective stands in a branch of a conditional, its groups hold devices that take another branch, and that one
        has no such collective: those that come to it wait for the others forever, or take their next collective for
        this one.

        In practice: `lax.cond` on `axis_index`, or on a number that each device computes from its own shard, around a
        `psum` over that axis.

        What to do: reduce the predicate over the axes of the collective first (`lax.pmax(predicate, axis)`), or move
        the collective out of the branch. As a warning: the devices may always agree, and nothing in the module says so;
        `--shardings` says how its arguments lie.
        """,
    )

    DEVICE_DEPENDENT_TRIP_COUNT = (
        "HV613",
        """devices of one group leave a loop at different turns

        A loop has a collective in its turns, and devices of one group take different numbers of turns: those that go on
        wait for those that have left.

        In practice: a solver that stops when the local residual is small, not the residual of all; a trip count that is
        an `axis_index`.

        What to do: reduce what the condition asks over the axes of the loop's collectives. As a warning: the devices
        may always agree, and nothing in the module says so; `--shardings` says how its arguments lie.
        """,
    )
