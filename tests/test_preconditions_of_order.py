"""What is said of the order of elements, and of what divides them: proved with it, and with nothing less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from hlo_verify import InputError, Verdict, cli, replay, verify
from hlo_verify.diagnostics import Input
from hlo_verify.evaluate import allows
from hlo_verify.evaluate.arguments import random_argument
from hlo_verify.evaluate.blocks import dense, of_dense
from hlo_verify.program.allowed_values import Values
from hlo_verify.program.preconditions import parse, read

X, P, N = (
    jax.ShapeDtypeStruct((8, 3), jnp.float32),
    jax.ShapeDtypeStruct((8,), jnp.int32),
    jax.ShapeDtypeStruct((), jnp.int32),
)
S = jax.ShapeDtypeStruct((8,), jnp.float32)
Function = Callable[..., Any]


def traced(function: Function, *arguments: Any) -> Any:
    return jax.jit(function, keep_unused=True).trace(*arguments)


def put(p: Any, x: Any) -> Any:
    return jnp.zeros_like(x).at[p].set(x)


PAIRS: dict[str, tuple[Function, Function, tuple[Any, ...], Any, list[Any]]] = {
    "scattered and gathered by a permutation": (
        lambda p, x: x,
        lambda p, x: put(p, x)[p],
        (P, X),
        "permutation",
        [(0, 8), {"range": (0, 9), "distinct": True}],
    ),
    "gathered and scattered by a permutation": (
        lambda p, x: x,
        lambda p, x: put(p, x[p]),
        (P, X),
        "permutation",
        [(0, 8), {"range": (0, 9), "distinct": True}],
    ),
    "a sum over a permutation": (
        lambda p, x: jnp.sum(x, axis=0),
        lambda p, x: jnp.sum(x[p], axis=0),
        (P, X),
        "permutation",
        [(0, 8)],
    ),
    "a permutation in order": (
        lambda p: jnp.arange(8, dtype=jnp.int32),
        jnp.sort,
        (P,),
        "permutation",
        [(0, 8), {"range": (0, 9), "distinct": True}],
    ),
    "set and added": (
        lambda p, x: jnp.zeros_like(x).at[p].add(x),
        put,
        (P, X),
        {"range": (0, 20), "distinct": True},
        [(0, 20)],
    ),
    "what is in order": (lambda p: p, jnp.sort, (S,), "sorted", ["distinct"]),
    "the order of what is in order": (
        lambda p: jnp.arange(8, dtype=jnp.int32),
        lambda p: jnp.argsort(p, stable=True).astype(jnp.int32),
        (P,),
        "sorted",
        ["distinct"],
    ),
    "elements of what is in order": (
        lambda p: jnp.ones((7,), bool),
        lambda p: p[:-1] <= p[1:],
        (P,),
        "sorted",
        ["distinct"],
    ),
    "a quotient of a multiple": (
        lambda p: p,
        lambda p: p // 8 * 8,
        (P,),
        {"multiple_of": 16},
        [{"multiple_of": 4}],
    ),
    "a remainder of a multiple": (lambda p: p * 0, lambda p: p % 4, (P,), {"multiple_of": 4}, [{"multiple_of": 6}]),
    "rows from a multiple on": (
        lambda p, x: lax.dynamic_slice_in_dim(x, p, 2),
        lambda p, x: x.reshape(4, 2, 3)[p // 2],
        (N, X),
        {"multiple_of": 2, "range": (0, 8)},
        [(0, 8)],
    ),
}
"""By what is known: a pair, arguments, what of the first makes it equal, and what does not."""


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_said_enters_a_proof(name: str) -> None:
    first, second, arguments, enough, less = PAIRS[name]
    pair = traced(first, *arguments), traced(second, *arguments)
    found = verify(*pair, devices=1, assume={"p": enough}, refute=False)
    assert found.verdict is Verdict.PROVED, found
    for each in less:
        assert verify(*pair, devices=1, assume={"p": each}, refute=False).verdict is Verdict.UNKNOWN, each


B = jax.ShapeDtypeStruct((8, 8), jnp.int32)
DIFFERENT: dict[str, tuple[Function, Function, tuple[Any, ...], Any]] = {
    "permuted": (lambda p, x: x, lambda p, x: x[p], (P, X), "permutation"),
    "scattered": (lambda p, x: x[p], put, (P, X), "permutation"),
    "permuted twice": (lambda p, x: x, lambda p, x: x[p][p], (P, X), "permutation"),
    "a weighted sum": (
        lambda p, x: jnp.arange(8.0) @ x,
        lambda p, x: jnp.arange(8.0) @ x[p],
        (P, X),
        "permutation",
    ),
    "a part of a permutation": (lambda p, x: x[:4].sum(0), lambda p, x: x[p[:4]].sum(0), (P, X), "permutation"),
    "the order of a permutation": (lambda p: p, jnp.argsort, (P,), "permutation"),
    "in the other order": (lambda p: p, lambda p: -jnp.sort(-p), (S,), "sorted"),
    "along another dimension": (lambda p: p, lambda p: jnp.sort(p, axis=0), (B,), "sorted"),
    "each less than the next": (
        lambda p: jnp.ones((7,), bool),
        lambda p: p[:-1] < p[1:],
        (P,),
        "sorted",
    ),
    "the next no greater": (lambda p: jnp.ones((7,), bool), lambda p: p[1:] <= p[:-1], (P,), ["sorted", "distinct"]),
    "in no order": (lambda p: jnp.ones((7,), bool), lambda p: p[:-1] <= p[1:], (P,), "distinct"),
    "in several rows": (
        lambda p: jnp.zeros((7, 8), bool),
        lambda p: p[:-1] == p[1:],
        (B,),
        {"distinct": True, "range": (0, 20)},
    ),
    "a quotient": (lambda p: p // 4, lambda p: p // 8 * 2, (P,), {"multiple_of": 4}),
    "half of it": (lambda p: p // 2, lambda p: p, (P,), {"multiple_of": 4}),
    "a product that wraps": (lambda p: p, lambda p: p * 8 // 8, (P,), {"multiple_of": 4}),
}
"""Pairs that differ under what is said of `p`."""


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_all_the_same_is_not_proved(name: str) -> None:
    first, second, arguments, said = DIFFERENT[name]
    pair = traced(first, *arguments), traced(second, *arguments)
    report = verify(*pair, devices=1, assume={"p": said}, refute=False)
    assert report.verdict is Verdict.UNKNOWN
    assert "of what is said of p, the order and divisors enter proofs in the places alone" in report.assumptions[-1]


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_not_proved_differs_for_inputs_as_said(name: str) -> None:
    """The pairs above do differ: for some input that is as said."""
    first, second, arguments, said = DIFFERENT[name]
    values = read({"p": said})[0].values
    dtype = {"float32": "f32", "int32": "i32"}[str(arguments[0].dtype)]
    values = values.of_dimension(8).of_type(dtype)
    for seed in range(8):
        drawn = random_argument(arguments[0].shape, dtype, np.random.default_rng(seed), assumed=values, edges=True)
        assert allows(values, drawn)
        p = dense(drawn, 0).astype(arguments[0].dtype)
        x = [np.random.default_rng(0).normal(size=each.shape).astype(np.float32) for each in arguments[1:]]
        if not np.array_equal(first(jnp.asarray(p), *x), second(jnp.asarray(p), *x)):
            return
    raise AssertionError("no difference was seen")


def test_a_second_check_says_what_it_could_not_look_at() -> None:
    first, second, arguments, enough, _ = PAIRS["scattered and gathered by a permutation"]
    found = verify(traced(first, *arguments), traced(second, *arguments), devices=1, assume={"p": enough}, recheck=True)
    assert found.verdict is Verdict.PROVED
    assert found.recheck is not None and not found.recheck.disagreements


def test_a_witness_is_of_what_is_said(tmp_path: Path) -> None:
    """`p` sorted and even: the two differ, and do so for such inputs."""
    pair = traced(lambda p: p, P), traced(lambda p: p + (p[7] >= 20), P)
    assume = ["p in [0, 40) and a multiple of 2 and sorted and distinct"]
    found = verify(*pair, devices=1, assume=assume, witness=tmp_path / "w")
    assert found.verdict is Verdict.REFUTED
    assert found.preconditions == ("p in [0, 39) and a multiple of 2 and sorted and distinct",)
    assert replay(tmp_path / "w").verdict is Verdict.REFUTED


SAID = {
    "p is a permutation": Values(0, 8, (False, True), distinct=True, permutation=True),
    "p is sorted": Values(-100, 100, (False, True), ascending=True),
    "p in [0, 9) and distinct": Values(0, 9, (False, True), distinct=True),
    "p is a multiple of 3": Values(-99, 100, (False, True), multiple=3),
}


@pytest.mark.parametrize("text", SAID)
def test_what_is_drawn_is_what_is_said(text: str) -> None:
    assumed = SAID[text]
    for seed in range(20):
        drawn = random_argument(
            (2, 8), "i32", np.random.default_rng(seed), assumed=assumed, detail=1 + seed % 4, edges=seed % 3 == 0
        )
        assert allows(assumed, drawn), drawn
    assert str(parse(text)).endswith(str(read({"p": text.removeprefix("p ").removeprefix("is ")})[0].values))


WRONG = {
    "p is a permutation": [[0, 1, 2, 3, 4, 5, 6, 6], [1, 2, 3, 4, 5, 6, 7, 8]],
    "p is sorted": [[0, 1, 2, 3, 4, 5, 7, 6]],
    "p in [0, 9) and distinct": [[0, 1, 2, 3, 4, 5, 6, 0], [9, 1, 2, 3, 4, 5, 6, 7]],
    "p is a multiple of 3": [[0, 3, 6, 9, 12, 15, 18, 20]],
}


@pytest.mark.parametrize("text", WRONG)
def test_other_inputs_are_none(text: str) -> None:
    for each in WRONG[text]:
        assert not allows(SAID[text], of_dense(np.array([each, each])))
        assert not allows(SAID[text], of_dense(np.array([np.arange(8) * 3 % 8, each])))


REFUSED = {
    "too few numbers": ({"p": {"range": (0, 7), "distinct": True}}, "no input satisfies"),
    "a permutation within less": ({"p": ["permutation", (0, 7)]}, "no input satisfies"),
    "no multiple": ({"p": {"range": (1, 5), "multiple_of": 8}}, "no number of argument p"),
    "a permutation of floats": ({"x": "permutation"}, "only integers are that"),
    "one number": ({"n": "sorted"}, "is one number"),
    "no positive integer": ({"p": {"multiple_of": 0}}, "multiples of a positive integer"),
    "a key that is none": ({"p": {"unique": True}}, "a table has range, multiple_of"),
    "a word that is none": ("p is shuffled", "write 'NAME in"),
    "one value for many": ({"x": {"range": (2.0, 2.5), "distinct": False}}, "a table has range"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused(case: str) -> None:
    assume, message = REFUSED[case]
    module = traced(lambda p, x, n: (p, x, n), P, X, N)
    with pytest.raises(InputError, match=message) as raised:
        verify(module, module, devices=1, assume=assume)
    assert raised.value.code is Input.PRECONDITION


def test_the_command_line_and_files_take_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, arguments, _, _ = PAIRS["a remainder of a multiple"]
    for name, function in (("a", first), ("b", second)):
        (tmp_path / f"{name}.mlir").write_text(jax.jit(function).lower(*arguments).as_text(debug_info=True))
    (tmp_path / "s.toml").write_text("[mesh]\nd = 1\n[assume]\np = { multiple_of = 8 }\n")
    files = [str(tmp_path / "a.mlir"), str(tmp_path / "b.mlir"), "--devices", "1"]
    assert cli.main([*files, "--assume", "p is a multiple of 4"]) == 0
    assert "p in [-2147483648, 2147483645) and a multiple of 4" in capsys.readouterr().out
    assert cli.main([*files, "--shardings", str(tmp_path / "s.toml")]) == 0
