"""MLIR attributes as plain Python values.

| MLIR | Python |
|---|---|
| integer, bool, float, string, unit, type | int, bool, float, str, True, str |
| array, `array<i64: …>`, dictionary, symbol | tuple, tuple of ints, dict, the symbol's name |
| enumeration (`#stablehlo<comparison_direction GT>`) | its bare name (`"GT"`) |
| dimension numbers | a dict with StableHLO's field names |
| `replica_groups`, in any form | an int64 array, one row a group, padded with -1; 0 × 0 for "all of them" |
| other dense elements | an array of the exact dtype (`ml_dtypes` where numpy has none), a splat with zero strides |
| `mhlo.sharding`, `sdy.sharding` | under `sharding`, as text that needs nothing else to be read |
| anything else | its MLIR text |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.jaxlib_api import ir, sdy, stablehlo
from hlo_verify.passes.canonicalize.dense import elements_from_text, read_elements
from hlo_verify.passes.canonicalize.resources import REFERENCE, Resources
from hlo_verify.program.ir import KINDS, OURS
from hlo_verify.program.mesh import AxisReference, Mesh, read_mesh

Array = npt.NDArray[Any]

# Attributes that are about layout, precision or printing and change no value over the reals.
IGNORED = frozenset({"xla_shape", "result_layout", "result_accuracy", "operandSegmentSizes", "resultSegmentSizes"})


MODULE, CALL = "builtin.module", "stablehlo.custom_call"
STATED = frozenset({"api_version", "called_computations", "call_target_name", "frontend_attributes", "has_side_effect"})
STATED |= frozenset({"operand_layouts", "operand_tilings", "output_operand_aliases", "replica_groups"})
STATED |= frozenset({"result_layouts", "result_tilings"})
"""Attributes of custom calls whose types StableHLO states, and tilings, which jaxlib has beside layouts."""


SETTINGS, TYPED_SETTINGS = "backend_config", "mhlo.backend_config"
TYPED = 4
"""The version of a call's interface that takes typed settings."""

THE_MODULES = "the module's "
"""What attributes are called with that have the names of our own."""


