"""A module that a partitioner has made is told from one that it can be given."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load.load import load
from hlo_verify.xla.already import check_not_partitioned

TESTDATA = Path(__file__).parents[2] / "testdata"


@pytest.mark.parametrize("name", ["mlp_tp", "gspmd_mlp_2d"])
def test_what_communicates_is_partitioned(name: str) -> None:
    check_not_partitioned(load(TESTDATA / name / "logical.hlo.gz"), name)
    with pytest.raises(InputError, match=f"{name} is partitioned already: its all_reduce at .*mlp.py:35") as raised:
        check_not_partitioned(load(TESTDATA / name / "partitioned.hlo.gz"), name)
    assert raised.value.code is Input.PARTITIONED


def test_a_program_by_hand_is_not() -> None:
    check_not_partitioned(load(TESTDATA / "shardmap_fsdp" / "partitioned.mlir.gz"), "fsdp")
