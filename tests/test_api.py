"""The Python API, on small modules."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_verify
from hlo_verify.passes.load.load import load
from tests.programs import arguments, jitted, layer, lowered
from tests.xla.test_partition import GSPMD

TESTDATA = Path(__file__).resolve().parent.parent / "testdata"
PAIR = (TESTDATA / "mlp_2d" / "logical.hlo.gz", TESTDATA / "mlp_2d" / "partitioned.hlo.gz")


def test_public_names() -> None:
    for name in hlo_verify.__all__:
        assert getattr(hlo_verify, name) is not None
    with pytest.raises(AttributeError, match="prove"):
        _ = hlo_verify.prove  # type: ignore[attr-defined]


def test_a_pair_in_every_form() -> None:
    paths = [str(path) for path in PAIR]
    contents = [path.read_bytes() for path in PAIR]
    modules = [load(path) for path in PAIR]
    for logical, partitioned in (PAIR, paths, contents, modules):
        report = hlo_verify.verify(logical, partitioned)
        assert report.verdict is hlo_verify.Verdict.PROVED
        assert len(report.results) == 5
        assert report.devices == 8


def test_the_laws_that_a_proof_used() -> None:
    """The contracted dimension is split over devices, and joined again; each report has its own count."""
    first, again = (hlo_verify.verify(*PAIR) for _ in range(2))
    (joined,) = (law for law in first.laws if law.name == "digits joined")
    assert joined.times > 0
    assert "sum a<m. sum b<n. g(a + m*b) = sum k<m*n. g(k)" in joined.says
    assert again.laws == first.laws


def test_a_lowered_function() -> None:
    report = hlo_verify.verify(lowered())
    assert report.verdict is hlo_verify.Verdict.PROVED
    assert [result.name for result in report.results] == ["result[0]", "result[1]"]


def test_a_jitted_function_with_its_arguments() -> None:
    function = jitted({"data": 2, "model": 4})
    for report in (hlo_verify.check(function, *arguments()), hlo_verify.verify(function.trace(*arguments()))):
        assert report.verdict is hlo_verify.Verdict.PROVED
        assert (report.devices, [result.name for result in report.results]) == (8, ["result[0]", "result[1]"])


def test_what_is_checked_is_distributed() -> None:
    with pytest.raises(hlo_verify.InputError, match=r"the function \(layer\) is not distributed"):
        hlo_verify.check(layer, *arguments())
    with pytest.raises(
        hlo_verify.InputError, match=r"a jitted function; pass it to hlo_verify\.check with its arguments"
    ):
        hlo_verify.verify(jitted({"data": 2, "model": 4}))
    with pytest.raises(hlo_verify.InputError, match="not a module: a int"):
        hlo_verify.verify(3)  # type: ignore[arg-type]


def test_text_with_devices_of_a_module() -> None:
    report = hlo_verify.verify(GSPMD, devices=4)
    assert (report.verdict, report.devices) == (hlo_verify.Verdict.PROVED, 4)
    assert [result.name for result in report.results] == ["out"]


def test_results_that_xla_left_without_a_sharding_must_be_equal_everywhere() -> None:
    report = hlo_verify.verify(lowered(out_shardings=False))
    assert report.verdict is hlo_verify.Verdict.PROVED
    assert not any("without a sharding" in assumption for assumption in report.assumptions)


def test_arguments_that_xla_left_without_a_sharding_are_named() -> None:
    two = GSPMD.replace("(%arg0:", "(%arg1: tensor<8xf32>, %arg0:")
    report = hlo_verify.verify(two)
    assert report.verdict is hlo_verify.Verdict.PROVED
    assert any("arguments that XLA left without a sharding" in a and "arg" in a for a in report.assumptions)


def test_keep(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    hlo_verify.verify(lowered(), keep=folder)
    assert sorted(path.name for path in folder.iterdir()) == ["annotated.hlo", "logical.mlir", "partitioned.hlo"]
    for logical in ("annotated.hlo", "logical.mlir"):
        report = hlo_verify.verify(folder / logical, str(folder / "partitioned.hlo"))
        assert report.verdict is hlo_verify.Verdict.PROVED


def test_shardings_of_a_pair(tmp_path: Path) -> None:
    bare = GSPMD.replace(' {mhlo.sharding = "{devices=[4,1]<=[4]}"}', "")
    bare = bare.replace(', mhlo.sharding = "{devices=[1,4]<=[4]}"', "")
    (tmp_path / "s.toml").write_text('[mesh]\nx = 4\n[arguments]\n0 = ["x"]\n[results]\nout = ["x"]\n')
    report = hlo_verify.verify(bare, bare.replace("8x8", "2x8"), shardings=tmp_path / "s.toml")
    assert (report.verdict, report.devices) == (hlo_verify.Verdict.PROVED, 4)
    (tmp_path / "wrong.toml").write_text('[mesh]\nx = 4\n[arguments]\n0 = ["x"]\n[results]\nout = ["", "x"]\n')
    with pytest.raises(hlo_verify.InputError):
        hlo_verify.verify(bare, bare.replace("8x8", "2x8"), shardings=tmp_path / "wrong.toml")


def test_progress_is_called_while_xla_works_and_while_it_is_proved() -> None:
    calls: list[tuple[int, int]] = []
    hlo_verify.verify(lowered(), progress=lambda done, total: calls.append((done, total)))
    assert all(0 <= done <= total for done, total in calls)


def test_what_is_no_module() -> None:
    with pytest.raises(hlo_verify.InputError, match="not a module: a int"):
        hlo_verify.verify(3)  # type: ignore[arg-type]
    with pytest.raises(hlo_verify.InputError, match="not a module: a Module"):
        hlo_verify.verify(load(PAIR[0]))


@pytest.mark.parametrize(
    ("option", "value", "what"),
    [
        ("shardings", {"arguments": {}}, "the path of a file, or what was read of one"),
        ("results", 3, "the path of a file"),
        ("devices", "8", "a number of devices"),
        ("limits", 3, "a hlo_verify.limits.Limits"),
        ("session", 3, "a hlo_verify.Session"),
        ("keep", True, "the path of a folder"),
        ("progress", 3, "a function"),
    ],
)
def test_options_of_another_type_are_told(option: str, value: object, what: str) -> None:
    with pytest.raises(hlo_verify.InputError, match=f"{option} is {what}"):
        hlo_verify.verify(*PAIR, **{option: value})  # type: ignore[arg-type]
