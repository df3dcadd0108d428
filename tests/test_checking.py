"""`hlo_verify.check`: two functions or one, in each form that users have them in, and what is said of mistakes."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import InputError, Verdict, check
from hlo_verify.diagnostics import Input
from hlo_verify.traced.functions import OPTIONS

MESH = AbstractMesh((4,), ("d",), axis_types=(AxisType.Auto,))
X, W = jax.ShapeDtypeStruct((16, 6), jnp.float32), jax.ShapeDtypeStruct((6, 8), jnp.float32)
SCALAR = jax.ShapeDtypeStruct((), jnp.float32)
SPLIT, WHOLE = NamedSharding(MESH, P("d")), NamedSharding(MESH, P())


def plain(x: Any, w: Any) -> dict[str, Any]:
    return {"loss": jnp.tanh(x @ w).sum(), "y": jnp.tanh(x @ w)}


def on_devices(reduce: Callable[..., Any] = lax.psum, mesh: Any = MESH) -> Callable[..., Any]:
    """`plain` by shard_map, the batch split, with so a reduction of the loss."""

    def local(x: Any, w: Any) -> dict[str, Any]:
        y = jnp.tanh(x @ w)
        return {"loss": reduce(y.sum(), "d"), "y": y}

    def distributed(x: Any, w: Any) -> Any:
        where = {} if mesh is None else {"mesh": mesh}
        return jax.shard_map(local, in_specs=(P("d"), P()), out_specs={"loss": P(), "y": P("d")}, **where)(x, w)

    return distributed


def stepped(x: Any, w: Any, rate: Any, count: Any, clip: Any, reduce: Callable[..., Any] = lambda y: y) -> Any:
    """A step of training with scalars beside its arrays, to which JAX gives a sharding over a mesh of no axes."""
    gradient = jax.tree.map(reduce, jax.grad(lambda w: jnp.square(x @ w).mean())(w))
    gradient = jnp.where(clip, jnp.clip(gradient, -1, 1), gradient)
    return w - rate / (count + 1) * gradient, count + 1


def noisy(x: Any, w: Any, key: Any, reduce: Callable[..., Any] = lambda y: y) -> Any:
    return reduce(jnp.square(x @ w).mean()) + jax.random.bits(key, ())


def by_hand(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a batch and of what is the same on all devices, with means over the batch."""

    def distributed(x: Any, *others: Any) -> Any:
        local = partial(function, reduce=partial(lax.pmean, axis_name="d"))
        specs = (P("d"), *(P() for _ in others))
        return jax.shard_map(local, mesh=MESH, in_specs=specs, out_specs=P(), check_vma=False)(x, *others)

    return distributed


def annotated(function: Callable[..., Any] = plain) -> Any:
    return jax.jit(function, in_shardings=(SPLIT, WHOLE), out_shardings={"loss": WHOLE, "y": SPLIT})


def placed(array: Any, sharding: NamedSharding) -> Any:
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)


FORMS: dict[str, Callable[[], hlo_verify.Report]] = {
    "shard_map": lambda: check(plain, on_devices(), X, W),
    "both jitted": lambda: check(jax.jit(plain), jax.jit(on_devices()), X, W),
    "by name": lambda: check(plain, on_devices(), X, w=W),
    "under a mesh": lambda: check(plain, on_devices(mesh=None), X, W, mesh={"d": 4}),
    "under an abstract mesh": lambda: check(plain, on_devices(mesh=None), X, W, mesh=MESH),
    "arrays": lambda: check(plain, on_devices(), np.ones((16, 6), np.float32), jnp.ones((6, 8))),
    "traced": lambda: check(plain, jax.jit(on_devices()).trace(X, W), X, W),
    "bound arguments": lambda: check(
        lambda x: plain(x, np.ones((6, 8), np.float32)),
        partial(jax.jit(lambda w, x: on_devices()(x, w)), np.ones((6, 8), np.float32)),
        X,
    ),
    "bound options": lambda: check(
        plain, partial(jax.jit(lambda k, x, w: on_devices()(x, w), static_argnames="k"), 3), X, W
    ),
    "scalars": lambda: check(stepped, by_hand(stepped), X, W, SCALAR, jax.ShapeDtypeStruct((), jnp.int32), False),
    "numbers": lambda: check(stepped, by_hand(stepped), X, W, 0.5, 3, np.bool_(True)),
    "a key": lambda: check(noisy, by_hand(noisy), X, W, jax.random.key(0)),
    "gradients": lambda: check(
        jax.grad(lambda w, x: plain(x, w)["loss"]), jax.grad(lambda w, x: on_devices()(x, w)["loss"]), W, X
    ),
}