class Attributes:
    """Reads attributes of one module; equal attributes are read once."""

    def __init__(self, meshes: Mapping[str, Mesh], mesh_texts: Mapping[str, str], resources: Resources) -> None:
        self.meshes = meshes
        self.resources = resources
        self.mesh_texts = mesh_texts
        self.cache: dict[tuple[Any, bool], Any] = {}
        self.sharding_texts: set[str] = set()

    def of(self, operation: Any) -> dict[str, Any]:
        """All attributes of an operation, without those of `IGNORED` for stablehlo's own operations."""
        raw = operation.attributes
        plain: dict[str, Any] = {}
        kinds: dict[str, Any] = {}
        typed = operation.name == CALL and _has_typed_settings(raw)
        for name in raw:
            if (name in IGNORED and not operation.name.startswith("mhlo.")) or (typed and name == SETTINGS):
                continue
            if name in ("mhlo.sharding", "sdy.sharding"):
                plain["sharding"] = self.sharding(raw[name])
            elif name == "value" and operation.name.endswith(".constant"):
                plain["value"] = self.constant(operation)
            else:
                short = SETTINGS if name == TYPED_SETTINGS and typed else _short(name, raw, operation.name)
                plain[short] = self.read(raw[name], name == "replica_groups")
                if operation.name == CALL and short not in STATED and (kind := _kind(raw[name])):
                    kinds[short] = kind
        if kinds:
            plain[KINDS] = kinds  # a call reads its settings by their types
        if typed:
            plain["api_version"] = TYPED
        return plain

    def read(self, attribute: Any, groups: bool = False) -> Any:
        """One attribute; `groups` where it holds replica groups."""
        key = (attribute, groups)
        if key not in self.cache:
            self.cache[key] = self.groups(attribute) if groups else self._read(attribute)
        return self.cache[key]

    def _read(self, attribute: Any) -> Any:
        reader = _READERS.get(type(attribute))
        if reader is not None:
            return reader(attribute)
        if isinstance(attribute, ir.ArrayAttr):
            return tuple(self.read(element) for element in attribute)
        if isinstance(attribute, ir.DictAttr):
            try:
                return {name: self.read(attribute[name]) for name in _names(attribute)}
            except TypeError:  # complex elements, which the binding of jaxlib 0.10 cannot represent
                return self.resources.written_out(str(attribute))
        if isinstance(attribute, ir.DenseElementsAttr):
            return read_elements(attribute)
        return self._read_dialect(attribute)

    def _read_dialect(self, attribute: Any) -> Any:
        text = str(attribute)
        if resource := REFERENCE.match(text):
            type_ = ir.ShapedType(attribute.type)
            return self.resources.elements(resource[1], tuple(type_.shape), str(type_.element_type))
        if enumeration := re.fullmatch(r"#\w+<\w+ (\w+)>", text):
            return enumeration[1]
        for attribute_type, reader in _DIMENSION_NUMBERS:
            if attribute_type.isinstance(attribute):
                return reader(attribute_type(attribute))
        if text.startswith("#sdy.sharding"):
            return self.sharding(attribute)
        if sdy.ManualAxesAttr.isinstance(attribute):
            return tuple(str(axis) for axis in sdy.ManualAxesAttr(attribute))
        return self.resources.written_out(text)

    def sharding(self, attribute: Any) -> str:
        """The text of a sharding, with the meshes that Shardy's refer to by symbol put in place."""
        key = (attribute, True)
        if key not in self.cache:
            text = attribute.value if isinstance(attribute, ir.StringAttr) else str(attribute)
            if text.startswith("#sdy."):
                text = re.sub(r"<@([\w.$-]+|\"[^\"]*\"),", self._inline_mesh, text)
            self.sharding_texts.add(text)
            self.cache[key] = text
        text = self.cache[key]
        return str(text)

    def _inline_mesh(self, symbol: re.Match[str]) -> str:
        name = symbol[1].strip('"')
        if name not in self.mesh_texts:
            raise InputError(
                f"a sharding refers to the mesh @{name}, which the module does not define", Annotation.WRONG_MESH
            )
        return f"<{self.mesh_texts[name]},"

    def groups(self, attribute: Any) -> Array:
        """Replica groups as rows padded with -1; 0 × 0 where the module leaves them out."""
        if isinstance(attribute, ir.DenseElementsAttr):
            groups = np.array(read_elements(attribute), np.int64)
            return groups if groups.ndim == 2 and groups.size else np.empty((0, 0), np.int64)
        if not stablehlo.ReplicaGroupMeshAxesAttr.isinstance(attribute):
            raise InputError(f"unknown form of replica groups: {attribute}", Input.UNSUPPORTED_MODULE)
        named = stablehlo.ReplicaGroupMeshAxesAttr(attribute)
        if isinstance(named.mesh, ir.FlatSymbolRefAttr):
            if named.mesh.value not in self.meshes:
                raise InputError(
                    f"replica groups refer to the mesh @{named.mesh.value}, which is not defined", Annotation.WRONG_MESH
                )
            mesh = self.meshes[named.mesh.value]
        else:
            mesh = read_mesh(stablehlo.MeshAttr(named.mesh), stablehlo.MeshAxisAttr)
        return mesh.groups([_read_axis(axis) for axis in named.axes])

    def constant(self, operation: Any) -> Array:
        """The value of a constant operation."""
        try:
            attribute = operation.attributes["value"]
        except TypeError:  # the binding of jaxlib 0.10 cannot represent complex elements
            return elements_from_text(operation.get_asm(), operation.results[0].type)
        value = self.read(attribute)
        if not isinstance(value, np.ndarray):
            raise InputError(f"a constant of unknown form: {str(attribute)[:80]}", Input.UNSUPPORTED_MODULE)
        return value


def _short(name: str, given: Any, operation: str) -> str:
    """What an attribute is called. Without its dialect where a module or a call says it beside what StableHLO states,
    as `mhlo.is_stable` says nothing of a sort. None has a name of ours, nor that of a sharding where it is none."""
    short = name.removeprefix("mhlo.")
    if short not in (name, SETTINGS) and short not in given:  # unless the operation has both
        is_setting = operation == MODULE or (operation == CALL and short not in STATED)
        name = short if is_setting or short == "frontend_attributes" else name
    is_ours = name in OURS or (name == "sharding" and not operation.startswith("sdy."))
    return THE_MODULES + name if is_ours or name.startswith(THE_MODULES) else name


