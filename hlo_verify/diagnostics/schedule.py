"""HV7xx: what is wrong with the schedule of one module, its donations and its buffers."""

from __future__ import annotations

from hlo_verify.diagnostics.code import Code


class Schedule(Code):
    """Something is read or written before or after it may be, in the order in which a scheduled module runs."""

    DEPENDENCY_VIOLATION = (
        "HV701",
        """an instruction runs before what it depends on

        It stands before an operand of it, or before one of its control predecessors.

        In practice: a schedule that was edited, or a pass that moves instructions and looks at operands alone.

        What to do: move the instruction behind the one that the finding names.
        """,
    )

    USE_BEFORE_DONE = (
        "HV702",
        """the result of a transfer is read before it is there

        An asynchronous operation was started, and its result is read through the start, before the done.

        In practice: a pass that replaces a done by a part of its start.

        What to do: read the result of the done, or move the reader behind it.
        """,
    )

    ORPHAN_START = (
        "HV703",
        """an asynchronous operation is started and never waited for

        Nothing reads the start: no done, no update. Its buffers are taken for free while it still runs.

        In practice: dead code elimination that took the done and left the start.

        What to do: wait for it, or remove both.
        """,
    )

    MISSING_DONE = (
        "HV704",
        """a transfer's result is read, and nothing waits for it

        The start has no done at all, and its result is read out of the start itself.

        In practice: a pass that removed the done and put a part of the start in its place.

        What to do: put the done back, and read that.
        """,
    )

    DONE_TWICE = (
        "HV705",
        """an asynchronous operation is waited for twice

        Two dones belong to one start. The second waits for what has been collected already.

        In practice: a done that was copied with its readers.

        What to do: let all readers share one done.
        """,
    )

    DONE_OF_ANOTHER_START = (
        "HV706",
        """a done waits for another start than its own

        One start has two dones, another of the same kind has none.

        In practice: a pass that renames operands when it duplicates transfers.

        What to do: give the done the start that has none.
        """,
    )

    DONE_KIND_MISMATCH = (
        "HV707",
        """a done is of another kind than its start

        `copy-done` waits for a `copy-start`, and so on.

        In practice: a pass that rewrites a start and forgets its done.

        What to do: make the two of one kind.
        """,
    )

    ASYNC_ILLEGAL = (
        "HV708",
        """the shapes of an asynchronous operation do not fit

        A start's shape is a tuple of the shapes of its operands, of what its computation gives, and of its context; the
        done gives the second of them.

        In practice: a pass that changes a shape or a layout on one side only.

        What to do: compare the shapes that the finding names.
        """,
    )

    ALIAS_NO_SUCH_PARAMETER = (
        "HV720",
        """a result is to take the buffer of a parameter that there is not

        `input_output_alias` names a parameter, or a part of one, that the entry computation lacks.

        In practice: an alias that was kept while parameters were removed.

        What to do: number the parameters of the aliases anew.
        """,
    )

    ALIAS_SIZE_MISMATCH = (
        "HV721",
        """a result is to take a donated buffer of another size

        The shapes of a result and of the parameter whose buffer it takes have different numbers of bytes.

        In practice: donated arguments that were matched with results in another order.

        What to do: donate the argument that has the result's shape.
        """,
    )

    ALIAS_TWO_OUTPUTS = (
        "HV722",
        """two results are to take one donated buffer

        `input_output_alias` gives a parameter's buffer to two results.

        In practice: one argument that two results update.

        What to do: let one of the results have a buffer of its own.
        """,
    )

    DONATED_INPUT_READ_AFTER_WRITE = (
        "HV723",
        """a donated argument is read after its buffer was overwritten

        The result that takes the buffer of a donated argument is written before the argument's last reader.

        In practice: an update in place that was scheduled before another reader of the old value.

        What to do: move the reader up, or copy the argument.
        """,
    )

    ALIAS_ILLEGAL = (
        "HV724",
        """an output cannot alias the operand that it names

        The shapes of the output and of the operand differ, one of the two is not there, or the operation may not alias.

        In practice: a module that was edited, or a pass that changes a layout on one side.

        What to do: compare the two shapes that the finding names.
        """,
    )

    BUFFERS_OVERLAP = (
        "HV730",
        """two values have the same bytes at the same time

        By the buffer assignment two values that are needed at the same time overlap in an allocation.

        In practice: a fault of the buffer assignment.

        What to do: look at offsets and sizes of both values; report it to XLA with the module and the assignment.
        """,
    )

    VALUE_OUTSIDE_ALLOCATION = (
        "HV731",
        """a value reaches past the end of its allocation

        Its offset and size in the buffer assignment exceed the size of the allocation.

        In practice: a fault of the buffer assignment, or files of two compilations.

        What to do: see that module and assignment belong together; then report it to XLA.
        """,
    )

    VALUE_SMALLER_THAN_SHAPE = (
        "HV732",
        """a value has fewer bytes than its shape needs

        The size in the buffer assignment is less than the elements of the shape take.

        In practice: a fault of the buffer assignment, or files of two compilations.

        What to do: see that module and assignment belong together; then report it to XLA.
        """,
    )

    MEMORY_SPACE_MISMATCH = (
        "HV733",
        """a value is in another memory than its layout says

        The layout (`S(1)`) and the allocation of the buffer assignment name different memory spaces.

        In practice: memory space assignment that changed one of the two.

        What to do: see that module and assignment belong together; then report it to XLA.
        """,
    )

    OVERWRITTEN_WHILE_LIVE = (
        "HV734",
        """a value is overwritten before its last reader

        Another value is written into its bytes while an instruction further down the schedule still reads it.

        In practice: an instruction that was moved after buffers had been assigned, or a fault of the assignment.

        What to do: compare where both values begin and end; report it to XLA with the module and the assignment.
        """,
    )

    RACE_ASYNC_OPERAND = (
        "HV735",
        """the operand of a transfer in flight is overwritten

        Between start and done the transfer reads its operand, and something writes there.

        In practice: a scheduler that takes the operand of a start for dead at the start.

        What to do: move the writer behind the done, or give it other bytes.
        """,
    )

    RACE_ASYNC_RESULT = (
        "HV736",
        """what a transfer in flight is writing is overwritten

        Between start and done the transfer fills its result, and something else writes there.

        In practice: an instruction between start and done that was given the bytes of the result.

        What to do: move it, or give it other bytes.
        """,
    )

    RACE_ASYNC_RESULT_EARLY = (
        "HV737",
        """a transfer begins to fill a buffer that is still read

        The transfer was started before the last reader of the value that has the buffer until then.

        In practice: a start that a scheduler moved up to hide its latency.

        What to do: start it behind the last reader that the finding names.
        """,
    )

    HANDED_ON_ELSEWHERE = (
        "HV738",
        """a value is handed on to where it does not lie

        What a loop carries, and what goes into a branch or a call and comes out of it, is not copied: both sides have
        to have the same bytes. By the buffer assignment they do not.

        In practice: a fault of the buffer assignment, or a copy that was taken for superfluous.

        What to do: look at the two values that the finding names; report it to XLA with the module and the assignment.
        """,
    )

    LIVE_RANGE_MISMATCH = (
        "HV739",
        """XLA's live ranges contradict the module

        They have instructions in another order than the module, or end before somebody reads the value, and no other
        value goes on in its bytes.

        In practice: files of two compilations, or a schedule that was changed after buffers had been assigned. It is a
        warning: bytes that are written too early are found where they are written.

        What to do: see that the files belong together.
        """,
    )
