"""Declared approximations: what is around them is proved for all values that they may have, or shown to differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from hlo_verify import InputError, Verdict, check, cli, verify
from tests.support.lowering import Placed, floats

MESH = AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,))
X, W = floats((16, 8), (8, 4))
DECLARED = {"batch/mean": "stats/mean", "batch/var": "stats/var"}
GRADIENTS = {f"transpose({g})": f"transpose({f})" for g, f in DECLARED.items()}


def normalized(x: Any, mean: Any, var: Any, w: Any) -> Any:
    return ((x - mean) * lax.rsqrt(var + 1e-5)) @ w


def statistics(x: Any, scope: str) -> tuple[Any, Any]:
    with jax.named_scope(f"{scope}/mean"):
        mean = x.mean(0)
    with jax.named_scope(f"{scope}/var"):
        var = x.var(0)
    return mean, var


def network(x: Any, w: Any) -> Any:
    return normalized(x, *statistics(x, "stats"), w)


def distributed(uses: Callable[..., Any] = normalized) -> Any:
    """The network with the statistics of a device's own part of the batch, in the place of those of all of it."""

    @partial(jax.shard_map, mesh=MESH, in_specs=(P("data"), P()), out_specs=P("data"))
    def local(x: Any, w: Any) -> Any:
        return uses(x, *statistics(x, "batch"), w)

    return local


WRONG: dict[str, Callable[..., Any]] = {
    "elsewhere: a weight is doubled": lambda x, mean, var, w: normalized(x, mean, var, 2 * w),
    "the mean is added": lambda x, mean, var, w: normalized(x, -mean, var, w),
    "the two are exchanged": lambda x, mean, var, w: normalized(x, var, mean, w),
    "the variance counts for nothing": lambda x, mean, var, w: normalized(x, mean, 0 * var + 1, w),
    "the mean of one row more": lambda x, mean, var, w: normalized(x, mean + x[0] / 16, var, w),
    "a part of the variance's square root": lambda x, mean, var, w: normalized(x, mean, lax.sqrt(var), w),
}


def test_what_is_around_is_proved_and_the_first_line_says_under_what() -> None:
    report = check(network, distributed(), X, W, approximations=DECLARED, recheck=True)
    first, *_, last = str(report).splitlines()
    assert first == report.headline and first.startswith("PROVED with 2 declared approximations: batch/mean (f32[8], ")
    assert all(f"{g} (f32[8], test_approximations.py:" in first for g in DECLARED)
    assert first.count("the same on every device") == 2 and last.endswith("2 declared approximations")
    assert any("are declared to stand for are numbers, never infinite" in each for each in report.assumptions)
    assert report.verdict is Verdict.PROVED and report.recheck is not None and not report.recheck.disagreements


def test_without_it_the_statistics_differ() -> None:
    assert check(network, distributed(), X, W).verdict is Verdict.REFUTED
    one = check(network, distributed(), X, W, approximations={"batch/mean": "stats/mean"})
    assert one.verdict is Verdict.REFUTED and one.headline.startswith("REFUTED with 1 declared approximation: ")


@pytest.mark.drawn(3)
@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_are_refuted_all_the_same(mistake: str) -> None:
    report = check(network, distributed(WRONG[mistake]), X, W, approximations=DECLARED)
    assert report.verdict is Verdict.REFUTED, report
    (result,) = report.results
    assert result.witness is not None and {"stats/mean", "stats/var"} <= {name for name, _ in result.witness.inputs}
    assert "test_approximations.py" in str(report.diagnostics[0].location)
    assert any("may be any number" in each for each in report.assumptions)


def test_the_value_itself_is_what_was_declared() -> None:
    """Whatever is computed there: that is what the report's first line is for."""
    wrong = distributed(lambda x, mean, var, w: normalized(x, mean, var, w))

    @partial(jax.shard_map, mesh=MESH, in_specs=(P("data"), P()), out_specs=P("data"))
    def local(x: Any, w: Any) -> Any:
        with jax.named_scope("batch/mean"):
            mean = 7 * x[0]
        return normalized(x, mean, statistics(x, "batch")[1], w)

    assert check(network, wrong, X, W, approximations=DECLARED).verdict is Verdict.PROVED
    named = {"batch/mean[0]": "stats/mean", "batch/var": "stats/var"}
    assert check(network, local, X, W, approximations=named).verdict is Verdict.PROVED


