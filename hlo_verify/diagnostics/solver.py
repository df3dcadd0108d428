"""HV3xx: what is not proved though everything is understood."""

from __future__ import annotations

from hlo_verify.diagnostics.code import Code


class Solver(Code):
    """The terms of both sides are known, and equality was not shown. The result is UNKNOWN, never taken for right."""

    NO_PROOF = (
        "HV301",
        """the two terms are not shown to be equal

        What the devices compute and the logical module's shard are different terms, and neither the algebra nor a
        distinction of cases makes them one. Either the modules differ, and then the finding says where and how it looks
        (its code is a suspicion); or they are equal for a reason that hlo-verify has no law for.

        In practice: mostly a real difference. Of equal modules: overlapping windows, sorts along a split dimension, a
        binary search (`jnp.searchsorted`) in a table that is split, which is a loop that goes where its data say, and
        what else docs/limits.md lists.

        What to do: read the finding. A search is a count where both functions say `method="compare_all"`, and a count
        may be split. Where you find the module right, report the pair: a law is missing.
        """,
    )

    CASE_BUDGET = (
        "HV302",
        """the budget of case distinctions is used up

        Guards (masks, padding, offsets that depend on the device) split the comparison into cases; it was given up when
        it had asked as many questions as one comparison, or all of a module, may ask. Nothing is known of the rest.

        In practice: shards that do not divide a dimension, halos and masks on several dimensions at once.

        What to do: verify the program at a size that the mesh divides, or the part of it that the finding names.
        """,
    )

    GIVEN_UP = (
        "HV303",
        """not compared case by case, because other results failed

        Several results in a row were not equal, so the module is taken to be wrong in one place that many results
        depend on: those after them are compared by construction alone.

        What to do: mend what the first finding says, and verify again.
        """,
    )

    TIME_LIMIT = (
        "HV304",
        """the solver's steps are used up

        A question about guards or offsets was not answered within so many of Z3's steps, which are the same on every
        machine (`solver_steps`). That is no answer: what it was about counts as not shown.

        In practice: masks and windows on several dimensions at once, of sizes that do not divide each other.

        What to do: verify a smaller part of the program, or the program at a size that the mesh divides.
        """,
    )

    MEMORY_LIMIT = (
        "HV305",
        """the solver's memory is used up

        A question about guards or offsets needed more memory than one may have. That is no answer: what it was about
        counts as not shown, and nothing else is lost.

        What to do: verify a smaller part of the program, or the program at a size that the mesh divides.
        """,
    )

    TIME_UP = (
        "HV306",
        """the time limit was reached

        The verification took longer than it may (`--time-limit`, 300 seconds for a pair unless it says otherwise), and
        the report says what was known by then and what was being done. It is the one limit that depends on the machine.

        What to do: give it more time (`--time-limit 3000`, or 0 for no limit), or less to do (`--effort low`).
        """,
    )

    NO_LONGER_DIFFERS = (
        "HV307",
        """no longer differs for the saved inputs

        A saved witness was run on other modules, and for its inputs they compute the same: whatever it showed of the
        modules that it was found for is mended in these. That is no proof: other inputs were not looked at.

        What to do: `hlo-verify LOGICAL PARTITIONED` verifies the mended pair.
        """,
    )

    AMPLIFIED = (
        "HV310",
        """the rounding of a constant grows, and no longer accounts for the difference

        The modules are equal if a constant stands for the expression that a pass computed it from. It is that
        expression but for a rounding, which is allowed as long as it stays one. Here a sum of which little is left, or
        a decision that depends on constants alone, makes of that rounding something that counts:
        `x * 0.33333334 * 3 - x` is 0 with 1/3, and nothing but the rounding as it stands.

        In practice: a difference that a program takes of numbers that are equal but for rounding, scaled up afterwards.

        What to do: look at the operation that the reason names; compute the difference without the cancellation.
        """,
    )

    FLOATS_DECIDE = (
        "HV311",
        """floats may decide it otherwise than real numbers

        A comparison or a rounding of numbers that hang on no argument (places, constants, what is computed of these)
        comes out one way for all arguments, and it lies within the roundings of floats which way: `0.1 * i >= 0.3` at
        place 3, `floor(i / 41 * 41)`, which XLA has as 40 at place 41. What holds of real numbers may not hold there,
        so that it is equal to nothing but the same comparison of numbers that were computed alike.

        In practice: masks and indices that are computed in floating point (`linspace`, `arange(0, 1, 0.1)`, a position
        divided by a size), in another way in the one module than in the other.

        What to do: compute places in integers (`10 * i >= 3 * n`, `i // n`), or in both modules alike.
        """,
    )

    NO_NUMBER = (
        "HV312",
        """the logical module gives no number there, whatever the inputs are

        Wherever the logical module gives numbers, the result is the same; but some element of it was NaN or an infinity
        for every input that was tried, because a function is asked for what is outside of its domain (0/0), and a
        device gives a number there. A proof takes such things for a matter of inputs, which it is not here.

        In practice: the mean of a row that a mask leaves empty, a softmax over nothing, a logarithm of a sum without
        addends: one program guards against it, and the other does not.

        What to do: guard against it in both, or in neither, or give results that leave such elements out.
        """,
    )
