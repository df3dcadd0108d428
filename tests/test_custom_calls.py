"""Custom calls that users give a meaning: what follows from it, and what does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import hlo_verify
from hlo_verify import cli
from hlo_verify.diagnostics import Unsupported
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.registered_calls import DEFAULT, registered
from hlo_verify.sources.project import read_custom_calls

PROVED, UNKNOWN = hlo_verify.Verdict.PROVED, hlo_verify.Verdict.UNKNOWN


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    for target in list(registered()):
        hlo_verify.forget_custom_call(target)


def rows(x: jax.Array) -> jax.Array:
    """What the kernel of these tests computes."""
    return jnp.tanh(x) * jnp.sum(x, axis=-1, keepdims=True)


def _module(size: int, body: str, sharding: str = "") -> str:
    kind = f"tensor<{size}x16xf32>"
    placed = f' {{mhlo.sharding = "{sharding}"}}' if sharding else ""
    return (
        "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
        f"func.func public @main(%x: {kind}{placed}) -> ({kind}{placed}) {{\n{body.replace('KIND', kind)}\n}}\n}}\n"
    )


CALL = "%y = stablehlo.custom_call @my.kernel(%x) : (KIND) -> KIND\n"
LOOSE = "%y = stablehlo.custom_call @my.kernel(%x) {has_side_effect = true} : (KIND) -> KIND\n"
RETURN = "return %y : KIND"
NEGATED = "%z = stablehlo.negate %y : KIND\nreturn %z : KIND"
PLAIN = """
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] :
      (KIND, tensor<f32>) -> tensor<SIZExf32>
    %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<SIZExf32>) -> KIND
    %t = stablehlo.tanh %x : KIND
    %y = stablehlo.multiply %t, %b : KIND
