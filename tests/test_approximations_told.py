"""What the first line says of declared approximations: how many values, which pair, and whether a result is one."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from hlo_verify import Verdict, check
from tests.support.lowering import floats

MESH = AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,))
(X,) = floats((16, 8))


def test_the_first_line_counts_values_and_says_which_result_is_one() -> None:
    """What is declared of more values than one, or of all of a result, is more than it looks like."""

    def whole(x: Any) -> Any:
        with jax.named_scope("stats"):
            mean = x.mean(0)
        return jnp.tanh(jnp.tanh(x - mean) - mean), mean

    @partial(jax.shard_map, mesh=MESH, in_specs=P("data"), out_specs=(P("data"), P()), check_vma=False)
    def local(x: Any) -> Any:
        with jax.named_scope("batch"):
            mean = x.mean(0)
        for _ in range(2):
            with jax.named_scope("batch"):
                of_layer = x.mean(0)
            x = jnp.tanh(x - of_layer)
        return x, mean

    report = check(whole, local, X, approximations={"batch": "stats"})
    assert report.verdict is Verdict.PROVED and report.headline.count("stands for") == 1
    assert "batch (3 values, f32[8], " in report.headline and report.headline.endswith(", and is all of result 1")


def test_tangents_have_the_scope_of_their_value_and_a_number() -> None:
    """A wrong tangent of a declared value is as declared as that is, and compared where the number says so."""

    @jax.custom_jvp
    def mean(x: Any) -> Any:
        return x.sum(0) / 4

    mean.defjvp(lambda x, t: (mean(x[0]), (7 * t[0]).sum(0) / 4))

    def centred(x: Any, scope: str, of: Any) -> Any:
        with jax.named_scope(scope):
            m = of(x)
        return x - m

    def whole(x: Any, t: Any) -> Any:
        return jax.jvp(lambda x: centred(x, "stats", lambda x: x.mean(0)), (x,), (t,))

    @partial(jax.shard_map, mesh=MESH, in_specs=(P("data"), P("data")), out_specs=(P("data"), P("data")))
    def local(x: Any, t: Any) -> Any:
        return jax.jvp(lambda x: centred(x, "batch", mean), (x,), (t,))

    both = check(whole, local, X, X, approximations={"batch": "stats"})
    assert both.verdict is Verdict.PROVED and "batch[1] (" in both.headline
    one = check(whole, local, X, X, approximations={"batch[0]": "stats[0]"})
    assert [each.verdict for each in one.results] == [Verdict.PROVED, Verdict.REFUTED]
