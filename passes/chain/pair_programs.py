"""Two programs that devices run, compared with one another: does each device get the same results from the same shards?

A pair of modules has a logical one. Here it is the first program, run by all devices inside of a manual region over
tensors that hold every device's arguments and results one after another; the second program takes and gives the slices
of these. So nothing but what a pair means is needed, and the two may communicate in different ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlo_verify.program.ir import Function, Module, Name, Op, TensorType, fresh_in, operations
from hlo_verify.program.mesh import AxisReference, Mesh
from hlo_verify.program.op_families import family
from hlo_verify.program.operations import Family
from hlo_verify.program.sharding import Sharding, place, replicated

_AXIS = "device"
_OF_DEVICES = Family.COLLECTIVE | Family.NUMBERS_DEVICES | Family.MANUAL


def pair_of_programs(first: Module, second: Module, devices: int) -> tuple[Module, Module]:
    """Two programs for so many partitions of one replica, as a logical and a partitioned module."""
    mesh = Mesh(((_AXIS, devices),))

    def placed(types: Sequence[TensorType]) -> tuple[Sharding | None, ...]:
        return tuple(_on_its_own_device(type_.rank, mesh) for type_ in types)

    def sharded(module: Module, main: Function) -> Module:
        types = tuple(_of(type_, 1) for type_ in module.result_types)
        return replace(
            module,
            main=main,
            result_types=types,
            argument_shardings=placed(module.main.argument_types),
            result_shardings=placed(module.result_types),
            partitions=devices,
        )

    inner = _slices(first)
    fresh = fresh_in(inner)
    types = [replace(type_, shape=(devices, *type_.shape[1:])) for type_ in inner.argument_types]
    results = tuple(_of(type_, devices) for type_ in first.result_types)
    attributes = {
        "in_shardings": placed(first.main.argument_types),
        "out_shardings": placed(first.result_types),
        "manual_axes": (_AXIS,),
        "mesh": mesh,
    }
    arguments, values = fresh.some(len(types)), fresh.some(len(results))
    region = Op("sdy.manual_computation", arguments, values, results, attributes, (inner,))
    whole = Function(arguments, tuple(types), (region,), values)
    return replace(sharded(first, whole), result_types=results), sharded(second, _slices(second))


def pair_of_wholes(first: Module, second: Module) -> tuple[Module, Module]:
    """Two programs that know of no devices, as a logical and a partitioned module on one."""
    return _alone(first), _alone(second)


def _alone(module: Module) -> Module:
    def shardings(types: Sequence[TensorType]) -> tuple[Sharding | None, ...]:
        return tuple(replicated(type_.rank, 1) for type_ in types)

    return replace(
        module,
        main=_without_shardings(module.main),
        argument_shardings=shardings(module.main.argument_types),
        result_shardings=shardings(module.result_types),
        partitions=1,
        replicas=1,
    )


def _on_its_own_device(rank: int, mesh: Mesh) -> Sharding:
    return place(mesh, [(AxisReference(_AXIS),), *((),) * rank], (), mesh.size)


def _of(type_: TensorType, devices: int) -> TensorType:
    return replace(type_, shape=(devices, *type_.shape))


def _slices(module: Module) -> Function:
    """The program on tensors with one dimension of size 1 more, which comes first."""
    main = _without_shardings(module.main)
    fresh = fresh_in(main)
    taken, given = fresh.some(len(main.arguments)), fresh.some(len(main.results))
    types = tuple(_of(type_, 1) for type_ in main.argument_types)
    before = map(_reshape, taken, main.arguments, main.argument_types)
    after = map(_reshape, main.results, given, (_of(type_, 1) for type_ in module.result_types))
    return Function(taken, types, (*before, *main.ops, *after), given)


def _without_shardings(function: Function) -> Function:
    """The function without hints of where its values are to lie on a mesh, which is not the pair's."""
    ops = (
        replace(
            op,
            attributes={name: value for name, value in op.attributes.items() if name != "sharding"},
            regions=tuple(map(_without_shardings, op.regions)),
        )
        for op in function.ops
    )
    return replace(function, ops=tuple(ops))


def _reshape(operand: Name, result: Name, type_: TensorType) -> Op:
    return Op("reshape", (operand,), (result,), (type_,))


def knows_devices(module: Module) -> bool:
    """Whether some operation of a module depends on which device it runs on, or how many there are."""
    return any(
        (family(op.name, op.attributes) or Family.PLAIN) & _OF_DEVICES or "manual" in str(op.attributes.get("sharding"))
        for op in operations(module.main)
    )