"""
ROWS = "{devices=[4,1]<=[4]}"
COLUMNS = "{devices=[1,4]<=[4]}"


def _report(whole: str, part: str, size: int = 2) -> hlo_verify.Report:
    return hlo_verify.verify(_module(8, whole, ROWS), _module(size, part), refute=False)


def test_a_report_says_how_to_give_a_meaning() -> None:
    said = _report(CALL + RETURN, CALL + NEGATED)
    assert 'register_custom_call("my.kernel", reference)' in dict(said.unsupported[0].notes)["register"]
    assert str(said).count('  to do: hlo_verify.register_custom_call("my.kernel", reference)') == 1


def test_a_call_is_what_its_meaning_computes() -> None:
    assert _report(CALL + RETURN, CALL + RETURN).verdict is UNKNOWN
    hlo_verify.register_custom_call("my.kernel", rows)
    report = _report(CALL + RETURN, CALL + RETURN)
    assert report.verdict is PROVED
    assert f"custom_call to my.kernel computes what {rows.__module__}.rows does" in report.assumptions
    assert _report(CALL + RETURN, PLAIN.replace("SIZE", "2") + RETURN).verdict is PROVED
    assert _report(PLAIN.replace("SIZE", "8") + RETURN, CALL + RETURN).verdict is PROVED


def test_nothing_is_assumed_where_the_call_is_not() -> None:
    hlo_verify.register_custom_call("my.kernel", rows)
    plain = [PLAIN.replace("SIZE", size) + RETURN for size in ("8", "2")]
    assert not any("my.kernel" in assumption for assumption in _report(*plain).assumptions)


@pytest.mark.parametrize(
    "meaning", [None, rows, lambda x: x, lambda x: -rows(x), lambda x: jnp.zeros_like(x), jnp.cumsum]
)
def test_a_wrong_meaning_proves_nothing_about_other_operations(meaning: Callable[..., Any] | None) -> None:
    meaning = None if meaning is None else (lambda x, f=meaning: f(x).reshape(x.shape))
    hlo_verify.register_custom_call("my.kernel", meaning, **({"trailing": 1} if meaning is None else {}))
    assert _report(CALL + RETURN, CALL + RETURN).verdict in (PROVED, UNKNOWN)
    scaled = "%w = stablehlo.add %x, %x : KIND\n" + CALL.replace("(%x)", "(%w)")
    other = "%y = stablehlo.cosine %x : KIND\n"
    wrong = [(other + RETURN, other.replace("cosine", "sine") + RETURN)]
    if meaning is None:  # a function of its operand, and not the identity or constant
        wrong += [
            (CALL + RETURN, CALL + NEGATED),
            (CALL + RETURN, scaled + RETURN),
            (CALL + RETURN, "return %x : KIND"),
        ]
    for whole, part in wrong:
        assert _report(whole, part).verdict is UNKNOWN


def test_a_call_of_which_only_the_name_is_known() -> None:
    hlo_verify.register_custom_call("my.kernel", trailing=1)
    report = _report(CALL + RETURN, CALL + RETURN)
    assert report.verdict is PROVED
    assert "custom_call to my.kernel is a function of the last dimension of its operands" in report.assumptions
    hlo_verify.register_custom_call("my.kernel", replace=True)  # it may mix rows
    assert _report(CALL + RETURN, CALL + RETURN).verdict is UNKNOWN


def test_a_split_dimension_that_the_kernel_works_on() -> None:
    hlo_verify.register_custom_call("my.kernel", trailing=1)
    whole = _module(8, CALL + RETURN, COLUMNS)
    part = _module(8, CALL + RETURN).replace("8x16", "8x4")
    assert hlo_verify.verify(whole, part, refute=False).verdict is UNKNOWN


def test_side_effects_are_never_understood() -> None:
    hlo_verify.register_custom_call("my.kernel", rows)
    report = _report(LOOSE + RETURN, LOOSE + RETURN)
    assert report.verdict is UNKNOWN and "which has a side effect" in report.unsupported[0].message
    assert {report.results[0].code, report.unsupported[0].code} == {Unsupported.OUTSIDE_WORLD}


def test_a_result_may_take_the_place_of_an_operand() -> None:
    hlo_verify.register_custom_call("my.kernel", trailing=1)
    alias = "#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>"
    aliased = CALL.replace("(%x)", f"(%x) {{output_operand_aliases = [{alias}]}}")
    assert _report(aliased + RETURN, aliased + RETURN).verdict is PROVED
    assert _report(aliased + RETURN, CALL + RETURN).verdict is UNKNOWN
    both = aliased + "%z = stablehlo.add %x, %y : KIND\nreturn %z : KIND"
    assert _report(both, both.replace("add %x, %y", "add %y, %y")).verdict is UNKNOWN


def test_attributes_and_several_results() -> None:
    def scaled(x: jax.Array, attributes: dict[str, Any]) -> tuple[jax.Array, jax.Array]:
        return x * int(attributes["backend_config"]), x + 1

    hlo_verify.register_custom_call("my.kernel", scaled)
    call = '%y, %o = stablehlo.custom_call @my.kernel(%x) {backend_config = "2"} : (KIND) -> (KIND, KIND)\n'
    assert _report(call + RETURN, "%y = stablehlo.add %x, %x : KIND\n" + RETURN).verdict is PROVED
    assert _report(call.replace('"2"', '"3"') + RETURN, call + RETURN).verdict is UNKNOWN


def test_attributes_that_look_the_same_in_print() -> None:
    """Of a long array only its ends are printed, of a number eight digits."""
    hlo_verify.register_custom_call("my.kernel", trailing=1)

    def call(table: list[int], scale: float) -> str:
        kinds = f"tensor<{len(table)}xi32>", "tensor<2xf64>"
        config = f"{{t = dense<{table}> : {kinds[0]}, s = dense<[{scale}, 0.0]> : {kinds[1]}}}"
        return CALL.replace("(%x)", f"(%x) {{backend_config = {config}, api_version = 4 : i32}}") + RETURN

    table = list(range(2000))
    other = [7 if n == 1000 else n for n in table]
    assert _report(call(table, 0.1), call(table, 0.1)).verdict is PROVED
    assert _report(call(table, 0.1), call(other, 0.1)).verdict is UNKNOWN
    assert _report(call(table, 0.1), call(table, 0.1000000000001)).verdict is UNKNOWN


@pytest.mark.parametrize(
    ("meaning", "said"),
    [
        (lambda x: x[0], r"gives \(f32\[16\]\) where the call at .* gives \(f32\[8,16\]\)"),
        (lambda x: (x, x), r"gives \(f32\[8,16\], f32\[8,16\]\) where"),
        (lambda x, y: x, r"fails for \(f32\[8,16\]\) at .*: TypeError: .*missing 1 required positional argument"),
        (lambda x: x.astype(jnp.int32), r"gives \(i32\[8,16\]\)"),
    ],
)
def test_a_meaning_that_does_not_fit_the_call(meaning: Callable[..., Any], said: str) -> None:
    hlo_verify.register_custom_call("my.kernel", meaning)
    with pytest.raises(InputError, match=r"the meaning of custom_call to my\.kernel, .*" + said):
        _report(CALL + RETURN, CALL + RETURN)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (("TopK",), {}, "TopK has a meaning already"),
        (("",), {}, "its name, not ''"),
        (("k", 3), {}, "must be a function of JAX arrays, not 3"),
        (("k", rows), {"trailing": 1}, "trailing goes with a custom call of which nothing else is known"),
        (("k",), {"trailing": -1}, "a number of dimensions, not -1"),
    ],
)
def test_what_cannot_be_registered(arguments: tuple[Any, ...], options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        hlo_verify.register_custom_call(*arguments, **options)


# For all, and on a session


def _proved(session: hlo_verify.Session | None = None) -> bool:
    modules = (_module(size, CALL + RETURN, placed) for size, placed in ((8, ROWS), (2, "")))
    return hlo_verify.verify(*modules, refute=False, session=session).verdict is PROVED


def test_what_is_said_on_a_session_holds_there_alone() -> None:
    one, other = hlo_verify.Session(), hlo_verify.Session()
    hlo_verify.register_custom_call("my.kernel", trailing=1, session=one)
    assert _proved(one)
    assert not _proved(other)
    assert not _proved()
    hlo_verify.register_custom_call("my.kernel")  # for all: it may mix rows
    assert _proved(one), "what is said on the session comes first"
    assert not _proved(other)
    hlo_verify.forget_custom_call("my.kernel", session=one)
    assert not _proved(one)
    with pytest.raises(KeyError):
        hlo_verify.forget_custom_call("my.kernel", session=one)
    assert "my.kernel" in registered()


@pytest.mark.parametrize("is_for_all", [True, False])
def test_what_was_said_is_replaced_and_taken_back(is_for_all: bool) -> None:
    given = hlo_verify.Session()
    where = None if is_for_all else given
    hlo_verify.register_custom_call("my.kernel", session=where)
    with pytest.raises(ValueError, match=r"my\.kernel has a meaning already; replace=True"):
        hlo_verify.register_custom_call("my.kernel", trailing=1, session=where)
    assert not _proved(given)
    hlo_verify.register_custom_call("my.kernel", trailing=1, session=where, replace=True)
    assert _proved(given)
    hlo_verify.register_custom_call("my.kernel", rows, session=where, replace=True)
    assert _proved(given)
    hlo_verify.forget_custom_call("my.kernel", session=where)
    assert not _proved(given)
    with pytest.raises(KeyError):
        hlo_verify.forget_custom_call("my.kernel", session=where)
    with pytest.raises(ValueError, match="TopK has a meaning already"):
        hlo_verify.register_custom_call("TopK", session=where, replace=True)


def test_a_verification_sees_what_was_said_when_it_began() -> None:
    """Whoever takes it back, or says something else, does not change a proof that is half done."""

    def forgotten_meanwhile(x: jax.Array) -> jax.Array:
        if "my.kernel" in DEFAULT:
            hlo_verify.forget_custom_call("my.kernel")
            hlo_verify.forget_custom_call("my.kernel", session=given)
        return rows(x)

    given = hlo_verify.Session()
    hlo_verify.register_custom_call("my.kernel")
    hlo_verify.register_custom_call("my.kernel", forgotten_meanwhile, session=given)
    assert _proved(given)
    assert "my.kernel" not in DEFAULT
    assert not given.custom_calls
    assert not _proved(given)


# In pyproject.toml

KERNELS = (
    "import jax.numpy as jnp\ndef rows(x):\n    return jnp.tanh(x) * jnp.sum(x, axis=-1, keepdims=True)\nthree = 3\n"
)


def _project(folder: Path, calls: str) -> None:
    (folder / "pyproject.toml").write_text(
        f'[tool.hlo-verify]\ncolor = "never"\n[tool.hlo-verify.custom-calls]\n{calls}\n'
    )
    (folder / "my_kernels_for_this_test.py").write_text(KERNELS)


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ('"my.kernel" = "my_kernels_for_this_test:rows"', "computes what my_kernels_for_this_test.rows does"),
        ('"my.kernel" = { trailing = 1 }', "is a function of the last dimension of its operands"),
    ],
)
def test_meanings_in_pyproject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], calls: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _project(tmp_path, calls)
    (tmp_path / "whole.mlir").write_text(_module(8, CALL + RETURN, ROWS))
    (tmp_path / "part.mlir").write_text(_module(2, CALL + RETURN))
    for _ in range(2):
        assert cli.main(["whole.mlir", "part.mlir"]) == 0
        assert said in capsys.readouterr().out
    assert not registered(), "it is for the modules of that command alone"


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ('k = "nowhere:f"', "nowhere:f cannot be imported (ModuleNotFoundError"),
        ('k = "my_kernels_for_this_test:absent"', "cannot be imported (AttributeError"),
        ('k = "my_kernels_for_this_test:three"', "is no function"),
        ('k = "rows"', 'must be "module:function"'),
        ("k = 3", 'must be "module:function"'),
        ("k = { leading = 1 }", 'must be "module:function"'),
        ("k = { trailing = -1 }", "a number of dimensions, not -1"),
        ("TopK = {}", "TopK has a meaning already"),
    ],
)
def test_what_is_refused_in_pyproject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], calls: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    _project(tmp_path, calls)
    assert cli.main(["whole.mlir", "part.mlir"]) == 2
    err = capsys.readouterr().err
    assert said in err and "pyproject.toml" in err and err.count("\n") == 1


def test_no_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.hlo-verify]\n")
    assert read_custom_calls(tmp_path) == {}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (0, 0), (0,)])
def test_results_without_elements(known: bool, sizes: tuple[int, ...]) -> None:
    """They are equal whatever the call is, and do not keep the others from being compared or shown."""
    if known:
        hlo_verify.register_custom_call("my.kernel")
    kinds = [f"tensor<{size}x3xf32>" for size in sizes]
    results = ", ".join(kinds)
    values = [f"%y#{n}" for n in range(len(sizes))] if len(sizes) > 1 else ["%y"]
    text = f"""module {{ func.func @main(%x: tensor<0x4xf32>, %z: tensor<5xf32>) -> ({results}) {{
        %y{":" + str(len(sizes)) if len(sizes) > 1 else ""} = stablehlo.custom_call @my.kernel(%x, %z)
          : (tensor<0x4xf32>, tensor<5xf32>) -> ({results})
        return {", ".join(values)} : {results}
    }} }}
    """
    for recheck in (False, True):
        report = hlo_verify.verify(text, text, devices=1, recheck=recheck)
        assert [result.verdict for result in report.results] == [PROVED if known or not n else UNKNOWN for n in sizes]


@pytest.mark.parametrize("trailing", [0, 1, 2, 3])
@pytest.mark.parametrize("other", [(), (6,), (4, 6)])
@pytest.mark.parametrize("result", [(), (4,), (4, 6)])
@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 4, 6)])
def test_operands_with_fewer_dimensions_than_it_works_on(
    shape: tuple[int, ...], other: tuple[int, ...], result: tuple[int, ...], trailing: int
) -> None:
    """They are taken whole where there is no batch; with one it is not known what they are for each of it."""

    def kind(shape: tuple[int, ...]) -> str:
        return f"tensor<{''.join(f'{size}x' for size in shape)}f32>"

    def program(turned: str) -> str:
        x, w, y = map(kind, (shape, other, result))
        return (
            f"module @m {{\nfunc.func public @main(%x: {x}, %w: {w}) -> {y} {{\n"
            f"%t = stablehlo.reverse %x, dims = [{turned}] : {x}\n"
            f"%y = stablehlo.custom_call @my.kernel(%t, %w) : ({x}, {w}) -> {y}\nreturn %y : {y}\n}}\n}}\n"
        )

    hlo_verify.register_custom_call("my.kernel", trailing=trailing)
    shapes = (shape, other, result)
    is_known = len({each[: max(0, len(each) - trailing)] for each in shapes}) == 1
    assert (hlo_verify.verify(program(""), program(""), devices=1).verdict is PROVED) is is_known
    assert hlo_verify.verify(program(""), program("0"), devices=1, refute=False).verdict is UNKNOWN
