"""A result that comes out as a sum which nobody completes: never PROVED unless that is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.diagnostics import Annotation

Shapes = tuple[tuple[int, ...], ...]


def _loss(x: Any, w: Any) -> Any:
    return jnp.sum(jnp.tanh(x @ w) ** 2)


def _scanned(x: Any) -> Any:
    return jax.lax.scan(lambda total, rows: (total + jnp.tanh(rows).sum(0), ()), jnp.zeros(x.shape[-1]), x)[0]


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Shapes, Shapes]] = {
    "dot": (jnp.matmul, jnp.matmul, ((4, 8), (8, 6)), ((4, 4), (4, 6))),
    "sum": (lambda x: x.sum(0), lambda x: x.sum(0), ((8, 6),), ((4, 6),)),
    "mean": (lambda x: x.mean(0), lambda x: x.sum(0) / 8, ((8, 6),), ((4, 6),)),
    "scalar": (_loss, _loss, ((8, 4), (4, 6)), ((4, 4), (4, 6))),
    "gradient": (jax.grad(_loss, 1), jax.grad(_loss, 1), ((8, 4), (4, 6)), ((4, 4), (4, 6))),
    "scan": (_scanned, _scanned, ((5, 8, 6),), ((5, 4, 6),)),
    "negated": (lambda x: -x.sum(0), lambda x: -x.sum(0), ((8, 6),), ((4, 6),)),
    "transposed": (lambda x, w: (x @ w).T, lambda x, w: (x @ w).T, ((4, 8), (8, 6)), ((4, 4), (4, 6))),
}
"""What is computed, what a device computes of it, and the shapes of arguments on both sides."""


CLOSED = [name for name in PROGRAMS if name != "scan"]
"""The prover follows no loop that carries a part of a sum."""


@cache
def _texts(name: str) -> tuple[str, str]:
    """The whole program and that of a device, which sums nothing over devices."""
    whole, part, shapes, local = PROGRAMS[name]
    lowered = (
        jax.jit(function).lower(*(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in each)).as_text()
        for function, each in ((whole, shapes), (part, local))
    )
    return tuple(lowered)  # type: ignore[return-value]


def _completed(text: str) -> str:
    """The program with its result summed over both devices."""
    found = re.search(r"^    return (%\S+) : (\S+)$", text, re.MULTILINE)
    assert found is not None
    value, kind = found.groups()
    main, rest = text[: found.start()], text[found.end() :]
    return f"""{main}
    %all = "stablehlo.all_reduce"({value}) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}}> ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %r = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }}) : ({kind}) -> {kind}
    return %all : {kind}{rest}"""


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_forgotten_all_reduce_is_never_proved(name: str) -> None:
    whole, part = _texts(name)
    report = hlo_verify.verify(whole, part, devices=2)
    assert report.verdict is Verdict.UNKNOWN
    (result,) = report.results
    assert result.code is Annotation.UNREDUCED_RESULT and result.witness is None
    assert "comes out unreduced" in result.reason and '--results FILE with [results] 0 = "{unreduced}"' in result.reason
    assert report.headline == ""


@pytest.mark.parametrize("name", CLOSED)
def test_it_is_proved_where_that_is_asked_for(name: str, tmp_path: Path) -> None:
    whole, part = _texts(name)
    path = tmp_path / "results.toml"
    path.write_text('[results]\n0 = "{unreduced}"\n')
    report = hlo_verify.verify(whole, part, devices=2, results=path)
    assert report.verdict is Verdict.PROVED and "result" not in report.under


@pytest.mark.parametrize("name", CLOSED)
def test_the_sum_is_proved_and_the_first_line_says_where_it_lies(name: str) -> None:
    whole, part = _texts(name)
    report = hlo_verify.verify(whole, _completed(part), devices=2)
    assert report.verdict is Verdict.PROVED
    assert report.headline.startswith("PROVED with ") and report.headline.endswith("result replicated (inferred)")


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_that_is_not_reduced_is_proved(name: str) -> None:
    whole, part = _texts(name)
    assert hlo_verify.verify(whole, part, devices=2, refute=False).verdict is Verdict.UNKNOWN
