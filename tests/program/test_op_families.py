"""What is asked of operations by their names, and of custom calls by their targets."""

from __future__ import annotations

import pytest

import hlo_verify
from hlo_verify import custom_calls
from hlo_verify.ops.collectives import RULES as COLLECTIVES
from hlo_verify.ops.kernels import PRESUMED
from hlo_verify.program import op_families
from hlo_verify.program.ir import Function, Op
from hlo_verify.program.library_calls import LIBRARY_CALLS
from hlo_verify.program.op_families import communicates, is_new_each_time, live
from hlo_verify.program.operations import CUSTOM_CALL, TARGETS, Family


def test_what_is_presumed_is_a_kernel_or_memory_or_of_a_library() -> None:
    kernels = {target for target, row in TARGETS.items() if row.families == Family.KERNEL}
    assert kernels == set(PRESUMED) - {"AllocateBuffer"} - set(LIBRARY_CALLS)


def test_collectives_communicate_or_number_devices() -> None:
    known = op_families.COLLECTIVES | op_families.DEVICE_NUMBERS
    assert set(COLLECTIVES) == known


def _function(name: str, **attributes: object) -> Function:
    """An operation, in a region of another one."""
    inner = Function((), (), (Op(name, (), (), (), attributes),), ())
    return Function((), (), (Op("case", (), (), (), {}, (inner,)),), ())


def _call(target: str, **attributes: object) -> Function:
    return _function(CUSTOM_CALL, call_target_name=target, **attributes)


@pytest.mark.parametrize(
    ("function", "exchanges", "draws"),
    [
        (_function("add"), False, False),
        (_function("mhlo.all_to_all"), True, False),
        (_function("send"), True, False),
        (_function("recv"), True, True),
        (_function("rng"), False, True),
        (_function("partition_id"), False, False),
        (_function("of.a.dialect.unheard_of"), True, True),
        (_call("Sharding"), False, False),
        (_call("AllocateBuffer"), False, True),
        (_call("ragged_all_to_all"), True, False),
        (_call("unheard_of"), True, True),
        (_call("tpu_custom_call", backend_config="{}"), False, False),
        (_call("tpu_custom_call", backend_config='{"collective_id": 0}'), True, False),
        (_call("triton_kernel_call", has_side_effect=True), True, True),
    ],
)
def test_what_is_not_known_may_communicate_and_be_new(function: Function, exchanges: bool, draws: bool) -> None:
    assert communicates(function) is exchanges
    assert is_new_each_time(function) is draws


def test_users_say_what_a_call_computes() -> None:
    hlo_verify.register_custom_call("unheard_of")
    try:
        assert not communicates(_call("unheard_of"))
    finally:
        custom_calls.forget_custom_call("unheard_of")


def _op(name: str, operands: tuple[int, ...], result: int, *regions: Function) -> Op:
    return Op(name, operands, (result,), (), {}, regions)


def test_what_results_hang_on_is_live() -> None:
    region = Function((), (), (_op("negate", (2,), 9),), (9,))
    effect = Op("outfeed", (4,), (), (), {})
    ops = (
        _op("add", (0, 0), 1),
        _op("add", (0, 1), 2),
        _op("multiply", (1, 1), 3),
        _op("tanh", (0,), 4),
        _op("exponential", (3,), 5),
        _op("case", (0,), 6, region),
    )
    assert live(Function((0,), (), ops, (6,))) == [ops[0], ops[1], ops[5]]
    assert live(Function((0,), (), (*ops, effect), (1,))) == [ops[0], ops[3], effect]
    inside = _op("case", (0,), 7, Function((), (), (effect,), ()))
    assert live(Function((0,), (), (*ops, inside), (0,))) == [ops[3], inside]
