"""Which graphs of two folders are pairs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hlo_verify import cli, options
from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.sources.neuron_folders import find, pair_up
from tests.passes.place.test_infer import SHAPES, X, all_reduce, layer, matrix, module

WHOLE = module(SHAPES[0], [("%y", X)], layer(8, ""), 1)
PART = module(SHAPES[1], [("%z", X)], layer(4, all_reduce("%z", "%y", X)), 2)
SMALL = matrix(2, 2)


def scaled(factor: int, replicas: int) -> str:
    body = f"%c = stablehlo.constant dense<{factor}.0> : {SMALL}\n%y = stablehlo.multiply %a0, %c : {SMALL}"
    return module([SMALL], [("%y", SMALL)], body, replicas)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two caches: of a layer, compressed in one of them, and of a product with a constant."""
    one, other = tmp_path / "one", tmp_path / "two"
    for folder, first, second in ((one, WHOLE, scaled(2, 1)), (other, PART, scaled(2, 2))):
        for name, text in (("MODULE_1", first), ("MODULE_2", second)):
            (folder / name).mkdir(parents=True)
            (folder / name / "model.mlir").write_text(text)
            (folder / name / "model.neff").write_bytes(b"\0")
    packed = other / "MODULE_1" / "model.mlir"
    packed.with_suffix(".mlir.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    return one, other


def test_graphs_are_paired_by_their_signatures(folders: tuple[Path, Path]) -> None:
    one, other = folders
    pairs, incomplete = pair_up(one, other)
    assert [(pair.logical.parent.name, pair.partitioned.parent.name) for pair in pairs] == [
        ("MODULE_1", "MODULE_1"),
        ("MODULE_2", "MODULE_2"),
    ]
    assert incomplete == []


def test_both_are_verified(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    one, other = folders
    assert cli.main([str(one), str(other)]) == options.PROVED
    assert "2 modules: 2 proved" in capsys.readouterr().out
    (other / "MODULE_2" / "model.mlir").write_text(scaled(3, 2))
    assert cli.main([str(one), str(other)]) == options.REFUTED


def test_a_file_and_a_folder(folders: tuple[Path, Path]) -> None:
    one, other = folders
    pairs, _ = pair_up(one / "MODULE_2" / "model.mlir", other)
    assert [pair.partitioned for pair in pairs] == [other / "MODULE_2" / "model.mlir"]


def test_what_has_no_single_counterpart_is_told(folders: tuple[Path, Path]) -> None:
    one, other = folders
    (other / "MODULE_3").mkdir()
    (other / "MODULE_3" / "model.mlir").write_text(scaled(4, 2))
    (other / "MODULE_1" / "model.mlir.gz").unlink()
    with pytest.raises(InputError, match=r"MODULE_1.*no graph in .*two has") as error:
        pair_up(one, other)
    assert error.value.code is Input.NO_PAIR_IN_FOLDER
    (one / "MODULE_1" / "model.mlir").unlink()
    with pytest.raises(InputError, match=r"several graphs: .*MODULE_2.*MODULE_3"):
        pair_up(one, other)


def test_a_folder_without_graphs(tmp_path: Path) -> None:
    (tmp_path / "model.neff").write_bytes(b"\0")
    with pytest.raises(InputError, match="holds no graphs"):
        find(tmp_path)


def test_the_graphs_of_ranks_on_the_command_line(tmp_path: Path) -> None:
    names = []
    for name, text in (("whole", scaled(2, 1)), ("rank0", scaled(2, 2)), ("rank1", scaled(2, 2))):
        (tmp_path / name).write_text(text)
        names.append(str(tmp_path / name))
    assert cli.main(names) == options.PROVED
    (tmp_path / "rank1").write_text(scaled(3, 2))
    assert cli.main(names) == options.REFUTED
