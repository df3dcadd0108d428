"""Saved witnesses: both modules, the inputs for which they differ, and where, in one file.

A witness is a zip archive: `witness.json`, the modules as they were given (`logical`, `partitioned`), the inputs block
by block (`inputs.npz`: element (i0, i1, ...) of argument n is `values_n[0, classes_n_1[i0], classes_n_2[i1], ...]`),
and how arguments and results are placed on the devices (`placements.npz`).
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.evaluate import Blocks
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.sharding import Sharding

VERSION = 1
"""Of the format."""

Arrays = dict[str, npt.NDArray[Any]]

_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    RuntimeError,
    EOFError,
    ArithmeticError,
)
"""What is raised where an archive, a table or an array in it is not as `save` leaves them."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What a witness holds. `points` are (result, device, element, element of the device's shard)."""

    name: str
    devices: int
    logical: bytes
    partitioned: bytes
    inputs: tuple[Blocks, ...]
    arguments: tuple[Sharding | None, ...]
    results: tuple[Sharding | None, ...]
    points: tuple[tuple[int, int, tuple[int, ...], tuple[int, ...]], ...]
    assumed: tuple[Values | None, ...] = ()
    """The values that the user allowed of each argument; empty where nothing was said."""


def save(path: Path, saved: Saved) -> None:
    """Write a witness. Raises `InputError` where that is not possible."""
    described = {
        "version": VERSION,
        "name": saved.name,
        "devices": saved.devices,
        "arguments": len(saved.inputs),
        "points": [list(point) for point in saved.points],
        "assumed": [None if each is None else _written(each) for each in saved.assumed],
    }
    inputs: Arrays = {}
    for n, blocks in enumerate(saved.inputs):
        inputs[f"values_{n}"] = blocks.values
        inputs.update({f"classes_{n}_{k}": each for k, each in enumerate(blocks.classes)})
    placements = {**_table("argument", saved.arguments), **_table("result", saved.results)}
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("witness.json", json.dumps(described))
            archive.writestr("logical", saved.logical)
            archive.writestr("partitioned", saved.partitioned)
            archive.writestr("inputs.npz", _packed(inputs))
            archive.writestr("placements.npz", _packed(placements))
    except OSError as error:
        raise InputError(f"cannot write the witness {path}: {error.strerror}", Input.UNWRITABLE) from error


def read(path: Path) -> Saved:
    """Read a witness. Raises `InputError` for anything else."""
    try:
        with zipfile.ZipFile(path) as archive:
            described = json.loads(archive.read("witness.json"))
            if described["version"] != VERSION:
                raise InputError(
                    f"{path} is a witness of version {described['version']}; this reads {VERSION}", Input.DAMAGED
                )
            inputs, placements = _unpacked(archive.read("inputs.npz")), _unpacked(archive.read("placements.npz"))
            return Saved(
                described["name"],
                described["devices"],
                archive.read("logical"),
                archive.read("partitioned"),
                tuple(_blocks(inputs, n) for n in range(described["arguments"])),
                _shardings("argument", placements),
                _shardings("result", placements),
                tuple(
                    (_natural(n), _natural(device), tuple(whole), tuple(local))
                    for n, device, whole, local in described["points"]
                ),
                tuple(None if each is None else _allowed(*each) for each in described.get("assumed", ())),
            )
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", Input.UNREADABLE) from error
    except _DAMAGED as error:
        why = "" if isinstance(error, zipfile.BadZipFile) else f": {error}"
        raise InputError(f"{path} is no witness that --witness wrote{why}", Input.DAMAGED) from error


def _written(values: Values) -> list[Any]:
    bounds = (None if bound is None else str(bound) for bound in (values.least, values.greatest))
    more = values.multiple, values.ascending, values.distinct, values.permutation
    return [*bounds, list(values.excluded), *more * values.says_more]


def _allowed(least: str | None, greatest: str | None, excluded: Sequence[Any], multiple: Any = 1, *more: Any) -> Values:
    bounds = [None if bound is None else Fraction(bound) for bound in (least, greatest)]
    low, high = (bound.numerator if bound is not None and bound.denominator == 1 else bound for bound in bounds)
    return Values(low, high, (bool(excluded[0]), bool(excluded[1])), _natural(multiple), *map(bool, more))


def _natural(number: Any) -> int:
    """A natural number. Raises TypeError or ValueError for what is none."""
    if index(number) < 0:
        raise ValueError(f"{number} is negative")
    return int(number)


def _blocks(arrays: Mapping[str, Any], n: int) -> Blocks:
    values = arrays[f"values_{n}"]
    return Blocks(tuple(arrays[f"classes_{n}_{k}"] for k in range(values.ndim)), values)


def _table(which: str, shardings: Sequence[Sharding | None]) -> Arrays:
    arrays: Arrays = {f"{which}s": np.array(len(shardings))}
    for n, sharding in enumerate(shardings):
        if sharding is None:
            continue
        key = f"{which}_{n}"
        arrays[f"{key}_tiles"] = np.array(sharding.tiles, np.int64)
        arrays[f"{key}_coordinates"] = sharding.coordinates
        arrays[f"{key}_others"] = sharding.others
        if sharding.addends is not None:
            arrays[f"{key}_addends"] = sharding.addends
        if sharding.only is not None:
            arrays[f"{key}_only"] = np.array(sharding.only)
        if sharding.manual is not None:
            arrays[f"{key}_manual"] = sharding.manual
    return arrays


def _shardings(which: str, arrays: Mapping[str, Any]) -> tuple[Sharding | None, ...]:
    return tuple(_sharding(f"{which}_{n}", arrays) for n in range(int(arrays[f"{which}s"])))


def _sharding(key: str, arrays: Mapping[str, Any]) -> Sharding | None:
    if f"{key}_tiles" not in arrays:
        return None
    only = arrays.get(f"{key}_only")
    return Sharding(
        tuple(int(n) for n in arrays[f"{key}_tiles"]),
        arrays[f"{key}_coordinates"],
        arrays[f"{key}_others"],
        arrays.get(f"{key}_addends"),
        None if only is None else int(only),
        arrays.get(f"{key}_manual"),
    )


def _packed(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _unpacked(contents: bytes) -> Arrays:
    with np.load(io.BytesIO(contents), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
