"""Arguments in the place of values that somebody declared to stand for one another.

In the logical module, and in the partitioned one, whatever used the value uses a new argument, which is the same in
both: the whole of it in the one, its shards in the other. What is then proved, is proved for every value that it may
have, and so for the logical module's own: with that in the place of its own value, the partitioned module computes what
the logical one does. What computes the values stays, and what else uses that is compared as ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.cut.named_values import LOOP, Value, values_of
from hlo_verify.passes.cut.placing import Devices, Placed, placed
from hlo_verify.program.approximations import Approximation
from hlo_verify.program.element_types import is_float
from hlo_verify.program.ir import Function, Module, Name, Op, TensorType, fresh_in, operations
from hlo_verify.program.op_families import REGION
from hlo_verify.program.pair import device_count, is_global
from hlo_verify.program.sharding import Sharding

LOGICAL, PARTITIONED = "the logical module", "the partitioned module"


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """Both modules with arguments in the place of values, and in words which stands for which."""

    logical: Module
    partitioned: Module
    said: tuple[str, ...]


def cut(logical: Module, partitioned: Module, given: Sequence[Approximation]) -> Cut:
    """The modules in which what is declared is given to both.

    Raises `InputError` where a name is that of no value, or of several that are not alike, and where the one is no
    shard of the other.
    """
    devices = device_count(logical, partitioned)
    taken: dict[tuple[str, Name], Approximation] = {}
    made = Cut(logical, partitioned, ())
    found = [
        (each, values_of(each.logical, logical, LOGICAL), values_of(each.partitioned, partitioned, PARTITIONED))
        for each in given
    ]
    for each, wholes, parts in found:
        if len(wholes) not in (1, len(parts)):
            raise InputError(
                f"{each}: there are {len(wholes)} such values in {LOGICAL} and {len(parts)} in {PARTITIONED}",
                Input.APPROXIMATION,
            )
        both = [*((LOGICAL, value) for value in wholes), *((PARTITIONED, value) for value in parts)]
        for module, value in both:
            other = taken.setdefault((module, value.name), each)
            if other is not each:
                raise InputError(f"{other} and {each} are about one value of {module}, {value}", Input.APPROXIMATION)
        for whole in wholes:
            n = wholes.index(whole) if len(wholes) > 1 else None
            made = _with(made, each, whole, parts if n is None else [parts[n]], devices, n)
    return made


def _with(
    made: Cut, declared: Approximation, whole: Value, parts: Sequence[Value], devices: int, number: int | None
) -> Cut:
    """The modules with one argument more, in the place of a logical value and of those that stand for it. The `number`
    is that of one of several which are declared together."""
    what = str(declared)
    for value, module in ((whole, LOGICAL), *((part, PARTITIONED) for part in parts)):
        if any(op.name == LOOP for op in value.inside):
            raise InputError(
                f"{what}: {value} of {module} has another value in every turn of a loop; name one outside of loops, or "
                "unroll it",
                Input.APPROXIMATION,
            )
    if any(op.name == REGION for op in whole.inside):
        raise InputError(f"{what}: {whole} of {LOGICAL} is one of each device, in a manual region", Input.APPROXIMATION)
    if len({(part.type, _region(part, what)) for part in parts}) > 1:
        raise InputError(f"{what}: values in different manual regions stand for one value", Input.APPROXIMATION)
    part = parts[0]
    if not _same_elements(whole.type, part.type):
        raise InputError(f"{what}: {part} cannot stand for {whole}: of other elements", Input.APPROXIMATION)
    partitioned = made.partitioned
    name = _unused_name(str(declared.logical), made.logical.argument_names)
    if is_global(partitioned):
        region = next((op for op in part.inside if op.name == REGION), None)
        where = placed(declared.placement, whole.type, part.type, _devices_of(region), what) if region else None
        if where is None and (declared.placement or whole.type.shape != part.type.shape):
            raise InputError(
                f"{what}: {part} is no value of a single device, and has to be the whole {whole.type}",
                Input.APPROXIMATION,
            )
        sharding = None
        partitioned = _given_inside(partitioned, whole.type, parts, where)
    else:
        where = placed(declared.placement, whole.type, part.type, Devices(devices), what)
        sharding = where.sharding
        main = _given(partitioned.main, part.type, [each.name for each in parts])
        partitioned = replace(partitioned, main=main)
    logical = replace(made.logical, main=_given(made.logical.main, whole.type, [whole.name]))
    said = _said(declared, whole, parts, where, number) + _and_is_result(made.logical.main.results, whole)
    return Cut(_named(logical, name, sharding), _named(partitioned, name, None), (*made.said, said))


def _region(value: Value, what: str) -> Name | None:
    """A result of the manual region that a value is in, which tells it from others; None in no region."""
    regions = [op for op in value.inside if op.name == REGION]
    if len(regions) > 1:
        raise InputError(f"{what}: {value} is in a manual region of another one", Input.APPROXIMATION)
    return regions[0].results[0] if regions else None


def _same_elements(whole: TensorType, part: TensorType) -> bool:
    return whole.dtype == part.dtype or (is_float(whole.dtype) and is_float(part.dtype))


def _unused_name(wanted: str, names: Sequence[str]) -> str:
    name, n = wanted, 0
    while name in names:
        n += 1
        name = f"{wanted} #{n}"
    return name


def _named(module: Module, name: str, sharding: Sharding | None) -> Module:
    """The module whose last argument, a new one, is called so."""
    return replace(
        module,
        argument_names=(*module.argument_names, name),
        argument_shardings=(*module.argument_shardings, sharding),
        assumed=(*module.assumed, None) if module.assumed else (),
        declared=module.declared + 1,
    )


def _devices_of(region: Op) -> Devices:
    mesh = region.attributes["mesh"]
    return Devices(mesh.size, mesh, tuple(region.attributes["manual_axes"]))


def _given(function: Function, type_: TensorType, values: Sequence[Name]) -> Function:
    """The function with one argument more, in the place of some values."""
    name = fresh_in(function).one()
    function = _replaced(function, dict.fromkeys(values, name))
    return replace(function, arguments=(*function.arguments, name), argument_types=(*function.argument_types, type_))


def _given_inside(module: Module, whole: TensorType, parts: Sequence[Value], where: Placed | None) -> Module:
    """A global module with one argument more, in the place of values of a manual region, if they are in one."""
    values = [part.name for part in parts]
    if where is None:
        return replace(module, main=_given(module.main, whole, values))
    outer, inner = fresh_in(module.main).some(2)
    main = _replaced(module.main, dict.fromkeys(values, inner))
    ops = tuple(_handed_in(op, outer, inner, parts[0], where) for op in main.ops)
    main = replace(main, ops=ops, arguments=(*main.arguments, outer), argument_types=(*main.argument_types, whole))
    return replace(module, main=main)


def _handed_in(op: Op, outer: Name, inner: Name, value: Value, where: Placed) -> Op:
    """The operation; the manual region that a value is in takes one operand more."""
    if value.name not in _made_in(op):
        return op
    if op.name != REGION:
        regions = tuple(
            replace(region, ops=tuple(_handed_in(each, outer, inner, value, where) for each in region.ops))
            for region in op.regions
        )
        return replace(op, regions=regions)
    (region,) = op.regions
    region = replace(region, arguments=(*region.arguments, inner), argument_types=(*region.argument_types, value.type))
    shardings = (*op.attributes["in_shardings"], where.sharding)
    return replace(
        op,
        operands=(*op.operands, outer),
        attributes={**op.attributes, "in_shardings": shardings},
        regions=(region,),
    )


def _made_in(op: Op) -> set[Name]:
    return {name for region in op.regions for each in operations(region) for name in each.results}


def _replaced(function: Function, names: Mapping[Name, Name]) -> Function:
    """The function in which what used some values uses others."""

    def new(values: Sequence[Name]) -> tuple[Name, ...]:
        return tuple(names.get(value, value) for value in values)

    ops = (
        replace(op, operands=new(op.operands), regions=tuple(_replaced(region, names) for region in op.regions))
        for op in function.ops
    )
    return replace(function, ops=tuple(ops), results=new(function.results))


def _said(
    declared: Approximation, whole: Value, parts: Sequence[Value], where: Placed | None, number: int | None
) -> str:
    """Which stands for which, in words: how many values, and of several pairs which one."""
    own, other = (
        str(name) if number is None else f"{name}[{number}]" for name in (declared.partitioned, declared.logical)
    )
    count = f"{len(parts)} values, " if len(parts) > 1 else ""
    first = f"{own} ({count}{', '.join(dict.fromkeys(map(_shown, parts)))})"
    return f"{first} stands for {other} ({_shown(whole)})" + (f", {where.said}" if where else "")


def _and_is_result(results: Sequence[Name], whole: Value) -> str:
    """Of which results of the logical module nothing is left to prove but where they lie: the value is all of them."""
    own = [str(n) for n, name in enumerate(results) if name == whole.name]
    return f", and is all of result {' and '.join(own)}" if own else ""


def _shown(value: Value) -> str:
    path, _, line = str(value.op.location).rpartition(":")
    return f"{value.type}, {PurePath(path).name}:{line}" if line.isdecimal() else f"{value.type}, {path}{line}"
