"""A case as Python: what runs is what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.hunt.case import Case, Spec
from tools.hunt.operations import expression

NAMES = "abcdehijklmnopqrstuvw"

HEAD = """\
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
"""


def spec_text(spec: Spec, unreduced: str = "") -> str:
    parts = [repr(axes[0]) if len(axes) == 1 else repr(axes) if axes else "None" for axes in spec]
    while parts and parts[-1] == "None" and not unreduced:
        parts.pop()
    return f"P({', '.join(parts + ([f'unreduced={{{unreduced!r}}}'] if unreduced else []))})"


def function_text(case: Case, *, placed: bool, every_value: bool = False) -> str:
    """The function `f` of the arguments. Where it is not `placed`, it says nothing of shardings."""
    names = NAMES[: len(case.arguments)]
    lines = [f"def f({', '.join(names)}):"]
    for number, step in enumerate(case.steps, len(case.arguments)):
        text = expression(step.op, [NAMES[k] for k in step.inputs], step.attributes, placed)
        if step.spec is not None and placed:
            spec = spec_text(step.spec)
            if case.explicit:
                text = f"jax.sharding.reshard({text}, {spec})"
            else:
                text = f"lax.with_sharding_constraint({text}, NamedSharding(mesh, {spec}))"
        lines.append(f"    {NAMES[number]} = {text}")
    given = len(case.arguments) + len(case.steps)
    lines.append(f"    return {', '.join(NAMES[:given]) + ',' if every_value else NAMES[case.value]}")
    if case.pulled is not None and not every_value:
        of, by = case.pulled
        value = "jnp.sum(f(*args))" if by == "ones" else "jnp.sum(f(*args) ** 2)"
        lines.append(f"def g(*args): return jax.grad(lambda *args: {value}, argnums={of})(*args)")
    return "\n".join(lines) + "\n"


def entry(case: Case) -> str:
    """The name of the function whose result counts."""
    return "g" if case.pulled is not None else "f"


def mesh_text(case: Case) -> str:
    axes = tuple(case.axes())
    kind = f", axis_types=(AxisType.Explicit,) * {len(axes)}" if case.explicit else ""
    return f"mesh = Mesh(np.array(jax.devices()[:{case.devices}]).reshape({case.mesh}), {axes}{kind})\n"


def jit_text(case: Case) -> str:
    """`sharded`, jitted with shardings. Arguments of an explicit mesh say themselves where they lie."""
    if case.explicit:
        return f"sharded = jax.jit({entry(case)}, keep_unused=True)\n"
    given = ", ".join(f"NamedSharding(mesh, {spec_text(each.spec)})" for each in case.arguments)
    results = "" if case.result is None else f", out_shardings=NamedSharding(mesh, {spec_text(case.result)})"
    return f"sharded = jax.jit({entry(case)}, keep_unused=True, in_shardings=({given},){results})\n"


def placed_program(case: Case) -> str:
    return HEAD + mesh_text(case) + function_text(case, placed=True) + jit_text(case)


def plain_program(case: Case) -> str:
    return HEAD + function_text(case, placed=False) + f"whole = {entry(case)}\n"


def run(text: str) -> dict[str, Any]:
    """What a text of this file defines."""
    defined: dict[str, Any] = {}
    exec(compile(text, "<hunt>", "exec"), defined)
    return defined


def every_value(case: Case) -> Callable[..., Any]:
    """The plain function, of which each value is a result."""
    return run(HEAD + function_text(case, placed=False, every_value=True))["f"]  # type: ignore[no-any-return]


def script(case: Case, seed: int) -> str:
    """A program for people: it prints what the whole program computes, and what the distributed one does."""
    shapes = [(each.dtype, each.shape, each.below, each.distinct) for each in case.arguments]
    places = ", ".join(f"NamedSharding(mesh, {spec_text(each.spec)})" for each in case.arguments)
    call = "sharded(*map(jax.device_put, args, places))"
    if case.explicit:
        call = f"(jax.set_mesh(mesh), {call})[1]"
    return "".join(
        [
            'import os\nos.environ["JAX_PLATFORMS"] = "cpu"\n',
            f'os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count={case.devices}"\n',
            placed_program(case),
            f"# arguments: {shapes}, drawn by tools.hunt.values with seed {seed}\n",
            "from tools.hunt.values import draw\n",
            f"args = draw({shapes}, {seed})\nplaces = [{places}]\n",
            function_text(case, placed=False).replace("def f(", "def whole_f(").replace("def g(", "def whole_g(")
            .replace("f(*args)", "whole_f(*args)"),
            f"print('whole'); print(jax.jit(whole_{entry(case)})(*args))\n",
            f"print('sharded'); print(np.asarray({call}))\n",
        ]
    )  # fmt: skip
