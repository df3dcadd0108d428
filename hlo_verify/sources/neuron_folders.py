"""Pairs of modules in two folders of graphs, as AWS Neuron's tools leave them: a `neuron-compile-cache`, or what
`NEURONX_DUMP_TO` names.

A cache has a folder for each graph (`MODULE_<hash>/model.hlo.pb`, `.hlo_module.pb`), and its names say nothing of what
the graphs are. A graph for one device and one for a rank of several correspond where their arguments and results do:
as many, of the same ranks and types, none larger on the rank.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.sources.dump_pairs import Pair

if TYPE_CHECKING:
    from hlo_verify.program.ir import Module, TensorType

_GRAPH = re.compile(r"\.(hlo|hlo\.txt|hlo\.pb|hlo_module\.pb|pb|mlir|stablehlo)(\.gz)?$")
MOST = 64
"""The most graphs that are looked at in one folder."""


def find(folder: Path) -> list[Path]:
    """The files in a folder, and in those inside, that are graphs by their names. Raises `InputError`."""
    try:
        found = sorted(path for path in folder.rglob("*") if _GRAPH.search(path.name) and path.is_file())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})", Input.UNREADABLE) from error
    if not found:
        raise InputError(
            f"{folder} holds no graphs: none of its files ends in .hlo, .pb or .mlir, perhaps with .gz",
            Input.NO_PAIR_IN_FOLDER,
        )
    if len(found) > MOST:
        raise InputError(
            f"{folder} holds {len(found)} graphs, more than {MOST}; pass a folder inside, or the two files",
            Input.NO_PAIR_IN_FOLDER,
        )
    return found


def pair_up(logical: Path, partitioned: Path) -> tuple[list[Pair], list[tuple[str, str]]]:
    """Every pair of a graph in one place and one in the other, each a folder or a file; and each logical graph that
    has no single counterpart, with a message. Raises `InputError` where there is no pair."""
    ours, theirs = (_load(find(path) if path.is_dir() else [path]) for path in (logical, partitioned))
    pairs, incomplete = [], []
    for path, module in ours.items():
        fitting = [other for other, part in theirs.items() if _corresponds(module, part)]
        if len(fitting) == 1:
            pairs.append(Pair(str(path), path, fitting[0]))
        elif fitting:
            names = ", ".join(map(str, fitting))
            incomplete.append((str(path), f"{path} may be the whole of several graphs: {names}; pass one of them"))
        else:
            incomplete.append((str(path), f"{path}: no graph in {partitioned} has arguments and results like its own"))
    if not pairs:
        raise InputError(incomplete[0][1], Input.NO_PAIR_IN_FOLDER)
    return pairs, incomplete


def _load(paths: list[Path]) -> dict[Path, Module]:
    from hlo_verify.passes.load.load import load

    return {path: load(path) for path in paths}


def _corresponds(whole: Module, part: Module) -> bool:
    types = (
        (whole.main.argument_types, part.main.argument_types),
        (whole.result_types, part.result_types),
    )
    return all(
        len(ours) == len(theirs) and all(_is_part(*each) for each in zip(ours, theirs, strict=True))
        for ours, theirs in types
    )


def _is_part(whole: TensorType, part: TensorType) -> bool:
    return (
        whole.rank == part.rank
        and whole.dtype == part.dtype
        and all(p <= w for w, p in zip(whole.shape, part.shape, strict=True))
    )
