"""HV8xx: what is wrong between the programs of several ranks, between sends and receives, and in pipelines."""

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

    SCHEDULE_INCOMPLETE = (
        "HV811",
        """a pipeline's schedule leaves something out

        Every microbatch goes forward once on every stage, and backward once: in one piece, or once for the inputs and
        once for the weights. One of them is missing, and with it a part of the gradient.

        In practice: a warm-up or cool-down that is one action too short.

        What to do: compare the numbers of actions of the ranks; `hlo_verify.schedules` has the published ones.
        """,
    )

    SCHEDULE_REPEATED = (
        "HV812",
        """a pipeline's schedule does something twice

        A microbatch goes forward or backward twice on one stage, so that its gradient is counted twice.

        In practice: a phase of the schedule that begins where the one before has not ended.

        What to do: look at the borders of the phases.
        """,
    )

    SCHEDULE_ORDER = (
        "HV813",
        """an action stands before what it needs

        A forward needs that of the stage before, a backward the forward and the backward of the stage behind, a
        backward for weights the one for inputs, a send what it sends. What comes from another rank is received first.

        What to do: move the action behind what the finding names.
        """,
    )

    SCHEDULE_DEADLOCK = (
        "HV814",
        """the ranks of a pipeline wait for each other

        Each rank of a ring waits in a step for one that another rank comes to only behind its own. A send waits for its
        receive unless sends are buffered (`--buffered-sends`).

        In practice: neighbours that both send first; transfers of the way forth and back that were not posted at once.

        What to do: post sends and receives between two computations at once (`1SEND_F0+1RECV_B0`), or let one of the
        ranks receive first.
        """,
    )

    SCHEDULE_TRANSFER = (
        "HV815",
        """a send and a receive of a pipeline do not meet

        Between two ranks the first send meets the first receive, and so on. A send meets the receive of another
        microbatch or direction, or one of the two has no other end.

        In practice: ranks that go through chunks or microbatches in different orders.

        What to do: compare the order of the transfers on the two ranks.
        """,
    )

    SCHEDULE_APART = (
        "HV816",
        """a backward is on another rank than its forward

        A backward works on what its forward has kept, and that is on another rank.

        In practice: chunks that are counted from the other end in one of the two.

        What to do: run both on the rank that holds the stage.
        """,
    )

    WEIGHTS_VERSION = (
        "HV817",
        """a backward works with other weights than its forward

        The weights of the stage are updated between the two, so that the gradient is that of no function.

        In practice: a pipeline without flushes that does not stash weights (PipeDream keeps a version for each
        microbatch in flight).

        What to do: update when all microbatches of a step have gone back, or keep the weights of the forward.
        """,
    )
