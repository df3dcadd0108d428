"""What the values of a program seem to be, where that is asked: nothing that evaluates modules is imported before."""

from __future__ import annotations

from hlo_verify.passes.prove.cut_points import Guesses
from hlo_verify.passes.prove.each_device.compare import is_by_hand
from hlo_verify.program.ir import Module
from hlo_verify.program.pair import device_count, is_global
from hlo_verify.session import Session


def guessed(logical: Module, partitioned: Module, session: Session) -> Guesses:
    """What values of a program that a person distributed seem to be shards of; of any other, nothing: what a compiler
    partitioned says itself where its values lie."""
    if not is_by_hand(partitioned) or not is_global(partitioned):
        return {}
    from hlo_verify.passes.guess.shards import shards

    return shards(logical, partitioned, device_count(logical, partitioned), session)