PARTITIONED: dict[str, Callable[[], hlo_verify.Report]] = {
    "annotated": lambda: check(plain, annotated(), X, W),
    "arguments that are distributed": lambda: check(plain, plain, placed(X, SPLIT), placed(W, WHOLE)),
    "constraints under a mesh": lambda: check(
        plain, lambda x, w: plain(lax.with_sharding_constraint(x, P("d")), w), X, W, mesh={"d": 4}
    ),
    "regions and constraints": lambda: check(
        plain, lambda x, w: on_devices()(lax.with_sharding_constraint(x, SPLIT), w), X, W
    ),
    "lowered": lambda: check(plain, annotated().trace(X, W).lower(lowering_platforms=("cpu",)), X, W),
}


def test_functions_by_hand_are_proved() -> None:
    for name, form in FORMS.items():
        report = form()
        assert (report.verdict, report.devices) == (Verdict.PROVED, 4), f"{name}: {report}"
        assert "manual regions leave nothing to XLA" in report.compared


@pytest.mark.drawn(2)
@pytest.mark.parametrize("form", PARTITIONED)
def test_functions_that_xla_distributes_are_proved(form: str) -> None:
    report = PARTITIONED[form]()
    assert (report.verdict, report.devices) == (Verdict.PROVED, 4), str(report)
    assert report.compared.startswith("the reference with the partitioned one")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("wrong", [lax.pmean, lax.pmax, lambda y, axis: lax.psum(2 * y, axis)])
def test_a_wrong_function_is_refuted(wrong: Callable[..., Any]) -> None:
    report = check(plain, on_devices(wrong), X, W)
    assert report.results["loss"].verdict is Verdict.REFUTED
    assert report.results["y"].verdict is Verdict.PROVED


def test_another_function_that_xla_distributes_is_refuted() -> None:
    """What XLA makes of `g` is right, and `g` is not what was asked for."""
    report = check(lambda x, w: {**plain(x, w), "loss": plain(x, w)["loss"] / 16}, annotated(), X, W)
    assert [result.verdict for result in report.results] == [Verdict.REFUTED, Verdict.PROVED]


def test_shardings_that_the_reference_states_too_have_to_agree() -> None:
    assert check(annotated(), annotated(), X, W).verdict is Verdict.PROVED
    other = jax.jit(plain, in_shardings=(WHOLE, WHOLE), out_shardings={"loss": WHOLE, "y": WHOLE})
    with pytest.raises(InputError, match="place it differently"):
        check(other, annotated(), X, W)


def test_one_function_with_what_xla_makes_of_it() -> None:
    for report in (check(annotated(), X, W), check(plain, placed(X, SPLIT), placed(W, WHOLE))):
        assert (report.verdict, report.devices) == (Verdict.PROVED, 4)
    named = jax.jit(lambda x, kind: x + 1, in_shardings=SPLIT, out_shardings=SPLIT, static_argnames="kind")
    assert check(named, X, "a string").verdict is Verdict.PROVED


def test_modules_are_kept(tmp_path: Path) -> None:
    check(plain, on_devices(), X, W, keep=tmp_path / "by hand")
    assert sorted(path.name for path in (tmp_path / "by hand").iterdir()) == ["logical.mlir", "partitioned.mlir"]
    check(plain, annotated(), X, W, keep=tmp_path / "xla")
    kept = [tmp_path / "xla" / name for name in ("logical.mlir", "annotated.hlo", "partitioned.hlo")]
    assert all(path.is_file() for path in kept) and "sdy.sharding" not in kept[0].read_text()


def test_arguments_that_one_function_does_not_use() -> None:
    """They are matched by position: these two use an argument of the same type each, and not the same."""
    split = {"mesh": MESH, "in_specs": P("d"), "out_specs": P("d")}
    first, other = (jax.jit(jax.shard_map(lambda x, y, n=n: (x, y)[n], **split)) for n in range(2))
    assert check(lambda x, y: x, first, X, X).verdict is Verdict.PROVED
    assert check(lambda x, y: x, other, X, X).verdict is Verdict.REFUTED
    plainly = jax.jit(lambda x, y: x)
    lowered = [each.trace(X, X).lower(lowering_platforms=("cpu",)) for each in (plainly, first, other)]
    assert hlo_verify.verify(lowered[0], lowered[1]).verdict is Verdict.PROVED
    assert hlo_verify.verify(plainly.trace(X, X), lowered[1]).verdict is Verdict.PROVED
    for reference in (lowered[0], plainly.trace(X, X)):
        with pytest.raises(InputError, match=r"positions \[0\] are left, of the other \[1\]"):
            hlo_verify.verify(reference, lowered[2])


