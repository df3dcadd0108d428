"""The proof of a module that consists of equal layers, each derived once; or where such a module goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_verify.index.interned import made
from hlo_verify.passes.prove.interpret import run
from hlo_verify.passes.prove.layer_sharing import Sharing
from hlo_verify.passes.prove.layers import Keys, boundaries
from hlo_verify.passes.prove.lineage import obligations
from hlo_verify.passes.prove.lost_layer import LostLayer, lost_layer
from hlo_verify.passes.prove.reports import assumptions, laws, may_hang
from hlo_verify.passes.prove.start import begin
from hlo_verify.program.ir import Module, Op, operations
from hlo_verify.program.pair import is_global
from hlo_verify.program.sharding import Sharding
from hlo_verify.report import Report, Result, Verdict
from hlo_verify.session import Session


@dataclass(frozen=True, slots=True, eq=False)
class Layered:
    """What is known of a pair after its layers were derived once each."""

    report: Report
    """Results that are not seen to be equal so are UNKNOWN."""
    lost: LostLayer | None
    """The first layer of the partitioned module that does not compute a shard of what it should; None where all do, or
    where it is not known which one that is."""
    terms: int
    """How many terms it took."""


def in_layers(
    logical: Module, partitioned: Module, devices: int, placed: Sequence[Sharding], session: Session
) -> Layered | None:
    """Derive each of a module's equal layers once; None where there are none. Where that does not prove it all, the
    terms are dropped."""
    if (
        is_global(partitioned)
        or not all(sharding.is_plain for sharding in placed)
        or any(map(_is_manual, operations(logical.main)))
    ):
        return None
    keys = Keys()
    between = boundaries(logical.main, keys)
    if not between:
        return None
    both = begin(logical, partitioned, run, session)
    once = Sharing(between, keys, partitioned.main)
    wanted = once.run(logical.main, both.wholes, both.plain)
    found = once.run(partitioned.main, both.shards, both.local)
    results: list[Result] = []
    known: dict[object, Verdict] = {}
    for n, name in enumerate(logical.result_names):
        pair = once.together(wanted[n], found[n])
        key = (pair, placed[n])
        verdict = None if pair is None else known.get(key)
        if verdict is None:
            values = once.resolve(wanted[n]), once.resolve(found[n])
            open_ = (term is not expected for term, expected, _ in obligations(name, *values, placed[n], both.device))
            verdict = known[key] = Verdict.UNKNOWN if any(open_) else Verdict.PROVED
        results.append(Result(n, name, verdict))
    hangs = may_hang(both.unsupported) is not None
    if hangs:
        results = [Result(n, name, Verdict.UNKNOWN) for n, name in enumerate(logical.result_names)]
    report = Report(
        logical.name,
        tuple(results),
        assumptions(both.unsupported),
        devices,
        0.0,
        stages=tuple(once.stages),
        unsupported=both.unsupported,
        laws=laws(),
    )
    if report.verdict is Verdict.PROVED:
        return Layered(report, None, made())
    lost = None if hangs else lost_layer(logical, partitioned, once, both.device)
    terms = made()
    session.memory.start_anew()
    return Layered(report, lost, terms)


def _is_manual(op: Op) -> bool:
    return op.name == "sdy.manual_computation" or "manual" in str(op.attributes.get("sharding"))
