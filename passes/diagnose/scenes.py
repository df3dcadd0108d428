"""What is around the faults of a report, for pictures. It is read off the modules and what findings are about: nothing
is proved here, no term is made, and no verdict depends on it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hlo_verify.jaxlib_api import sdy
from hlo_verify.passes.diagnose.examine import Examination
from hlo_verify.passes.diagnose.finding import Lead
from hlo_verify.passes.diagnose.neighbourhood import Ops, around, matched
from hlo_verify.program.ir import Module, Name, Op
from hlo_verify.program.mesh import Mesh, read_mesh
from hlo_verify.program.op_families import COLLECTIVES
from hlo_verify.program.sharding import Sharding
from hlo_verify.report import Finding, Report, Verdict
from hlo_verify.scene import Excerpt, Held, Meeting, Scene

MOST = 20
"""Findings that have a scene. A page shows few more, and each takes a walk over what is near."""

LINES = 3
"""Source lines before and behind the line at fault."""

LONGEST_LINE = 300
LARGEST_FILE = 2_000_000
"""Characters, and bytes: what is longer was written by no person."""

DEVICES = 1024
"""On more devices it is not told what each holds: nobody draws them, and a report would be full of it."""

ARGUMENTS = 3
"""Arguments near a fault whose placement is told."""

_LINE = re.compile(r"(.+\.py):(\d+)$")


def shown(examination: Examination, logical: Module, partitioned: Module) -> Examination:
    """The examination with what is around the first of its findings."""
    if examination.report.verdict is Verdict.PROVED:
        return examination
    return replace(examination, report=with_scenes(examination.report, examination.leads, logical, partitioned))


def with_scenes(report: Report, leads: Mapping[Finding, Lead], logical: Module, partitioned: Module) -> Report:
    """The report with what is around the first of its findings."""
    wanted: dict[Finding, int] = {}
    for result in report.results:
        if result.finding is not None and result.verdict != Verdict.PROVED:
            wanted.setdefault(result.finding, result.index)
    if not wanted:
        return report
    pair = _Pair(logical, partitioned, report, (Ops(logical.main), Ops(partitioned.main)))
    scenes = {
        finding: pair.scene(finding, leads.get(finding), result) for finding, result in list(wanted.items())[:MOST]
    }
    results = (
        result
        if result.finding not in scenes or result.finding is None
        else replace(result, finding=replace(result.finding, scene=scenes[result.finding]))
        for result in report.results
    )
    return replace(report, results=tuple(results))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two modules with their operations, and the report of them."""

    logical: Module
    partitioned: Module
    report: Report
    ops: tuple[Ops, Ops]

    def scene(self, finding: Finding, lead: Lead | None, result: int) -> Scene:
        """The scene of a finding about a result; without a lead, the lines around its source line."""
        found = Scene(excerpt(finding.location))
        if lead is None or lead.name not in self.ops[1].made:
            return found
        op = self.ops[1].made[lead.name]
        whole = _counterpart(self.ops[0], lead, op)
        if whole is None and result < len(self.logical.main.results):
            whole = self.logical.main.results[result]  # what should have come of it
        stages = {(stage.operation, stage.location): stage.lineage for stage in self.report.stages}
        parts = around(self.ops[1], lead.name, self.partitioned, stages)
        logical = around(self.ops[0], whole, self.logical, {})
        logical = replace(logical, parts=tuple(replace(part, at_fault=False) for part in logical.parts))
        mesh = _mesh(self.partitioned) or _mesh(self.logical)
        matches = matched(logical, parts, (self.logical.main.arguments, self.partitioned.main.arguments))
        is_for_all = mesh is not None and mesh.size == self.report.devices
        return replace(
            found,
            axes=mesh.axes if mesh is not None and is_for_all else (),
            device_ids=mesh.device_ids if mesh is not None and is_for_all else (),
            held=tuple(self._held(lead, {part.name for part in parts.parts})),
            meeting=_meeting(op, self.report.devices),
            logical=logical,
            partitioned=parts,
            matches=matches,
        )

    def _held(self, lead: Lead, near: set[str]) -> list[Held]:
        """Where the value at fault has to lie, and where arguments near it do."""
        if self.report.devices > DEVICES:
            return []
        found = []
        types = self.ops[0].types, self.ops[1].types
        if lead.starts is not None and lead.logical in types[0] and lead.name in types[1]:
            whole, shard = types[0][lead.logical].shape, types[1][lead.name].shape
            starts = tuple(tuple(map(int, row)) for row in lead.starts)
            if len(whole) == len(shard) and all(len(start) == len(whole) for start in starts):
                found.append(Held(f"expected of {self.ops[1].made[lead.name].name}", whole, shard, starts))
        pairs = zip(
            self.partitioned.main.arguments,
            self.logical.argument_names,
            self.logical.main.argument_types,
            self.logical.argument_shardings,
            self.partitioned.argument_shardings,
            strict=False,
        )
        for name, called, type_, one, other in pairs:
            sharding = next((each for each in (self.ops[1].placed.get(name), one, other) if each is not None), None)
            if str(name) in near and sharding is not None and len(found) <= ARGUMENTS:
                found += _of_sharding(called, type_.shape, sharding, self.report.devices)
        return found