def test_a_value_that_is_used_in_another_place_too_is_compared_there() -> None:
    """What feeds a declared value is compared where it feeds others."""

    def whole(x: Any, w: Any) -> Any:
        total = x.sum(0)
        with jax.named_scope("mean"):
            mean = total / 16
        return (x - mean) @ w + total.sum()

    @partial(jax.shard_map, mesh=MESH, in_specs=(P("data"), P()), out_specs=P("data"))
    def local(x: Any, w: Any) -> Any:
        total = x.sum(0)
        with jax.named_scope("mean"):
            mean = total / 4
        return (x - mean) @ w + lax.psum(total, "data").sum()

    @partial(jax.shard_map, mesh=MESH, in_specs=(P("data"), P()), out_specs=P("data"))
    def wrong(x: Any, w: Any) -> Any:
        total = x.sum(0)
        with jax.named_scope("mean"):
            mean = total / 4
        return (x - mean) @ w + total.sum()

    assert check(whole, local, X, W, approximations={"mean": "mean"}).verdict is Verdict.PROVED
    assert check(whole, wrong, X, W, approximations={"mean": "mean"}).verdict is Verdict.REFUTED


# Gradients


def loss(x: Any, w: Any) -> Any:
    return (network(x, w) ** 2).sum()


def gradients(scale: float = 1.0) -> Any:
    @partial(jax.shard_map, mesh=MESH, in_specs=(P("data"), P()), out_specs=(P("data"), P()), check_vma=False)
    def local(x: Any, w: Any) -> Any:
        own = lambda x, w: (normalized(x, *statistics(x, "batch"), w) ** 2).sum()  # noqa: E731
        of_x, of_w = jax.grad(own, (0, 1))(x, w)
        return of_x, scale * lax.psum(of_w, "data")

    return local


def test_gradients_through_the_value_are_others_and_have_a_name() -> None:
    forward = check(jax.grad(loss, (0, 1)), gradients(), X, W, approximations=DECLARED)
    assert [each.verdict for each in forward.results] == [Verdict.REFUTED, Verdict.PROVED]
    both = check(jax.grad(loss, (0, 1)), gradients(), X, W, approximations=DECLARED | GRADIENTS)
    assert both.verdict is Verdict.PROVED and "dimension 0 split over data" in both.headline
    wrong = check(jax.grad(loss, (0, 1)), gradients(0.25), X, W, approximations=DECLARED | GRADIENTS)
    assert [each.verdict for each in wrong.results] == [Verdict.PROVED, Verdict.REFUTED]


# Values that devices have shards of


def routed(x: Any, w: Any) -> Any:
    with jax.named_scope("routing"):
        gates = jax.nn.softmax(x @ w)
    return jnp.einsum("ne,nd->ed", gates, x), gates.sum()


def dropping(placed: Any = None, *, scale: float = 1.0) -> Any:
    """The routing of a device's own tokens, of which some are dropped."""

    @partial(jax.shard_map, mesh=MESH, in_specs=(P("data"), P()), out_specs=P())
    def local(x: Any, w: Any) -> Any:
        with jax.named_scope("dropped"):
            gates = jax.nn.softmax(x @ w)
            gates = jnp.where(jnp.cumsum(gates, 0) < 2.0, gates, 0.0)
        return lax.psum((scale * jnp.einsum("ne,nd->ed", gates, x), gates.sum()), "data")

    return local


@pytest.mark.parametrize("where", ["routing", ("routing", P("data")), "routing at P('data', None)"])
def test_a_shard_of_a_value(where: Any) -> None:
    assert check(routed, dropping(), X, W, approximations={"dropped": where}).verdict is Verdict.PROVED


def test_a_shard_of_a_value_in_a_wrong_program() -> None:
    report = check(routed, dropping(scale=2.0), X, W, approximations={"dropped": "routing"})
    assert [each.verdict for each in report.results] == [Verdict.REFUTED, Verdict.PROVED]


