"""Shardings files: where arguments and results lie, and what is known of them, as users write it down."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.diagnostics.errors import InputError

if TYPE_CHECKING:
    from hlo_verify.program.ir import Module, TensorType
    from hlo_verify.program.mesh import Mesh
    from hlo_verify.program.preconditions import Precondition
    from hlo_verify.program.sharding import Sharding


@dataclass(frozen=True, slots=True)
class Spec:
    """A JAX-like partition spec: for each dimension, the mesh axes that split it, outermost first."""

    dimensions: tuple[tuple[str, ...], ...]
    unreduced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shardings:
    """A shardings file: what it says of arguments and results, by name or by position (a key of digits).

    A value is a `Spec` over `mesh`, or the text of an HloSharding.
    """

    path: Path
    mesh: Mesh | None
    arguments: Mapping[str, Spec | str]
    results: Mapping[str, Spec | str]
    assumed: tuple[Precondition, ...] = ()
    """What the file says of the values of arguments, besides."""

    def apply(self, module: Module) -> Module:
        """The module with these shardings where it had none.

        Raises `InputError` where a name or position is not the module's, where a sharding does not fit its tensor,
        or where it contradicts the module's own.
        """
        devices = self.devices if self.mesh is not None or module.partitions in (None, 1) else module.partitions
        devices = devices or module.partitions
        if module.partitions not in (None, 1, devices):
            raise InputError(
                f"{self.path}: the mesh has {devices} devices, the module is for {module.partitions}",
                Input.OTHER_DEVICES,
            )
        module = replace(module, partitions=devices)
        arguments = self._merge("argument", module, module.main.argument_types)
        results = self._merge("result", module, module.result_types)
        return replace(module, argument_shardings=arguments, result_shardings=results)

    @property
    def devices(self) -> int | None:
        """The number of devices that the mesh, or else the texts of HloShardings, are for."""
        from hlo_verify.program.sharding import device_counts

        if self.mesh is not None:
            return self.mesh.size
        texts = [v for v in (*self.arguments.values(), *self.results.values()) if isinstance(v, str)]
        try:
            counts = {count for text in texts for count in device_counts(text)}
        except InputError as error:
            raise error.within(str(self.path)) from error
        if len(counts) > 1:
            raise InputError(
                f"{self.path}: shardings for {' and '.join(map(str, sorted(counts)))} devices", Input.SHARDINGS_FILE
            )
        return next(iter(counts), None)

    def entries(self, which: str, module: Module) -> dict[int, Spec | str]:
        """What is said of the module's arguments or results (`which` is one or the other), by position."""
        names = module.argument_names if which == "argument" else module.result_names
        given = self.arguments if which == "argument" else self.results
        entries: dict[int, Spec | str] = {}
        seen: dict[int, str] = {}
        for key, value in given.items():
            what = f"{self.path}: {which} {key!r}"
            position = _position(key, names, what)
            if position in seen:
                raise InputError(f"{what} and {seen[position]!r} are the same {which}", Input.SHARDINGS_FILE)
            seen[position] = key
            entries[position] = value
        return entries

    def _merge(self, which: str, module: Module, types: Sequence[TensorType]) -> tuple[Sharding | None, ...]:
        from hlo_verify.program.sharding import same

        names = module.argument_names if which == "argument" else module.result_names
        own_shardings = module.argument_shardings if which == "argument" else module.result_shardings
        shardings = [
            sharding.spread(module.partitions) if sharding is not None and module.partitions else sharding
            for sharding in own_shardings
        ]
        for position, value in self.entries(which, module).items():
            what = f"{self.path}: {which} {names[position]!r}"
            sharding = self._place(value, types[position], module.partitions, what)
            own = shardings[position]
            if own is not None and not same(own, sharding):
                raise InputError(
                    f"{what}: the module itself says otherwise; leave this {which} out of the file",
                    Annotation.CONTRADICTION,
                )
            shardings[position] = sharding
        return tuple(shardings)

    def _place(self, value: Spec | str, tensor: TensorType, devices: int | None, what: str) -> Sharding:
        from hlo_verify.program import sharding as placements
        from hlo_verify.program.mesh import AxisReference

        if isinstance(value, str):
            try:
                parsed = placements.parse_hlo_sharding(value, tensor.rank, devices)
            except InputError as error:
                raise error.within(what) from error
            if not isinstance(parsed, placements.Sharding):
                raise InputError(f"{what}: {value!r} does not place the tensor", Annotation.PLACES_NOTHING)
            return parsed
        if self.mesh is None:
            raise InputError(
                f"{what}: a partition spec needs a mesh; add a [mesh] table with the size of each axis",
                Input.SHARDINGS_FILE,
            )
        _check_spec(value, tensor, self.mesh, what)
        dimensions = [[AxisReference(axis) for axis in axes] for axes in value.dimensions]
        dimensions += [[]] * (tensor.rank - len(dimensions))
        return placements.place(self.mesh, dimensions, [AxisReference(a) for a in value.unreduced], devices)


def read_shardings(path: str | Path) -> Shardings:
    """The shardings file at `path`, TOML or JSON. Raises `InputError` naming the entry that cannot be read."""
    path = Path(path)
    table = read_table(path, Input.SHARDINGS_FILE)
    unknown = set(table) - {"mesh", "device_ids", "arguments", "results", "assume"}
    if unknown:
        raise InputError(
            f"{path}: unknown key {min(unknown)!r}; a shardings file has mesh, device_ids, arguments, results, assume",
            Input.SHARDINGS_FILE,
        )
    mesh = _mesh(path, table)
    sides = {}
    for side in ("arguments", "results"):
        entries = table.get(side, {})
        if not isinstance(entries, dict):
            raise InputError(
                f"{path}: {side} must be a table from names or positions to shardings", Input.SHARDINGS_FILE
            )
        sides[side] = {key: _spec(value, f"{path}: {side}: {key!r}") for key, value in entries.items()}
    assumed = read_preconditions(table.get("assume", {}), f"{path}: assume", Input.SHARDINGS_FILE)
    return Shardings(path, mesh, sides["arguments"], sides["results"], assumed)