def excerpt(location: str) -> Excerpt | None:
    """The lines around `FILE.py:LINE`; None where it names no file of Python that is at hand.

    Only what is a program is read: a module may name any file, and a report is handed on.
    """
    found = _LINE.match(location)
    if found is None:
        return None
    path, at = Path(found[1]), int(found[2])
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_FILE:
            return None
        lines = path.read_text(encoding="utf-8", errors="replace").removesuffix("\n").split("\n")  # not at form feeds
    except (OSError, ValueError):
        return None
    if not 1 <= at <= len(lines):
        return None
    first = max(at - LINES, 1)
    kept = tuple(line[:LONGEST_LINE] for line in lines[first - 1 : at + LINES])
    return Excerpt(found[1], first, at, kept)


def _counterpart(ops: Ops, lead: Lead, op: Op) -> Name | None:
    """The logical value that a lead is about, or one of the same operation and source line, where there is but one."""
    if lead.logical in ops.made:
        return lead.logical
    where = str(op.location)
    alike = [name for name, one in ops.made.items() if one.name == op.name and str(one.location) == where]
    return alike[0] if len(alike) == 1 else None


def _of_sharding(called: str, shape: tuple[int, ...], sharding: Sharding, devices: int) -> list[Held]:
    if sharding.manual is not None or sharding.devices not in (1, devices) or len(sharding.tiles) != len(shape):
        return []
    sharding = sharding.spread(devices)
    shard = tuple(-(-size // tiles) for size, tiles in zip(shape, sharding.tiles, strict=True))
    starts = tuple(
        tuple(int(n) * size for n, size in zip(row, shard, strict=True))
        if sharding.only is None or device == sharding.only
        else None
        for device, row in enumerate(sharding.coordinates)
    )
    addends = () if sharding.addends is None else tuple(map(int, sharding.addends))
    return [Held(called, shape, shard, starts, addends)]


def _meeting(op: Op, devices: int) -> Meeting | None:
    """Whom a collective brings together, as far as it says devices and not replicas of partitions."""
    if op.name not in COLLECTIVES:
        return None
    pairs = op.attributes.get("source_target_pairs")
    if pairs is not None:
        told = tuple((int(source), int(target)) for source, target in pairs)
        return Meeting(op.name, (), told) if all(max(pair) < devices for pair in told) else None
    groups = op.attributes.get("replica_groups")
    rows = [tuple(int(n) for n in row if n >= 0) for row in (() if groups is None else groups)]
    rows = [row for row in rows if row]
    if sum(map(len, rows)) != devices or {n for row in rows for n in row} != set(range(devices)):
        return None
    return Meeting(op.name, tuple(rows))


def _mesh(module: Module) -> Mesh | None:
    """The only mesh that a module of Shardy names."""
    if module.mlir is None:
        return None
    found = [
        read_mesh(sdy.MeshAttr(each.attributes["mesh"]))
        for each in module.mlir.body.operations
        if each.operation.name == "sdy.mesh"
    ]
    found = [mesh for mesh in found if mesh.axes]
    return found[0] if len(set(found)) == 1 else None