def test_preconditions_of_what_is_declared() -> None:
    """A value is any number, unless more is said of it."""

    def whole(x: Any) -> Any:
        with jax.named_scope("norm"):
            n = (x * x).sum()
        return x / jnp.abs(n)

    @partial(jax.shard_map, mesh=MESH, in_specs=P("data"), out_specs=P("data"))
    def local(x: Any) -> Any:
        with jax.named_scope("norm"):
            n = (x * x).sum()
        return x / n

    assert check(whole, local, X, approximations={"norm": "norm"}).verdict is Verdict.REFUTED
    report = check(whole, local, X, approximations={"norm": "norm"}, assume={"norm": "positive"})
    assert report.verdict is Verdict.PROVED and str(report).splitlines()[1] == "Given that norm is positive:"


def layered(x: Any, scope: str, layers: int = 3) -> Any:
    for _ in range(layers):
        with jax.named_scope(scope):
            mean = x.mean(0)
        x = jnp.tanh(x - mean)
    return x


def test_layers() -> None:
    @partial(jax.shard_map, mesh=MESH, in_specs=P("data"), out_specs=P("data"))
    def local(x: Any) -> Any:
        return layered(x, "batch")

    report = check(lambda x: layered(x, "stats"), local, X, approximations={"batch": "stats"})
    assert report.verdict is Verdict.PROVED and report.headline.count("stands for") == 3
    assert all(f"batch[{n}] (" in report.headline and f"stats[{n}] (" in report.headline for n in range(3))


# Programs that XLA distributes: first as they are written, then what XLA made of them


def clipped(x: Any, w: Any, scale: float = 1.0) -> Any:
    with jax.named_scope("clipped"):
        gates = jnp.clip(x @ w, -1, 1)
    return scale * gates.sum(0), gates * 2


def plain(x: Any, w: Any) -> Any:
    with jax.named_scope("gates"):
        gates = x @ w
    return gates.sum(0), gates * 2


@pytest.mark.parametrize(("scale", "verdict"), [(1.0, Verdict.PROVED), (2.0, Verdict.REFUTED)])
def test_what_xla_distributes(scale: float, verdict: Verdict) -> None:
    split, whole = NamedSharding(MESH, P("data")), NamedSharding(MESH, P())
    g = jax.jit(partial(clipped, scale=scale), in_shardings=(split, whole), out_shardings=(whole, split))
    report = check(plain, g, X, W, approximations={"clipped": "gates"}, assume={"gates": (-9, 9), "x": (-1, 1)})
    assert report.verdict is verdict and report.headline.startswith(f"{verdict} with 1 declared approximation: clipped")
    assert report.preconditions == ("x in [-1, 1)", "gates in [-9, 9)")
    assert ("what XLA made of it" in report.compared) is (verdict is Verdict.PROVED)


# The command line


