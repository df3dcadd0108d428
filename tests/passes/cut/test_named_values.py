"""Which values a scope or a line names."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.cut.named_values import Value, values_of
from hlo_verify.passes.load.load import load
from hlo_verify.program.approximations import named
from hlo_verify.program.ir import Module

X = jax.ShapeDtypeStruct((16, 8), jnp.float32)


def module_of(function: Any, *arguments: Any) -> Module:
    lowered = jax.jit(function).trace(*(arguments or (X,))).lower(lowering_platforms=("cpu",))
    return load(lowered.as_text(debug_info=True).encode())


def found(name: str, module: Module) -> list[Value]:
    return values_of(named(name), module, "the module")


def statistics(x: Any) -> Any:
    with jax.named_scope("stats"):
        with jax.named_scope("mean"):
            m = x.mean(0)
        with jax.named_scope("var"):
            v = x.var(0)
    return jnp.tanh((x - m) * jax.lax.rsqrt(v + 1.0)).sum()


def layers(x: Any, wrap: Any = lambda f: f) -> Any:
    for n in range(3):

        def layer(x: Any, n: int = n) -> Any:
            with jax.named_scope(f"Block_{n}"), jax.named_scope("mean"):
                m = x.mean(0)
            return jnp.tanh(x - m)

        x = wrap(layer)(x)
    return (x * x).sum()


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("stats/mean", "divide"),
        ("mean", "divide"),
        ("stats/var", "select"),
        ("stats[0]", "divide"),
        ("stats[1]", "select"),
    ],
)
def test_a_scope_names_what_leaves_it(name: str, operation: str) -> None:
    (value,) = found(name, module_of(statistics))
    assert value.op.name == operation and value.type.shape == (8,)


def test_a_line_names_what_it_computes_for_others() -> None:
    module = module_of(statistics)
    (mean,) = found("stats/mean", module)
    (file, line) = mean.op.location.frames[0]
    (value,) = found(f"{file.rsplit('/', 1)[-1]}:{line}", module)
    assert value.name == mean.name
    assert found(f"cut/{file.rsplit('/', 1)[-1]}:{line}", module)[0].name == mean.name


@pytest.mark.parametrize("scope", ["stats/mean", "stats/var"])
def test_gradients_have_a_name_of_their_own(scope: str) -> None:
    module = module_of(jax.grad(statistics))
    (forward,) = found(scope, module)
    (backward,) = found(f"transpose({scope})", module)
    assert forward.type.shape == (8,) and backward.type.shape == (16, 8)


def test_layers_have_a_value_each() -> None:
    assert len(found("mean", module_of(layers))) == 3
    (second,) = found("Block_1/mean", module_of(layers))
    assert "Block_1" in second.op.location.name


def test_what_is_computed_once_more_for_gradients_is_named_too() -> None:
    once = found("Block_1/mean", module_of(jax.grad(layers)))
    twice = found("Block_1/mean", module_of(jax.grad(lambda x: layers(x, jax.checkpoint))))
    assert (len(once), len(twice)) == (1, 2)
    assert len(found("transpose(Block_1/mean)", module_of(jax.grad(lambda x: layers(x, jax.checkpoint))))) == 1


def test_a_scope_around_a_call_is_that_of_what_is_called() -> None:
    def called(x: Any) -> Any:
        with jax.named_scope("outer"):
            return jax.jit(jnp.tanh)(x)

    (value,) = found("outer", module_of(lambda x: called(x) + 1))
    assert value.op.name == "tanh"


MISTAKES = {
    "stat/mean": "there is no such scope in the module; there are stats/mean",
    "stats": "there are 2 values, [0] divide f32[8]",
    "stats[2]": "there are 2 values",
    "transpose(stats/mean)": "computes nothing there but values: stats/mean",
    "test_named_values.py:1": "no operation of the module is of that line; near it are",
    "other.py:7": "no operation of the module is of such a file; they are of test_named_values.py",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_name_of_nothing_says_what_there_is(name: str) -> None:
    with pytest.raises(InputError) as error:
        found(name, module_of(statistics))
    assert MISTAKES[name] in str(error.value)


def test_a_name_of_what_nobody_uses_says_so() -> None:
    def dead(x: Any) -> Any:
        with jax.named_scope("dead"):
            x.sum()
        return x + 1

    with pytest.raises(InputError, match=r"no such scope|nothing that it computes"):
        found("dead", module_of(dead))
