"""What users say of custom calls: a JAX function that computes the same, or that nothing is known but the name.

A proof that meets such a call leans on what was said, and its report says so.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from hlo_verify.diagnostics import Diagnostic, Input, Unsupported
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.element_types import JAX_NAMES
from hlo_verify.registered_calls import DEFAULT, Said, registered

if TYPE_CHECKING:
    from hlo_verify.ops.values import Context, Rule, Value
    from hlo_verify.program.ir import Function, Module, Op, TensorType
    from hlo_verify.session import Session


def register_custom_call(
    target: str,
    meaning: Callable[..., Any] | None = None,
    *,
    trailing: int | None = None,
    session: Session | None = None,
    replace: bool = False,
) -> None:
    """Say what custom calls to `target` compute, so that modules that have them can be verified.

    `meaning` is a function of JAX arrays that computes the same: it is traced for the types of each call's operands and
    takes the place of the call. A parameter named `attributes` gets the call's attributes (`backend_config`, …).

    Without one, all that is known of the call is that its results depend on nothing but its operands and attributes.
    `trailing` then is the number of last dimensions, of each operand and result, that it works on; it maps over the
    ones before, which are the same for all. None: it may mix all dimensions.

    It holds for every verification that begins from now on; of a `session`, for those alone that are given it, where it
    comes before what holds for all. `replace` puts it in the place of what was said before, if something was.

    Verdicts lean on this, and reports name it among the assumptions. Raises ValueError for a target that has a meaning.
    """
    from hlo_verify.ops.kernels import CUSTOM_CALLS

    if not isinstance(target, str) or not target:
        raise ValueError(f"the target of a custom call is its name, not {target!r}")
    said = _known_by_name(target, trailing) if meaning is None else _computed(target, meaning, trailing)
    if target in CUSTOM_CALLS:
        raise ValueError(f"custom_call to {target} has a meaning already, which is the compiler's")
    known = DEFAULT if session is None else session.custom_calls
    if target in known and not replace:
        raise ValueError(f"custom_call to {target} has a meaning already; replace=True puts this one in its place")
    known[target] = said


def forget_custom_call(target: str, *, session: Session | None = None) -> None:
    """Take back what `register_custom_call` said, of a session or for all. Raises KeyError where it said nothing."""
    del (DEFAULT if session is None else session.custom_calls)[target]


def _known_by_name(target: str, trailing: int | None) -> Said:
    from hlo_verify.ops import opaque

    if trailing is not None and (type(trailing) is not int or trailing < 0):
        raise ValueError(f"trailing must be a number of dimensions, not {trailing!r}")
    last = "the last dimension" if trailing == 1 else f"the last {trailing} dimensions"
    over = "its operands" if trailing is None else f"{last} of its operands"
    return Said(f"custom_call to {target} is a function of {over}", opaque.deterministic(trailing))


def _computed(target: str, meaning: Callable[..., Any], trailing: int | None) -> Said:
    if not callable(meaning):
        raise ValueError(f"the meaning of {target} must be a function of JAX arrays, not {meaning!r}")
    if trailing is not None:
        raise ValueError(f"trailing goes with a custom call of which nothing else is known; {target} has a meaning")
    name = f"{getattr(meaning, '__module__', '?')}.{getattr(meaning, '__qualname__', repr(meaning))}"
    return Said(f"custom_call to {target} computes what {name} does", _inlined(target, meaning, name))


def assumptions(modules: Iterable[Module]) -> tuple[str, ...]:
    """What was said of the custom calls in some modules, and what kernels are taken for of which nothing was said."""
    from hlo_verify.ops.kernels import PRESUMED
    from hlo_verify.program.ir import operations

    said = {target: kernel.assumption for target, kernel in PRESUMED.items()}
    said |= {target: of_users.words for target, of_users in registered().items()}
    ops = (op for module in modules for op in operations(module.main) if op.name == "custom_call")
    found = {str(op.attributes.get("call_target_name")) for op in ops}
    return tuple(said[target] for target in sorted(found & said.keys()))


def with_remedy(said: Diagnostic, modules: Iterable[Module]) -> Diagnostic:
    """What is said of an operation, and of a custom call without a meaning also the line that gives it one."""
    from hlo_verify.program.ir import operations

    if said.code is not Unsupported.CUSTOM_CALL:
        return said
    ops = (op for module in modules for op in operations(module.main) if op.name == "custom_call")
    targets = (str(op.attributes.get("call_target_name")) for op in ops if str(op.location) == said.location)
    target = next((target for target in targets if target in said.message), None)
    if target is None:
        return said
    if "callback" in target:
        remedy = "Python is called back (jax.pure_callback, jax.debug.print): verify the program without that"
        return dataclasses.replace(said, notes=(*said.notes, ("callback", remedy)))
    line = f'hlo_verify.register_custom_call("{target}", reference)'
    remedy = f"{line} says what it computes, for a function of JAX; without one, that it is a function of its operands"
    return dataclasses.replace(said, notes=(*said.notes, ("register", remedy)))


def _inlined(target: str, meaning: Callable[..., Any], name: str) -> Rule:
    """The rule that puts a JAX function in the place of a call, traced once in a session for each kind of call."""

    def rule(op: Op, args: list[Value], context: Context) -> list[Value]:
        from hlo_verify.ops.values import UnsupportedError
        from hlo_verify.program.attributes import fingerprint
        from hlo_verify.program.op_families import is_new_each_time

        if op.attributes.get("has_side_effect"):
            raise UnsupportedError(f"custom_call to {target}, which has a side effect", Unsupported.OUTSIDE_WORLD)
        types = tuple(value.type for value in args)
        key = (meaning, types, op.types, fingerprint(op.attributes))
        traced = context.session.traced
        if key not in traced:
            traced[key] = _trace(target, meaning, name, types, op)
        body = traced[key]
        if is_new_each_time(body):
            raise UnsupportedError(f"custom_call to {target}, whose meaning draws numbers or memory", Unsupported.USE)
        # The body's values are numbered by themselves, and no operation of either module is among its own.
        return context.run(body, args, dataclasses.replace(context, environment={}, observe=None))

    return rule


def _trace(
    target: str, meaning: Callable[..., Any], name: str, operand_types: tuple[TensorType, ...], op: Op
) -> Function:
    import jax

    from hlo_verify.passes.load.load import load

    what = f"the meaning of custom_call to {target}, {name},"
    types = [*operand_types, *op.types]
    unknown = [type_ for type_ in types if type_.dtype not in JAX_NAMES]
    if unknown:
        raise InputError(
            f"{what} cannot be had for {unknown[0]}, which JAX has no element type for", Input.CUSTOM_CALL_MEANING
        )
    array: Any = jax.ShapeDtypeStruct
    given = [array(type_.shape, JAX_NAMES[type_.dtype]) for type_ in operand_types]
    extra = {"attributes": dict(op.attributes)} if "attributes" in _parameters(meaning) else {}
    wide = any(type_.dtype.endswith("64") or type_.dtype == "complex<f64>" for type_ in types)
    try:
        with jax.enable_x64(wide):
            lowered = jax.jit(lambda *arrays: meaning(*arrays, **extra), keep_unused=True).trace(*given)
            text = lowered.lower(lowering_platforms=("cpu",)).as_text(debug_info=True)
    except Exception as error:
        operands = ", ".join(map(str, operand_types))
        said = " ".join(str(error).split())[:300]
        raise InputError(
            f"{what} fails for ({operands}) at {op.location}: {type(error).__name__}: {said}", Input.CUSTOM_CALL_MEANING
        ) from error
    module = load(text)
    if module.result_types != op.types:
        found, wanted = (", ".join(map(str, each)) for each in (module.result_types, op.types))
        raise InputError(
            f"{what} gives ({found}) where the call at {op.location} gives ({wanted})", Input.CUSTOM_CALL_MEANING
        )
    return module.main


def _parameters(function: Callable[..., Any]) -> Iterable[str]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()
