"""Chains of modules in a folder that XLA wrote for `--xla_dump_to` with `--xla_dump_hlo_pass_re=.*`: one program after
each pass that changed it, from what came in to what code is generated for."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.sources.dump_pairs import CONSTANTS_FLAG, PARTITIONERS, PROPAGATIONS, Dump, list_files, parse_names

PASSES_FLAG = "--xla_dump_hlo_pass_re=.*"

CLEANUP = "spmd-cleanup"
"""The pipeline that runs within the partitioner."""

_END = re.compile(r"([\w.]*_)?after_optimizations\.(txt|hlo)(\.gz)?")
"""How the name goes on, after the module's, of what XLA writes once it is done."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The dumps of one module, in order.

    Those before `partitioned` are of the whole program, the others of what a device runs; it is their number where
    nothing was partitioned.
    """

    module: str
    dumps: tuple[Dump, ...]
    partitioned: int


def chain_flags(folder: Path | str) -> str:
    """What to set for XLA to dump chains to `folder`."""
    return f'XLA_FLAGS="--xla_dump_to={folder} {PASSES_FLAG} {CONSTANTS_FLAG}"'


def find_chains(folder: Path) -> list[Chain]:
    """The chains in `folder`, ordered by module. Raises `InputError` where there is none."""
    names = list_files(folder)
    modules: dict[str, list[Dump]] = defaultdict(list)
    for dump in parse_names(folder, names):
        modules[dump.module].append(dump)
    chains = []
    for module, dumps in sorted(modules.items()):
        dumps.sort(key=lambda dump: dump.step)
        longer = [other for other in modules if _is_of(other, module)]
        own = [name for name in names if _is_of(name, module) and not any(_is_of(name, other) for other in longer)]
        last = [name for name in own if _END.fullmatch(name.removeprefix(f"{module}."))]
        ends = (Dump(folder / name, module, dumps[-1].step + 1, "optimizations", "", "end") for name in last)
        chain = (*dumps, *ends)
        if len(chain) > 1:
            chains.append(Chain(module, chain, _first_partitioned(chain)))
    if not chains:
        files = "1 file" if len(names) == 1 else f"{len(names)} files"
        raise InputError(
            f"{folder} holds {files}, but of no module two dumps from between passes: run the program with "
            f"{chain_flags(folder)}",
            Input.NO_CHAIN_IN_FOLDER,
        )
    return chains


def _is_of(name: str, module: str) -> bool:
    """Whether a name begins with a module's, and goes on."""
    return name.startswith(f"{module}.")


def _first_partitioned(dumps: tuple[Dump, ...]) -> int:
    """The first dump after the one that the partitioner was given: its own clean-up is dumped before it ends."""
    ends = [n for n, dump in enumerate(dumps) if dump.after in PARTITIONERS]
    if not ends:
        return len(dumps)
    given = [n for n in range(ends[0]) if dumps[n].before in PARTITIONERS]
    given = given or [n for n in range(ends[0]) if dumps[n].after in PROPAGATIONS]
    given = given or [n for n in range(ends[0]) if dumps[n].pipeline != CLEANUP]
    return given[-1] + 1 if given else 0