def _has_typed_settings(given: Any) -> bool:
    """Whether a custom call has typed settings in the place that JAX writes them to, beside an empty text and without
    a version: XLA takes `backend_config = "", mhlo.backend_config = {a = 1}` for `backend_config = {a = 1},
    api_version = 4`. Beside another text, or under another version, it does not read them."""
    if TYPED_SETTINGS not in given or not isinstance(given[TYPED_SETTINGS], ir.DictAttr):
        return False
    says_nothing = SETTINGS not in given or str(given[SETTINGS]) == '""'
    return says_nothing and ("api_version" not in given or int(given["api_version"].value) == 1)


def _kind(attribute: Any) -> Any:
    """What an attribute is beside its value in Python: numbers of other types, symbols and texts have equal ones.
    Nothing of a text, and of what has its type in its value."""
    if isinstance(attribute, ir.DictAttr):
        try:
            return tuple((name, _kind(attribute[name])) for name in sorted(_names(attribute)))
        except TypeError:  # known by its text
            return ""
    if isinstance(attribute, ir.ArrayAttr):
        return "array", *map(_kind, attribute)
    if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr):
        return str(attribute)  # of NaN, that has its bits
    is_text = isinstance(attribute, ir.StringAttr)
    return type(attribute).__name__ if type(attribute) in _READERS and not is_text else ""


def _names(attribute: Any) -> list[str]:
    return [attribute[k].name for k in range(len(attribute))]


def _read_axis(attribute: Any) -> AxisReference:
    axis = stablehlo.AxisRefAttr(attribute)
    if axis.sub_axis_info is None:
        return AxisReference(axis.name)
    part = stablehlo.SubAxisInfoAttr(axis.sub_axis_info)
    return AxisReference(axis.name, int(part.pre_size), int(part.size))


def _read_string(attribute: Any) -> str:
    try:
        return str(attribute.value)
    except (UnicodeDecodeError, RuntimeError):  # bytes that are no text, which the bindings of some versions say so
        return str(attribute.value_bytes.decode("latin-1"))


def _fields(*names: str, **renamed: str) -> Callable[[Any], dict[str, Any]]:
    """A reader of the named properties of an attribute; `renamed` maps StableHLO's field to the binding's property."""
    properties = {name: name for name in names} | renamed

    def read(attribute: Any) -> dict[str, Any]:
        values = {field: getattr(attribute, name) for field, name in properties.items()}
        return {field: value if isinstance(value, int) else tuple(value) for field, value in values.items()}

    return read


_READERS: dict[type, Callable[[Any], Any]] = {
    ir.BoolAttr: lambda a: bool(a.value),
    ir.IntegerAttr: lambda a: int(a.value),
    ir.FloatAttr: lambda a: float(a.value),
    ir.StringAttr: _read_string,
    ir.FlatSymbolRefAttr: lambda a: str(a.value),
    ir.UnitAttr: lambda a: True,
    ir.TypeAttr: lambda a: str(a.value),
    ir.DenseBoolArrayAttr: lambda a: tuple(bool(x) for x in a),
    ir.DenseI8ArrayAttr: tuple,
    ir.DenseI16ArrayAttr: tuple,
    ir.DenseI32ArrayAttr: tuple,
    ir.DenseI64ArrayAttr: tuple,
    ir.DenseF32ArrayAttr: tuple,
    ir.DenseF64ArrayAttr: tuple,
}

_DIMENSION_NUMBERS: tuple[tuple[Any, Callable[[Any], dict[str, Any]]], ...] = (
    (
        stablehlo.DotDimensionNumbers,
        _fields(
            "lhs_batching_dimensions",
            "rhs_batching_dimensions",
            "lhs_contracting_dimensions",
            "rhs_contracting_dimensions",
        ),
    ),
    (
        stablehlo.GatherDimensionNumbers,
        _fields(
            "offset_dims",
            "collapsed_slice_dims",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "start_index_map",
            "index_vector_dim",
        ),
    ),
    (
        stablehlo.ScatterDimensionNumbers,
        _fields(
            "update_window_dims",
            "inserted_window_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "index_vector_dim",
            scatter_dims_to_operand_dims="scattered_dims_to_operand_dims",
        ),
    ),
    (
        stablehlo.ConvDimensionNumbers,
        _fields(
            "input_batch_dimension",
            "input_feature_dimension",
            "input_spatial_dimensions",
            "kernel_input_feature_dimension",
            "kernel_output_feature_dimension",
            "kernel_spatial_dimensions",
            "output_batch_dimension",
            "output_feature_dimension",
            "output_spatial_dimensions",
        ),
    ),
    (stablehlo.ChannelHandle, _fields("handle", "channel_type")),
)
