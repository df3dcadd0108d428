"""What stands for other operations computes what its own definition says: written in numpy here, or run by XLA."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import hlo_verify
from hlo_verify import custom_calls
from hlo_verify.evaluate import dense, evaluate
from hlo_verify.evaluate.blocks import of_devices
from hlo_verify.passes.load.load import load
from hlo_verify.passes.read.neuron_calls import MEANINGS
from hlo_verify.xla.execute import Executor

Array = npt.NDArray[Any]
TYPES = {"float64": "f64", "float32": "f32", "int64": "i64", "uint32": "ui32"}


def kind(array: Array) -> str:
    return f"tensor<{''.join(f'{n}x' for n in array.shape)}{TYPES[str(array.dtype)]}>"


def module(operation: str, arguments: list[Array], results: list[Array]) -> str:
    """A function that returns what an operation, `NAME {attributes}`, gives for arguments of such types."""
    given = ", ".join(f"%a{n}: {kind(a)}" for n, a in enumerate(arguments))
    names = ", ".join(f"%a{n}" for n in range(len(arguments)))
    kinds, wanted = ", ".join(map(kind, arguments)), ", ".join(map(kind, results))
    name, _, attributes = operation.partition(" ")
    found = ", ".join(f"%r#{n}" for n in range(len(results))) if len(results) > 1 else "%r"
    return (
        f"module @m {{\nfunc.func public @main({given}) -> ({wanted}) {{\n"
        f'%r{f":{len(results)}" if len(results) > 1 else ""} = "stablehlo.{name}"({names}) {attributes} : '
        f"({kinds}) -> ({wanted})\nreturn {found} : {wanted}\n}}\n}}\n"
    )


def call(target: str, config: str) -> str:
    return f'custom_call {{call_target_name = "{target}", backend_config = "{config}"}}'


def evaluated(text: str, arguments: list[Array]) -> list[Array]:
    found = evaluate(load(text), [of_devices(each[None]) for each in arguments], 1)
    assert not found.unknown
    return [dense(blocks, 0) for blocks in found.results if blocks is not None]


X = np.random.default_rng(0).normal(size=(3, 5, 4))
Y, W = np.random.default_rng(1).normal(size=X.shape), np.random.default_rng(2).normal(size=5)
TIED = np.array([[1.0, 3.0, 3.0, -2.0], [5.0, 5.0, -2.0, -2.0]])
erfs = np.vectorize(erf)


def softmax(x: Array, axis: int) -> Array:
    powers: Array = np.exp(x)
    return powers / powers.sum(axis, keepdims=True)


def gelu(x: Array) -> Array:
    return np.asarray(x * (1 + erfs(x / np.sqrt(2))) / 2)


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def slope(function: Callable[[Array], Array], x: Array) -> Array:
    return (function(x + 1e-6) - function(x - 1e-6)) / 2e-6


def softmax_slope(g: Array, x: Array, axis: int) -> Array:
    """How `sum(g * softmax(x))` grows with each element of x."""
    found = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[index] = 1e-6
        found[index] = ((softmax(x + step, axis) - softmax(x - step, axis)) * g).sum() / 2e-6
    return found


CUBIC = np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)

CASES: dict[str, tuple[str, list[Array], list[Array]]] = {
    "AwsNeuronTransferWithStaticRing": ("", [X], [X]),
    "AwsNeuronLNCShardingConstraint": ("", [X], [X]),
    "AwsNeuronModuleMarkerStart-Forward": ("", [X, Y], [X, Y]),
    "AwsNeuronModuleMarkerStart-Backward": ("", [X], [X]),
    "AwsNeuronModuleMarkerEnd-Forward": ("", [X], [X]),
    "AwsNeuronModuleMarkerEnd-Backward": ("", [X], [X]),
    "NeuronBoundaryMarker-Start": ("", [X], [X]),
    "NeuronBoundaryMarker-End": ("", [X], [X]),
    "AwsNeuronRmsNorm": (
        "1",
        [X, W, np.array(0.25)],
        [X / np.sqrt((X**2).mean(1, keepdims=True) + 0.25) * W[:, None]],
    ),
    "AwsNeuronSoftmax": ("1", [X], [softmax(X, 1)]),
    "AwsNeuronSoftmaxBackward": ("2", [Y, softmax(X, 2)], [softmax_slope(Y, X, 2)]),
    "AwsNeuronErf": ("", [X], [erfs(X)]),
    "AwsNeuronGelu": ("", [X], [gelu(X)]),
    "AwsNeuronGeluApprxTanh": ("", [X], [X / 2 * (1 + np.tanh(CUBIC))]),
    "AwsNeuronGeluBackward": ("", [X], [slope(gelu, X)]),
    "AwsNeuronSilu": ("", [X], [silu(X)]),
    "AwsNeuronSiluBackward": ("", [X], [slope(silu, X)]),
    "AwsNeuronArgMax": ("1", [TIED], [np.array([1, 0], np.uint32)]),
    "AwsNeuronArgMin": ("1", [TIED], [np.array([3, 2], np.int64)]),
    "AwsNeuronTopK": (
        "2",
        [TIED],
        [np.array([[3.0, 3.0], [5.0, 5.0]]), np.array([[1, 2], [0, 1]], np.uint32)],
    ),
}


def test_every_meaning_has_a_case() -> None:
    assert CASES.keys() | {"AwsNeuronCollectiveMatmul"} == MEANINGS.keys()


def product_of_ranks(dim: int, ranks: int = 2, groups: int = 1) -> str:
    """Of weights [2, 4] with x [4, 3] or, transposed, [3, 4]."""
    config = f"rhs_contracting_dim={dim},tp_degree={ranks},num_groups={groups},use_sb_to_sb=0"
    weights, x = np.zeros((2, 4)), np.zeros((4, 3) if dim == 0 else (3, 4))
    return module(call("AwsNeuronCollectiveMatmul", config), [weights, x], [np.zeros((2 * ranks, 3))])


@pytest.mark.parametrize("dim", [0, 1])
def test_a_product_with_the_weights_of_all_ranks(dim: int) -> None:
    text = product_of_ranks(dim).replace("module @m", "module @m attributes {mhlo.num_replicas = 2 : i32}")
    generator = np.random.default_rng(3)
    weights, x = generator.normal(size=(2, 2, 4)), generator.normal(size=(2, 4, 3) if dim == 0 else (2, 3, 4))
    found = evaluate(load(text), [of_devices(weights), of_devices(x)], 2)
    assert not found.unknown
    [blocks] = found.results
    assert blocks is not None
    for rank in range(2):
        expected = weights.reshape(4, 4) @ (x[rank] if dim == 0 else x[rank].T)
        np.testing.assert_allclose(dense(blocks, rank), expected)


@pytest.mark.parametrize(
    "text",
    [
        product_of_ranks(0, groups=2),
        product_of_ranks(0).replace("rhs_contracting_dim=0,", ""),
        product_of_ranks(0).replace("tp_degree=2", "tp_degree=4"),
        product_of_ranks(0).replace("rhs_contracting_dim=0", "rhs_contracting_dim=1"),
    ],
    ids=["several groups", "no dimension", "other results", "other operands"],
)
def test_other_products_of_ranks_stay(text: str) -> None:
    assert [op.name for op in load(text).main.ops] == ["custom_call"]


@pytest.mark.drawn(10)
@pytest.mark.parametrize("target", CASES)
def test_a_custom_call_of_neurons(target: str) -> None:
    config, arguments, wanted = CASES[target]
    text = module(call(target, config), arguments, wanted)
    assert any(target in note for note in load(text).notes)
    for found, expected in zip(evaluated(text, arguments), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("AwsNeuronSoftmax", [X]),
        ("AwsNeuronRmsNorm", [X, W]),
        ("AwsNeuronNoSuchCall", [X]),
        ("AwsNeuronCollectiveMatmul", [X]),
    ],
    ids=["no axis", "no epsilon", "unknown", "one that communicates"],
)
def test_what_is_not_understood_stays(operation: str, arguments: list[Array]) -> None:
    loaded = load(module(call(operation, ""), arguments, [X]))
    assert [op.name for op in loaded.main.ops] == ["custom_call"] and not loaded.notes


@pytest.mark.parametrize("said", ["has_side_effect = true", "called_computations = [@other]"])
@pytest.mark.parametrize(("target", "stays"), [("AwsNeuronErf", True), ("NeuronBoundaryMarker-Start", False)])
def test_what_does_more_than_it_means_stays(target: str, stays: bool, said: str) -> None:
    text = module(call(target, ""), [X], [X]).replace("backend_config", f"{said}, backend_config")
    assert said in text
    other = f"func.func private @other(%a: {kind(X)}) -> {kind(X)} {{ return %a : {kind(X)} }}"
    end = text.rindex("}")
    loaded = load(text[:end] + other + text[end:])
    assert ([op.name for op in loaded.main.ops] == ["custom_call"]) is stays


def test_what_users_say_goes_first() -> None:
    hlo_verify.register_custom_call("AwsNeuronErf", lambda x: -x)
    try:
        assert [op.name for op in load(module(call("AwsNeuronErf", ""), [X], [X])).main.ops] == ["custom_call"]
    finally:
        custom_calls.forget_custom_call("AwsNeuronErf")


def test_operations_have_the_line_of_the_call() -> None:
    text = module(call("AwsNeuronGelu", ""), [X], [X]).replace(
        f"({kind(X)}) -> ({kind(X)})\n", f'({kind(X)}) -> ({kind(X)}) loc("gelu"("model.py":7:0))\n'
    )
    assert {str(op.location) for op in load(text).main.ops} == {"model.py:7"}


F = [each.astype(np.float32) for each in (X, W, W + 1, W / 4, W * W + 1, Y)]
NUMBERS = "{epsilon = 0.25 : f32, feature_index = 1 : i64}"


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("name", "arguments", "results"),
    [
        ("batch_norm_inference", [F[0], F[1], F[2], F[3], F[4]], [F[0]]),
        ("batch_norm_training", [F[0], F[1], F[2]], [F[0], F[1], F[1]]),
        ("batch_norm_grad", [F[0], F[1], F[3], F[4], F[5]], [F[0], F[1], F[1]]),
    ],
)
def test_batch_normalization(name: str, arguments: list[Array], results: list[Array]) -> None:
    text = module(f"{name} {NUMBERS}", arguments, results)
    with Executor(1) as xla:
        wanted = xla.run(text, [each[None] for each in arguments])
    for found, expected in zip(evaluated(text, arguments), wanted, strict=True):
        np.testing.assert_allclose(found, expected[0], rtol=1e-4, atol=1e-5)
