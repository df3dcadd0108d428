"""HV8xx: what is wrong between the programs of several ranks, and between sends and receives."""

from __future__ import annotations

from hlo_verify.diagnostics.code import Code


class Ranks(Code):
    """Ranks that run different programs, or sends and receives, that do not meet."""

    COLLECTIVE_MISSING_ON_RANK = (
        "HV801",
        """a rank does not run a collective that the others of its group run

        Ranks have programs of their own, and one of them leaves out a collective: the others wait for it, or take its
        next one for this.

        In practice: a rank whose program was built with another flag or configuration.

        What to do: compare the two programs around the collective that the finding names.
        """,
    )

    COLLECTIVE_ORDER = (
        "HV802",
        """ranks run their collectives in different orders

        A communicator matches the operations of its devices in the order in which they come. Two collectives over the
        same devices come in one order on this rank and in the other on that one: they hang, or exchange wrong values.

        Of one program the same is said of two branches that devices of one group take.

        In practice: programs of ranks that were compiled apart, and scheduled differently; branches that were written
        apart.

        What to do: compile them with one schedule, or order the two by a control dependency.
        """,
    )

    SEND_RECV_DEADLOCK = (
        "HV803",
        """sends and receives wait for each other

        Each waits for one that stands behind another that waits. A send is done when its receive has been posted, and
        the other way round; `--buffered-sends` lets sends be done at once.

        In practice: pipelines in which neighbours send to each other at once, and each waits for its own send.

        What to do: post the receive first, or let sends and receives of odd and even ranks alternate.
        """,
    )

    RECV_WITHOUT_SEND = (
        "HV804",
        """nobody sends what a receive waits for

        No device that the pairs of the receive name as its source sends on this channel.

        In practice: one microbatch more on the receiver than on the sender.

        What to do: count what both sides do on the channel that the finding names.
        """,
    )

    SEND_WITHOUT_RECV = (
        "HV805",
        """nobody receives what is sent

        No device that the pairs of the send name as its target receives on this channel.

        In practice: one microbatch more on the sender than on the receiver.

        What to do: count what both sides do on the channel that the finding names.
        """,
    )

    SEND_RECV_SHAPE_MISMATCH = (
        "HV806",
        """a send and its receive have different shapes

        What is sent has another element type or other sizes than what is received on the same channel.

        In practice: a cast on one side of a pipeline's border only.

        What to do: convert on both sides, or on neither.
        """,
    )

    RENDEZVOUS_MISMATCH = (
        "HV807",
        """a send and its receive name different rendezvous

        A transfer through the host is matched by its name, and the two ends have different ones.

        In practice: a pass that renames one end of a transfer.

        What to do: give both ends one name.
        """,
    )

    SEND_RECV_PAIRS_MISMATCH = (
        "HV808",
        """a send and its receive name different pairs of devices

        The two ends of one channel say different sources and targets.

        In practice: a pass that edits the pairs of one end of a decomposed permute.

        What to do: give both ends the same pairs.
        """,
    )

    SEND_RECV_ILLEGAL = (
        "HV809",
        """the pairs of a send or a receive cannot be

        A source or a target comes twice, or a send has no receive with the same pairs.

        In practice: pairs that were built by hand.

        What to do: let every device send and receive at most once on a channel.
        """,
    )
