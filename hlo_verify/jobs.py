"""What a command line asks for: things to verify, each by itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlo_verify.sources.dump_chains import Chain


@dataclass(frozen=True, slots=True)
class Job:
    """One thing to verify. `partitioned` is None where XLA is to partition, and several paths where every rank has a
    graph of its own; `problem` is why it cannot be verified."""

    name: str
    logical: Path | None = None
    partitioned: Path | tuple[Path, ...] | None = None
    problem: str = ""
    annotated: Path | None = None
    """What the partitioner was given, where `logical` is earlier."""
    chain: Chain | None = None
    """What is verified pass by pass, instead of all these."""

    @property
    def files(self) -> tuple[Path, ...]:
        """What is read, if it can be verified."""
        if self.chain is not None:
            return tuple(dump.path for dump in self.chain.dumps)
        partitioned = self.partitioned if isinstance(self.partitioned, tuple) else (self.partitioned,)
        return tuple(path for path in (self.logical, *partitioned, self.annotated) if path is not None)


def find_jobs(paths: Sequence[Path]) -> list[Job]:
    """What the paths of a command line ask for. Raises `InputError` for a folder that holds nothing to verify."""
    if len(paths) == 2 and any(map(os.path.isdir, paths)):
        from hlo_verify.sources.neuron_folders import pair_up

        pairs, incomplete = pair_up(*paths)
        jobs = [Job(pair.module, pair.logical, pair.partitioned) for pair in pairs]
        return jobs + [Job(module, problem=problem) for module, problem in incomplete]
    if len(paths) > 1:
        return [Job(str(paths[0]), paths[0], paths[1] if len(paths) == 2 else tuple(paths[1:]))]
    if not os.path.isdir(paths[0]):
        return [Job(str(paths[0]), paths[0])]
    from hlo_verify.sources.dump_pairs import find_pairs

    pairs, incomplete = find_pairs(paths[0])
    jobs = [Job(pair.module, pair.logical, pair.partitioned, annotated=pair.annotated) for pair in pairs]
    return jobs + [Job(module, problem=problem) for module, problem in incomplete]


def find_chain_jobs(folder: Path) -> list[Job]:
    """What a folder of dumps holds to verify pass by pass. Raises `InputError` where it holds nothing."""
    from hlo_verify.sources.dump_chains import find_chains

    return [Job(chain.module, chain=chain) for chain in find_chains(folder)]
