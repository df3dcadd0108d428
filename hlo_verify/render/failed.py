"""What is said, and reported, where there is no verdict because XLA itself is wrong: it ended while it partitioned a
module, or made one of a wrong shape of it. That is no fault of the module's, nor of who gave it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hlo_verify.diagnostics import Annotation, Diagnostic, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.render import origin
from hlo_verify.render.formats import Printing
from hlo_verify.render.issues import modules
from hlo_verify.render.markdown import fitting, reproduction
from hlo_verify.render.origin import Origin
from hlo_verify.render.output import write
from hlo_verify.render.quoting import block, code, prose, table

_ENDED = re.compile(r"XLA was ended by SIG(?:ABRT|SEGV|FPE|ILL|BUS)")
"""Not SIGKILL, by which systems end what takes too much memory."""

_CHECK = re.compile(r"(\w+\.cc:\d+\]?) (.*?)\s*(?:\||$)")


def told(error: InputError, printing: Printing, output: Path | None) -> InputError:
    """The error, with whose fault it is. Where a bug report was asked for, it is written."""
    said = error.diagnostic
    if not _may_be_of_the_compiler(said):
        return error
    made = origin.of_command(printing.arguments, printing.paths, None)
    if not made.partitioned_here or re.search(r"--(shardings|results)\b", made.command):
        return error
    what = said.message.removesuffix("; check that the two modules are a pair")
    message = f"{what}; this is a defect of XLA, not of the module"
    if printing.issue is None:
        return InputError(f"{message}: with --issue xla a report is written", error.code)
    write(fitting(list(_parts(said.code is Input.XLA_REFUSES, what, made))), output, "markdown")
    return InputError(message, error.code)


def _may_be_of_the_compiler(said: Diagnostic) -> bool:
    """Whether a compiler aborted, or the partitioned module has not the shape that was asked for."""
    is_ended = said.code is Input.XLA_REFUSES and _ENDED.search(said.message) is not None
    return is_ended or said.code is Annotation.WRONG_SHARD


def _parts(aborts: bool, said: str, made: Origin) -> Iterator[str]:
    check = _CHECK.search(said)
    what = check[2].rstrip(".") if check else "a module of a wrong shape" if not aborts else "XLA ends the process"
    yield f"**Title:** SPMD partitioner: {prose(what[:120])}"
    yield "### Description"
    if aborts:
        yield "XLA ends the process while it partitions the module below, which is valid:"
    else:
        yield "XLA partitions the module below, which is valid, into a module whose results have a wrong shape:"
    yield block(said)
    yield "### Minimal reproduction"
    yield from modules(made)
    yield from reproduction(Origin(made.command), refuted=False)
    yield "### Versions and platform"
    yield table(("", "version"), [[prose(name), code(value)] for name, value in made.versions])
    yield "No accelerator: XLA partitioned the module for virtual CPU devices, and nothing ran."
