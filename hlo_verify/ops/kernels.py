"""Custom calls by their targets. Kernels that nobody said anything of are taken for functions of their operands, and
memory that nobody wrote to for the same in both modules; reports say so.

Compilers of kernels have one target for all of them; the kernel is in the call's `backend_config`, which is a part of
what has to be equal. A Pallas TPU kernel that talks to other devices is a function of more than its operands, and is
not taken for one; of others it is not known whether they do. Who knows more says so (`register_custom_call`).
"""

from __future__ import annotations

from dataclasses import dataclass

from hlo_verify.diagnostics import Unsupported
from hlo_verify.ops import manual, opaque
from hlo_verify.ops.libraries import library_call
from hlo_verify.ops.opaque import deterministic
from hlo_verify.ops.values import Context, Rule, UnsupportedError, Value, positions
from hlo_verify.program.ir import Op
from hlo_verify.program.library_calls import LIBRARY_CALLS
from hlo_verify.program.op_families import says_that_it_communicates
from hlo_verify.registered_calls import registered
from hlo_verify.terms.definitions import define


@dataclass(frozen=True, slots=True)
class Presumed:
    """What custom calls to a target are taken for, in words and as a rule."""

    assumption: str
    rule: Rule


def _kernels(target: str, language: str) -> Presumed:
    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        if says_that_it_communicates(op.attributes):
            raise UnsupportedError(
                f"custom_call to {target}, a {language} kernel that communicates with other devices",
                Unsupported.CUSTOM_CALL,
            )
        return _OF_OPERANDS(op, args, context)

    return Presumed(f"{language} kernels (custom_call to {target}) are functions of their operands", rule)


_OF_OPERANDS = deterministic()


def _memory(op: Op, args: list[Value], context: Context) -> list[Value]:
    """Memory that nobody wrote to: another tensor at each execution, which holds the same in the other module where the
    same line, on the same device and in the same iterations, asks for it as often before."""
    if args or op.regions or op.attributes.get("has_side_effect"):
        raise UnsupportedError("custom_call to AllocateBuffer with operands or effects", Unsupported.CUSTOM_CALL)
    device = context.device or context.mesh
    if device is None or (context.device is None and device.size > 1):
        raise UnsupportedError("memory that nobody wrote to outside of a device's program", Unsupported.CUSTOM_CALL)
    line = str(op.location), tuple(map(str, op.types))
    number = context.number(op, line)
    return [
        Value(
            type_,
            define(
                "memory",
                (),
                (),
                attributes=(line, number, n),
                at=(*context.execution, *positions(type_.shape)),
                ordered=True,
                dtype=type_.dtype,
            ),
        )
        for n, type_ in enumerate(op.types)
    ]


PRESUMED = {
    "tpu_custom_call": _kernels("tpu_custom_call", "Pallas TPU"),
    "__gpu$xla.gpu.triton": _kernels("__gpu$xla.gpu.triton", "Triton"),
    "triton_kernel_call": _kernels("triton_kernel_call", "Triton"),
    "AwsNeuronCustomNativeKernel": _kernels("AwsNeuronCustomNativeKernel", "NKI"),
    "AllocateBuffer": Presumed(
        "memory that nobody wrote to (custom_call to AllocateBuffer) holds the same in both modules, each time that "
        "one line asks for it on a device",
        _memory,
    ),
    **{
        target: Presumed(f"custom_call to {target} computes the same of equal matrices", library_call)
        for target in LIBRARY_CALLS
    },
}
"""By target."""

CUSTOM_CALLS: dict[str, Rule] = {**opaque.CUSTOM_CALLS, **manual.CUSTOM_CALLS}
"""Meanings of the compiler's own custom calls, by target."""


def _custom_call(op: Op, args: list[Value], context: Context) -> list[Value]:
    target = str(op.attributes.get("call_target_name"))
    said = registered().get(target) or PRESUMED.get(target)
    rule = CUSTOM_CALLS.get(target) if said is None else said.rule
    if rule is None:
        raise UnsupportedError(f"custom_call to {target}, which has no registered meaning", Unsupported.CUSTOM_CALL)
    values: list[Value] = rule(op, args, context)
    return values


RULES: dict[str, Rule] = {"custom_call": _custom_call}
