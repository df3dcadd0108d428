"""What is around faults: read off the modules, with nothing left of it in a verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P
from jsonschema import Draft202012Validator

import hlo_verify
from hlo_verify.passes.diagnose import scenes
from hlo_verify.passes.diagnose.scenes import excerpt
from hlo_verify.render.html import render
from hlo_verify.render.json import report_object
from hlo_verify.report import Verdict

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "report.schema.json").read_text())
MESH = AbstractMesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
X, W = jax.ShapeDtypeStruct((8, 16), jnp.float32), jax.ShapeDtypeStruct((16, 4), jnp.float32)


def _reference(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


def _wrong(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(lax.psum(x @ w, "data"))  # over the wrong axis


@pytest.fixture(scope="module")
def wrong() -> hlo_verify.Report:
    specs = {"in_specs": (P("data", "model"), P("model")), "out_specs": P("data"), "check_vma": False}
    return hlo_verify.check(_reference, jax.shard_map(_wrong, mesh=MESH, **specs), X, W)


def test_the_scene_of_a_wrong_collective(wrong: hlo_verify.Report) -> None:
    [result] = wrong.results
    assert result.verdict is Verdict.REFUTED and result.finding is not None
    scene = result.finding.scene
    assert scene is not None and scene.excerpt is not None
    assert "over the wrong axis" in scene.excerpt.lines[scene.excerpt.at - scene.excerpt.first]
    assert scene.axes == (("data", 2), ("model", 2))
    assert scene.meeting is not None and sorted(map(sorted, scene.meeting.groups)) == [[0, 2], [1, 3]]
    held = {each.tensor: each for each in scene.held}
    assert held["x"].starts == ((0, 0), (0, 8), (4, 0), (4, 8)) and held["x"].shard == (4, 8)
    names = {part.name: part for part in scene.partitioned.parts}
    [fault] = [part for part in names.values() if part.at_fault]
    assert fault.operation == "all_reduce"
    assert {"x", "w", "dot_general"} <= {part.operation for part in names.values()}
    assert all(one in names and other in names for one, other in scene.partitioned.edges)
    assert {names[other].operation for _, other in scene.matches} <= {"x", "w", "dot_general", "tanh"}


def test_it_is_shown_and_written(wrong: hlo_verify.Report) -> None:
    document = report_object(wrong)
    assert not list(Draft202012Validator(SCHEMA).iter_errors(json.loads(json.dumps(document))))
    [scene] = document["scenes"]
    assert scene["results"] == [0]
    page = render([wrong])
    assert "over the wrong axis" in page
    assert page.count("<svg") == len(scene["held"]) + 1  # the first of those shows the collective too


def test_a_finding_is_the_same_with_and_without(wrong: hlo_verify.Report) -> None:
    """Results that fail for one reason are together, and verdicts have nothing of it."""
    finding = wrong.results[0].finding
    assert finding is not None
    assert replace(finding, scene=None) == finding and hash(replace(finding, scene=None)) == hash(finding)


def test_a_proof_has_none() -> None:
    specs = {"in_specs": (P("data", "model"), P("model")), "out_specs": P("data")}
    right = jax.shard_map(lambda x, w: jnp.tanh(lax.psum(x @ w, "model")), mesh=MESH, **specs)
    report = hlo_verify.check(_reference, right, X, W)
    assert report.verdict is Verdict.PROVED
    assert report_object(report)["scenes"] == []


def test_lines_of_programs_alone_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And where there are none, nothing fails."""
    program = tmp_path / "f.py"
    program.write_text("\n".join(f"x{n} = {n}" for n in range(1, 10)))
    found = excerpt(f"{program}:5")
    assert found is not None and found.lines[found.at - found.first] == "x5 = 5" and len(found.lines) == 7
    first, last = excerpt(f"{program}:1"), excerpt(f"{program}:9")
    assert first is not None and first.first == 1 and last is not None and last.lines[-1] == "x9 = 9"
    (tmp_path / "secret").write_text("a\nb\n")
    (tmp_path / "folder.py").mkdir()
    for location in (
        f"{tmp_path}/secret:1",
        f"{program}:0",
        f"{program}:10",
        f"{tmp_path}/g.py:1",
        "",
        "x.py",
        f"{tmp_path}/folder.py:1",
        "\0.py:1",
    ):
        assert excerpt(location) is None
    monkeypatch.setattr(scenes, "LARGEST_FILE", 5)
    assert excerpt(f"{program}:5") is None