TREE = r"returns result\['loss'\].*which the second function.*does not: they return 2 and 1 results"
MISTAKES: dict[str, tuple[Callable[[], object], Input, str]] = {
    "swapped": (
        lambda: check(on_devices(), plain, X, W),
        Input.NOTHING_TO_PARTITION,
        r"the first function \(distributed\) is distributed and the second function \(plain\) is not: the reference",
    ),
    "not distributed": (
        lambda: check(plain, jax.jit(plain), X, W),
        Input.NOTHING_TO_PARTITION,
        r"the second function \(plain\) is not distributed: every device would compute all of it",
    ),
    "not distributed, with a scalar": (
        lambda: check(lambda x, n: x * n, lambda x, n: n * x, X, SCALAR),
        Input.NOTHING_TO_PARTITION,
        "the second function is not distributed",
    ),
    "not distributed, with a key": (
        lambda: check(noisy, noisy, X, W, jax.random.key(0)),
        Input.NOTHING_TO_PARTITION,
        r"the second function \(noisy\) is not distributed",
    ),
    "one function that is not distributed": (
        lambda: check(plain, X, W),
        Input.NOTHING_TO_PARTITION,
        r"the function \(plain\) is not distributed",
    ),
    "too few arguments": (
        lambda: check(plain, on_devices(), X),
        Input.NOT_TRACED,
        r"the first function \(plain\) cannot be traced: TypeError: .*missing 1 required positional argument: 'w'",
    ),
    "shapes that do not fit": (lambda: check(plain, on_devices(), X, X), Input.NOT_TRACED, "cannot be traced: .*16"),
    "another tree": (
        lambda: check(plain, lambda x, w: {"y": on_devices()(x, w)["y"]}, X, W),
        Input.NOT_ALIKE,
        TREE,
    ),
    "another shape": (
        lambda: check(
            lambda x: x.sum(0),
            jax.shard_map(lambda x: lax.psum(x.sum(0), "d"), mesh=MESH, in_specs=P("d"), out_specs=P("d")),
            X,
        ),
        Input.NOT_ALIKE,
        r"result is float32\[6\] of the first function and float32\[24\] of the second.*puts side by side",
    ),
    "another element type": (
        lambda: check(plain, lambda x, w: jax.tree.map(lambda y: y.astype(jnp.bfloat16), on_devices()(x, w)), X, W),
        Input.NOT_ALIKE,
        r"result\['loss'\] is float32\[\] of the first function \(plain\) and bfloat16\[\].*convert one",
    ),
    "other arguments": (
        lambda: check(plain, jax.jit(lambda *all: on_devices()(*all[:2])).trace(X, W, X), X, W),
        Input.NOT_ALIKE,
        "takes 2 arrays and the second function 3 arrays",
    ),
    "no mesh": (
        lambda: check(plain, on_devices(mesh=None), X, W),
        Input.NOT_TRACED,
        r"the second function \(distributed\) cannot be traced: .*mesh=, of devices that need not be there",
    ),
    "more devices than there are": (
        lambda: check(plain, lambda x, w: on_devices(mesh=jax.make_mesh((4096,), ("d",)))(x, w), X, W),
        Input.NOT_TRACED,
        "cannot be traced: ValueError: .*4096.*mesh=",
    ),
    "specs under a mesh without devices": (
        lambda: check(plain, jax.jit(plain, in_shardings=(P("d"), P())), X, W, mesh={"d": 4}),
        Input.NOT_TRACED,
        r"(?m)the second function \(plain\) cannot be traced: .*or NamedShardings$",
    ),
    "a mesh that is none": (
        lambda: check(plain, on_devices(mesh=None), X, W, mesh=4),
        Input.USAGE,
        "mesh is a int; pass a jax.sharding.Mesh",
    ),
    "no function": (lambda: check(3, X), Input.USAGE, "the function is a int: pass a function"),
    "a compiled function alone": (
        lambda: check(jax.jit(plain).lower(X, W).compile()),
        Input.NOTHING_TO_PARTITION,
        "the function is not distributed",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_one_message(mistake: str) -> None:
    wrong, code, message = MISTAKES[mistake]
    with pytest.raises(InputError, match=message) as raised:
        wrong()
    assert raised.value.code is code


def test_a_traceback_is_the_users() -> None:
    """No frame is inside of hlo-verify, of what is raised where a function is traced and of what is raised about it."""

    def broken(x: Any, w: Any) -> Any:
        return x @ w @ w

    def files(error: BaseException) -> list[str]:
        return [Path(each.filename).name for each in traceback.extract_tb(error.__traceback__)]

    for wrong in (
        lambda: check(plain, broken, X, W),
        lambda: check(plain, on_devices(), X),
        lambda: check(plain, on_devices(), X, W, assume={"y": "positive"}),
        lambda: hlo_verify.verify("nowhere.mlir"),
    ):
        with pytest.raises(InputError) as raised:
            wrong()
        assert files(raised.value) == ["test_checking.py"] * 2 + ["tracebacks.py"]
        cause = raised.value.__cause__
        assert cause is None or files(cause)[0] == "test_checking.py"


def test_options_that_may_be_meant() -> None:
    signature = inspect.signature(check)
    assert tuple(name for name, each in signature.parameters.items() if each.kind is each.KEYWORD_ONLY) == OPTIONS
