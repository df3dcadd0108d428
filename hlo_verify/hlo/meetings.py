"""Which devices meet in a collective: its groups in numbers of devices, whatever the groups count.

Device `r * partitions + p` is partition p of replica r. Source: xla/service/collective_ops_utils.h
(GetParticipatingDevicesGroups).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hlo_verify.hlo.groups import COLLECTIVES, PERMUTES, Groups, Numbers, groups_of, numbers, pairs_of
from hlo_verify.hlo.module import HloModule, Instruction


@dataclass(frozen=True)
class Meetings:
    """The devices of a module, and whom each meets in which collective."""

    module: HloModule

    @cached_property
    def size(self) -> tuple[int, int]:
        """How many replicas and partitions there are; where the module does not say it, as its groups name them."""
        if self.module.says_devices:
            return self.module.replicas, self.module.partitions
        named, of_partitions = 0, False
        for one in self.module.instructions():
            if one.opcode in COLLECTIVES:
                groups = (pairs_of if one.opcode in PERMUTES else groups_of)(one) or ()
                named = max([named, *(member + 1 for group in groups for member in group)])
                of_partitions |= one.channel is not None
        return (1, max(named, 1)) if of_partitions else (max(named, 1), 1)

    @property
    def devices(self) -> int:
        replicas, partitions = self.size
        return replicas * partitions

    @cached_property
    def _found(self) -> dict[tuple[str, Numbers], Groups | None]:
        return {}  # many collectives are over the same groups

    def groups(self, collective: Instruction) -> Groups | None:
        """The groups of devices that meet: of a permute, each source with its target, itself where it is both. None
        where they cannot be read, or name a device that there is not."""
        attribute = "source_target_pairs" if collective.opcode in PERMUTES else "replica_groups"
        key = attribute + collective.attributes.get(attribute, ""), numbers(collective)
        if key not in self._found:
            self._found[key] = self._groups(collective)
        return self._found[key]

    def _groups(self, collective: Instruction) -> Groups | None:
        given = (pairs_of if collective.opcode in PERMUTES else groups_of)(collective)
        if given is None:
            return None
        replicas, partitions = self.size
        counts = numbers(collective)
        within = {Numbers.PARTITIONS: partitions, Numbers.DEVICES: self.devices}.get(counts, replicas)
        if any(not 0 <= member < within for group in given for member in group):
            return None
        if not given and collective.opcode not in PERMUTES:
            given = (tuple(range(within)),)
        match counts:
            case Numbers.DEVICES:
                return given
            case Numbers.PARTITIONS:
                return tuple(tuple(r * partitions + p for p in group) for r in range(replicas) for group in given)
            case Numbers.REPLICAS_OF_ALL_PARTITIONS:
                return tuple(tuple(r * partitions + p for r in group for p in range(partitions)) for group in given)
            case _:
                return tuple(tuple(r * partitions + p for r in group) for p in range(partitions) for group in given)