def _files(tmp_path: Path, uses: Callable[..., Any] = normalized) -> list[str]:
    placed = Placed(MESH, (P("data"), P()), P("data"), [X, W])
    texts = placed.pair(network, lambda x, w: uses(x, *statistics(x, "batch"), w))
    paths = []
    for name, text in zip(("f.mlir", "g.mlir"), texts, strict=True):
        (tmp_path / name).write_text(text)
        paths.append(str(tmp_path / name))
    return paths


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [text for pair in DECLARED.items() for text in ("--approximation", " = ".join(pair))]
    assert cli.main([*_files(tmp_path), *options]) == 0
    assert capsys.readouterr().out.startswith("PROVED with 2 declared approximations: ")
    assert cli.main([*_files(tmp_path), *options, "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["approximations"]) == 2 and said["headline"].startswith("PROVED with 2")
    for name in ("sarif", "junit", "markdown"):
        assert cli.main([*_files(tmp_path), *options, "--format", name]) == 0
        assert "PROVED with 2 declared approximations: " in capsys.readouterr().out, name
    assert cli.main([*_files(tmp_path, WRONG["the mean is added"]), *options]) == 1


def test_each_device_with_a_module_of_its_own() -> None:
    """Of a module for one device, the shapes say where values lie, or an HloSharding."""
    whole = """
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.tanh %x : tensor<8xf32> loc("top/gate/tanh")
      %1 = stablehlo.add %0, %x : tensor<8xf32> loc("top/add")
      return %1 : tensor<8xf32>
    }"""
    part = """
    module attributes {mhlo.num_partitions = 4 : i32} {
    func.func @main(%x: tensor<2xf32> {mhlo.sharding = "{devices=[4]<=[4]}"})
        -> (tensor<2xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) {
      %0 = stablehlo.sine %x : tensor<2xf32> loc("top/other/sine")
      %1 = stablehlo.add %0, %x : tensor<2xf32> loc("top/add")
      return %1 : tensor<2xf32>
    }}"""
    assert verify(whole, part, approximations="other = gate").verdict is Verdict.PROVED
    stated = verify(whole, part, approximations="other = gate at {devices=[4]<=[4]}")
    assert stated.verdict is Verdict.PROVED and "placed as {devices=[4]<=[4]}" in stated.headline
    turned = verify(whole, part, approximations="other = gate at {devices=[4]3,2,1,0}")
    assert turned.verdict is Verdict.REFUTED


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a name that matches nothing": (
        lambda: check(network, distributed(), X, W, approximations={"bach/mean": "stats/mean"}),
        "bach/mean: there is no such scope in the partitioned module; there are batch/mean",
    ),
    "several values": (
        lambda: check(network, distributed(), X, W, approximations={"batch": "stats"}),
        "are not alike; name an inner scope",
    ),
    "as many as the other has not": (
        lambda: check(
            lambda x: layered(x, "a"),
            jax.shard_map(lambda x: layered(x, "b", 2), mesh=MESH, in_specs=P("data"), out_specs=P("data")),
            X,
            approximations={"b": "a"},
        ),
        "there are 3 such values in the logical module and 2 in the partitioned module",
    ),
    "a placement that does not fit": (
        lambda: check(network, distributed(), X, W, approximations={"batch/mean": ("stats/mean", P("data"))}),
        "f32[8] is no shard of f32[8]",
    ),
    "an axis that there is not": (
        lambda: check(network, distributed(), X, W, approximations={"batch/mean": ("stats/mean", P("model"))}),
        "does not fit f32[8], split over data",
    ),
    "one value twice": (
        lambda: check(
            network, distributed(), X, W, approximations={"batch/mean": "stats/mean", "batch/var": "stats/mean"}
        ),
        "are about one value of the logical module",
    ),
    "shards of which there may be several": (
        lambda: check(
            plain,
            jax.shard_map(
                plain,
                mesh=AbstractMesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2),
                in_specs=(P("x"), P(None, "y")),
                out_specs=(P("y"), P("x", "y")),
                check_vma=False,
            ),
            X,
            W,
            approximations={"gates": "gates"},
        ),
        "f32[8,2] may be one of several shards of f32[16,4]; say which, as in 'gates = gates at P('x', 'y')'",
    ),
    "one function": (
        lambda: check(distributed(), X, W, approximations=DECLARED),
        "approximations go with a logical and a partitioned module",
    ),
    "a witness file": (
        lambda: verify("a\n", "b\n", approximations="a = b", witness="w.zip"),
        "do not take the values of declared approximations",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_said_of_mistakes(mistake: str) -> None:
    run, said = MISTAKES[mistake]
    with pytest.raises(InputError) as error:
        run()
    assert said in str(error.value)


def test_a_value_in_a_loop_is_another_one_in_every_turn() -> None:
    def looped(x: Any, scope: str) -> Any:
        def turn(x: Any, _: Any) -> Any:
            with jax.named_scope(scope):
                mean = x.mean(0)
            return jnp.tanh(x - mean), None

        return lax.scan(turn, x, None, length=3)[0]

    @partial(jax.shard_map, mesh=MESH, in_specs=P("data"), out_specs=P("data"))
    def local(x: Any) -> Any:
        return looped(x, "batch")

    with pytest.raises(InputError, match="has another value in every turn of a loop"):
        check(lambda x: looped(x, "stats"), local, X, approximations={"batch": "stats"})


def test_folders_and_single_modules_take_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    f, _ = _files(tmp_path)
    assert cli.main([f, "--approximation", "a = b"]) == 2
    assert cli.main([str(tmp_path), "--approximation", "a = b"]) == 2
    assert capsys.readouterr().err.count("a logical and a partitioned module") == 2
    assert cli.main([f, f, "--approximation", "a = b", "--issue", "jax"]) == 2
    assert "what was meant is no bug" in capsys.readouterr().err
