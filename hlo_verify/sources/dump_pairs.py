"""Pairs of modules in a folder that XLA wrote for `--xla_dump_to`.

XLA names a module between two passes

    MODULE.STEP.PIPELINE.after_PASS.before_PASS.txt

where MODULE is `module_0003.jit_step` (on TPU with a `.cl_123` behind it), STEP counts the module's dumps, and
the ending is `.txt`, `.hlo`, `.pb` or `.hlo.pb`, perhaps with `.gz`. A pass that changes nothing is not dumped, so the
module before the partitioner may carry the name of an earlier pass. What it was given at first is in
`MODULE/module.mlir` (StableHLO, as the program was lowered) and in `MODULE.before_optimizations` (the same as HLO).
"""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError

PASSES_FLAG = "--xla_dump_hlo_pass_re=spmd|shardy|sharding"
CONSTANTS_FLAG = "--xla_dump_large_constants=true"

PARTITIONERS = ("spmd-partitioning", "tpu-spmd-partitioning")
PROPAGATIONS = ("shardy-xla", "sharding-propagation")
_ENDING = re.compile(r"\.(?P<form>txt|hlo|hlo\.pb|pb)(\.gz)?$")
_NAME = re.compile(
    r"(?P<module>.+)\.(?P<step>\d+)\.(?P<pipeline>[^.]+)\.after_(?P<after>[^.]+)(\.before_(?P<before>[^.]+))?(\..*)?"
)


@dataclass(frozen=True, slots=True)
class Dump:
    """One module between two passes. `path` is the better of its forms where XLA wrote several."""

    path: Path
    module: str
    step: int
    after: str
    before: str
    pipeline: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """A module as it came in, the earliest that there is of it, and behind the SPMD partitioner.

    `annotated` is what the partitioner was given, where that is a later one: its passes simplified it and completed
    its shardings.
    """

    module: str
    logical: Path
    partitioned: Path
    annotated: Path | None = None


def dump_flags(folder: Path | str) -> str:
    """What to set for XLA to dump pairs to `folder`."""
    return f'XLA_FLAGS="--xla_dump_to={folder} {PASSES_FLAG} {CONSTANTS_FLAG}"'


def find_pairs(folder: Path) -> tuple[list[Pair], list[tuple[str, str]]]:
    """Every pair in `folder`, ordered by module; and each module of which only one half is there, with a message.

    A folder with one `logical.*` and one `partitioned.*` file, as `--keep` leaves it, is one pair, perhaps with an
    `annotated.*`. Raises `InputError` where there is no pair.
    """
    names = list_files(folder)
    if not names:
        raise InputError(f"{folder} is empty: run the program with {dump_flags(folder)}", Input.NO_PAIR_IN_FOLDER)
    kept = _kept_pair(folder, names)
    if kept is not None:
        return [kept], []
    modules: dict[str, list[Dump]] = defaultdict(list)
    for dump in parse_names(folder, names):
        modules[dump.module].append(dump)
    pairs: list[Pair] = []
    incomplete: list[tuple[str, str]] = []
    for module in sorted(modules):
        first = _as_given(folder, names, module)
        _pair_up(module, first, sorted(modules[module], key=lambda dump: dump.step), pairs, incomplete)
    if not pairs:
        raise InputError(incomplete[0][1] if incomplete else _no_pairs(folder, names), Input.NO_PAIR_IN_FOLDER)
    return pairs, incomplete


def parse_names(folder: Path, names: Iterable[str]) -> list[Dump]:
    """The dumps among the files of a folder, one for each module, step and pass; other files are left out.

    Two passes have one step where a folder has dumps of two compilations: neither stands for the other.
    """
    forms: dict[tuple[str, int, tuple[str, str, str]], list[tuple[str, Dump]]] = defaultdict(list)
    for name in sorted(names):
        ending = _ENDING.search(name)
        match = ending and _NAME.fullmatch(name[: ending.start()])
        if ending and match:
            passes = match["after"], match["before"] or "", match["pipeline"]
            dump = Dump(folder / name, match["module"], int(match["step"]), *passes)
            forms[dump.module, dump.step, passes].append((ending["form"], dump))
    return [_best_form(candidates) for candidates in forms.values()]


def list_files(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    except OSError as error:
        raise InputError(f"cannot read the folder {folder}: {error.strerror}", Input.UNREADABLE) from error


def _kept_pair(folder: Path, names: list[str]) -> Pair | None:
    """What `--keep` leaves behind."""
    halves = [[n for n in names if n.startswith(f"{half}.")] for half in ("logical", "partitioned")]
    if [len(half) for half in halves] != [1, 1]:
        return None
    between = [n for n in names if n.startswith("annotated.")]
    annotated = folder / between[0] if len(between) == 1 else None
    return Pair(folder.resolve().name, folder / halves[0][0], folder / halves[1][0], annotated)


def _as_given(folder: Path, names: Iterable[str], module: str) -> Path | None:
    """A module before any pass of the compiler, if it was dumped."""
    lowered = folder / module / "module.mlir"
    if lowered.is_file():
        return lowered
    forms: list[tuple[str, Dump]] = []
    for name in names:
        ending = _ENDING.search(name)
        if ending and name[: ending.start()] == f"{module}.before_optimizations":
            forms.append((ending["form"], Dump(folder / name, module, 0, "", "")))
    return _best_form(forms).path if forms else None


def _best_form(candidates: list[tuple[str, Dump]]) -> Dump:
    """Text says more than a proto (the number of partitions), unless the printer left constants out of it."""
    texts = [dump for form, dump in candidates if form in ("txt", "hlo")]
    protos = [dump for form, dump in candidates if form not in ("txt", "hlo")]
    if texts and (not protos or not _is_elided(texts[0].path)):
        return texts[0]
    return protos[0]


def _is_elided(path: Path) -> bool:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return b"constant({...})" in file.read()
    except (OSError, EOFError):
        return False  # the loader reports what is wrong with the file


def _pair_up(
    module: str, first: Path | None, dumps: list[Dump], pairs: list[Pair], incomplete: list[tuple[str, str]]
) -> None:
    """Add the pairs of one module, whose dumps come in order of their steps: each dump after a partitioner with the
    last one before it, and with the module as it came in (`first`, or else the first dump; where it is partitioned
    again, the first dump since)."""
    afters = [dump for dump in dumps if dump.after in PARTITIONERS]
    since = -1
    for after in afters:
        earlier = [dump for dump in dumps if since < dump.step < after.step]
        befores = [d for d in earlier if d.before == after.after] or [d for d in earlier if d.after in PROPAGATIONS]
        if befores:
            given = first if first is not None and since < 0 else earlier[0].path
            annotated = befores[-1].path
            pairs.append(Pair(module, given, after.path, None if given == annotated else annotated))
        else:
            message = f"{after.path} is a module after the SPMD partitioner, but the one before it is missing"
            incomplete.append((module, f"{message}: dump both with {PASSES_FLAG}"))
        since = after.step
    befores = [dump for dump in dumps if dump.before in PARTITIONERS]
    if befores and not afters:
        message = f"{befores[-1].path} is a module before the SPMD partitioner, but the one after it is missing"
        incomplete.append((module, f"{message}: let the compilation finish, and dump both with {PASSES_FLAG}"))


def _no_pairs(folder: Path, names: list[str]) -> str:
    files = "1 file" if len(names) == 1 else f"{len(names)} files"
    return (
        f"{folder} holds {files}, but no module from before and after the SPMD partitioner: "
        f"run the program with {dump_flags(folder)} (a program for one device is not partitioned)"
    )
