"""What each device selects of what others sent it, one case a device, where all are one function of the device: columns
of which no shard begins where theirs does, as the rotated ones of latent attention, forward and backward."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.prove.prove import prove_at_once
from hlo_verify.sources.modules import module_of

DEVICES, KEPT, ROTATED = 4, 64, 8
MESH = AbstractMesh((DEVICES,), ("tp",))
COLUMNS, WHOLE = NamedSharding(MESH, P(None, "tp")), NamedSharding(MESH, P())


def rotated(h: jax.Array, c: jax.Array, s: jax.Array) -> jax.Array:
    """The last columns as the real and imaginary parts of numbers that are turned."""
    part = jax.lax.with_sharding_constraint(h[:, KEPT:], COLUMNS)
    a, b = part[:, 0::2], part[:, 1::2]
    return jnp.concatenate([a * c - b * s, a * s + b * c], axis=1)


def forward(w: jax.Array, x: jax.Array, c: jax.Array, s: jax.Array, g: jax.Array) -> jax.Array:
    return rotated(jax.lax.with_sharding_constraint(x @ w, COLUMNS), c, s) * g


def backward(w: jax.Array, x: jax.Array, c: jax.Array, s: jax.Array, g: jax.Array) -> jax.Array:
    return jax.grad(lambda w: jnp.sum(forward(w, x, c, s, g)))(w)


SHAPES = (8, KEPT + ROTATED), (6, 8), (6, ROTATED // 2), (6, ROTATED // 2), (6, ROTATED)
WAYS = {"forward": forward, "backward": backward}


@cache
def lowered(way: str) -> str:
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in SHAPES]
    given = COLUMNS, WHOLE, COLUMNS, COLUMNS, COLUMNS
    jitted = jax.jit(WAYS[way], in_shardings=given, out_shardings=COLUMNS)
    return str(jitted.trace(*arguments).lower(lowering_platforms=("cpu",)).as_text())


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    found = {}
    for way in WAYS:
        folder = tmp_path_factory.mktemp(way)
        assert hlo_verify.verify(lowered(way), keep=folder, refute=False).verdict is Verdict.PROVED
        found[way] = folder / "annotated.hlo", folder / "partitioned.hlo"
    return found


@pytest.mark.parametrize("way", WAYS)
def test_what_came_from_where(way: str, pairs: dict[str, tuple[Path, Path]]) -> None:
    modules = [module_of(path, DEVICES) for path in pairs[way]]
    assert prove_at_once(modules[0], modules[1]).verdict is Verdict.PROVED


def mutants(text: str) -> list[str]:
    """The module with one of its tables, or with what one of its permutes sends, changed."""
    found = []
    for match in re.finditer(r"source_target_pairs=\{(\{\d,\d\}(?:,\{\d,\d\})*)\}", text):
        given = re.findall(r"\{(\d),(\d)\}", match[1])
        (source, target), *others = given
        left = next(n for n in "0123" if n not in {a for a, _ in others} and n != source)
        changed = ",".join(f"{{{a},{b}}}" for a, b in [(left, target), *others])
        found.append(text[: match.start(1)] + changed + text[match.end(1) :])
    for match in re.finditer(r"s32\[4\]\{0\} constant\(\{(\d+), (\d+), (\d+), (\d+)\}\)", text):
        found.append(text[: match.start(2)] + str(int(match[2]) - 1) + text[match.end(2) :])
    return found


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("way", "n"), [*(("forward", n) for n in range(5)), *(("backward", n) for n in range(8))])
def test_what_came_from_elsewhere(way: str, n: int, pairs: dict[str, tuple[Path, Path]]) -> None:
    whole, parts = pairs[way]
    assert hlo_verify.verify(whole, mutants(parts.read_text())[n]).verdict is Verdict.REFUTED
