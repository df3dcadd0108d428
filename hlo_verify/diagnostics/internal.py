"""HV9xx: defects of hlo-verify."""

from __future__ import annotations

from hlo_verify.diagnostics.code import Code


class Internal(Code):
    """hlo-verify itself went wrong. Nothing was decided, and nothing is wrong with your module."""

    DEFECT = (
        "HV901",
        """hlo-verify went wrong

        An exception that nothing foresaw. The message names the function of hlo-verify and the operation it worked on;
        the exit status is 70. Of several modules the others are verified nevertheless.

        What to do: report it, with the module and with what `--traceback` prints.
        """,
    )

    DISAGREEMENT = (
        "HV902",
        """two parts of hlo-verify disagree

        What one engine found, another one contradicts: a proof that its re-check does not accept, or a witness whose
        replay does not differ. One of the two is wrong, so the verdict is UNKNOWN.

        What to do: report it, with both modules. Until it is mended, rely on no verdict about the operation that the
        message names.
        """,
    )