def read_preconditions(table: Any, what: str, code: Input) -> tuple[Precondition, ...]:
    """Preconditions of a file, from arguments to values."""
    from hlo_verify.program import preconditions

    if not isinstance(table, dict):
        raise InputError(f"{what} must be a table from arguments to values, such as tokens = [0, 32000]", code)
    try:
        return preconditions.read(table)
    except InputError as error:
        raise error.within(what) from error


def read_table(path: Path, code: Input) -> dict[str, Any]:
    """A TOML or JSON table; JSON where the first character is a brace. `code` is that of a file which is neither."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", Input.UNREADABLE) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text: {error}", code) from error
    try:
        return dict(json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is neither valid TOML nor JSON: {error}", code) from error


def _mesh(path: Path, table: Mapping[str, Any]) -> Mesh | None:
    from hlo_verify.program.mesh import Mesh

    axes, ids = table.get("mesh"), table.get("device_ids", [])
    if axes is None:
        return None
    if not isinstance(axes, dict) or not all(type(size) is int and size > 0 for size in axes.values()):
        raise InputError(f"{path}: mesh must be a table from axis names to positive sizes", Input.SHARDINGS_FILE)
    named = isinstance(ids, list) and all(type(number) is int for number in ids)
    mesh = Mesh(tuple(axes.items()), tuple(ids) if named else ())
    if not named or (ids and (len(ids) != mesh.size or sorted(ids) != list(range(mesh.size)))):
        raise InputError(
            f"{path}: device_ids must name each of the {mesh.size} devices of the mesh once", Input.SHARDINGS_FILE
        )
    return mesh


def _spec(value: Any, what: str) -> Spec | str:
    """A list with an entry for each dimension (an axis, a list of axes, or `""`, `[]` or null), the text of a JAX
    PartitionSpec, or the text of an HloSharding."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return value.strip()
    unreduced: tuple[str, ...] = ()
    if isinstance(value, str):
        value, unreduced = _partition_spec(value, what)
    if not isinstance(value, list):
        raise InputError(
            f"{what}: not a sharding: {value!r}; write a list, \"P('x', None)\" or an HloSharding's text",
            Input.SHARDINGS_FILE,
        )
    dimensions = []
    for entry in value:
        axes = [] if not entry else [entry] if isinstance(entry, str) else entry
        if not isinstance(axes, list | tuple) or not all(isinstance(axis, str) for axis in axes):
            raise InputError(f"{what}: {entry!r} is neither an axis nor a list of axes", Input.SHARDINGS_FILE)
        dimensions.append(tuple(axes))
    return Spec(tuple(dimensions), unreduced)


def axes_of(text: str, what: str) -> tuple[tuple[str, ...], ...]:
    """The axes that split each dimension, from the text of a JAX PartitionSpec. Raises `InputError`."""
    spec = _spec(text, what)
    assert isinstance(spec, Spec)
    if spec.unreduced:
        raise InputError(f"{what}: addends are no shards: {text}", Input.SHARDINGS_FILE)
    return spec.dimensions


def _partition_spec(text: str, what: str) -> tuple[list[Any], tuple[str, ...]]:
    """`P('data', None, ('a', 'b'), unreduced={'model'})` as a list of entries and the unreduced axes."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or ast.unparse(call.func) not in ("P", "PartitionSpec"):
            raise ValueError("not a call of P")
        keywords = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
        if set(keywords) - {"unreduced"}:
            raise ValueError("the only keyword is unreduced")
        return [ast.literal_eval(argument) for argument in call.args], tuple(sorted(keywords.get("unreduced", ())))
    except (SyntaxError, ValueError, TypeError) as error:
        raise InputError(
            f"{what}: not a partition spec such as P('data', None): {text!r}", Input.SHARDINGS_FILE
        ) from error


def _check_spec(spec: Spec, tensor: TensorType, mesh: Mesh, what: str) -> None:
    if len(spec.dimensions) > tensor.rank:
        raise InputError(
            f"{what}: {len(spec.dimensions)} entries for {tensor}, which has {tensor.rank} dimensions",
            Annotation.WRONG_RANK,
        )
    axes = [axis for dimension in spec.dimensions for axis in dimension] + list(spec.unreduced)
    sizes = dict(mesh.axes)
    for axis in axes:
        if axis not in sizes:
            raise InputError(
                f"{what}: the mesh has no axis {axis!r}; its axes are {', '.join(sizes)}", Annotation.WRONG_MESH
            )
        if axes.count(axis) > 1:
            raise InputError(f"{what}: the axis {axis!r} is used twice", Annotation.WRONG_MESH)


def _position(key: str, names: Sequence[str], what: str) -> int:
    if names.count(key) == 1:
        return names.index(key)
    if key in names:
        raise InputError(f"{what}: {names.count(key)} have that name; use the position, from 0", Input.SHARDINGS_FILE)
    if key.isdecimal() and len(key) < 10 and int(key) < len(names):
        return int(key)
    known = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise InputError(f"{what} does not exist; there are {len(names)}: {known}", Input.SHARDINGS_FILE)
