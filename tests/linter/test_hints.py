"""What an undecided pair says of its partitioned module alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlo_verify import cli
from hlo_verify.linter.hints import with_hints
from hlo_verify.report import Verdict
from tests.programs import report

GROUPS = """HloModule m, num_partitions=4
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT c = f32[8] all-reduce(p), channel_id=1, to_apply=add, use_global_device_ids=true,
    replica_groups={{0,1},{1,2,3}}, metadata={op_name="psum" source_file="train.py" source_line=7}
}
"""


@pytest.fixture
def partitioned(tmp_path: Path) -> Path:
    path = tmp_path / "partitioned.txt"
    path.write_text(GROUPS)
    return path


def test_only_what_is_undecided_is_looked_at(partitioned: Path) -> None:
    for verdict in (Verdict.PROVED, Verdict.REFUTED):
        assert with_hints(report(verdict), partitioned).hints == ()
    [hint] = with_hints(report(Verdict.UNKNOWN), partitioned).hints
    assert (hint.code, hint.operation, hint.location) == ("HV601", "c", "train.py:7")


def test_a_module_in_another_form_is_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "partitioned.mlir"
    for content in (b"module {}\n", b"ML\xefR\x00"):
        path.write_bytes(content)
        assert with_hints(report(Verdict.UNKNOWN), path).hints == ()


def test_in_every_format(partitioned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def undecided(*_: object, **__: object) -> object:
        return report(Verdict.UNKNOWN)

    given = ["logical.txt", str(partitioned)]
    assert cli.main(given, verify=undecided) == 3
    said = capsys.readouterr().out
    assert (
        "Wrong with the partitioned module by itself (`hlo-verify lint`):\n  HV601  c at train.py:7: device 1 is in"
        in said
    )
    cli.main([*given, "--format", "json"], verify=undecided)
    assert [hint["code"] for hint in json.loads(capsys.readouterr().out)["hints"]] == ["HV601"]
    cli.main([*given, "--format", "sarif"], verify=undecided)
    [run] = json.loads(capsys.readouterr().out)["runs"]
    assert [result["ruleId"] for result in run["results"]][-1] == "HV601"
