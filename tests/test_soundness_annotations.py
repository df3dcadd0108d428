"""What a module says of a placement is not overruled by a guess: an annotation that places nothing is an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hlo_verify
from hlo_verify import Verdict, jaxlib_api
from hlo_verify.diagnostics import Annotation
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load.load import load
from hlo_verify.program.pair import argument_shardings
from tests.support import pairs
from tests.support.pairs import on

X = "tensor<4x6xf32>"
MESH = 'sdy.mesh @m = <["a"=2]>'

UNPLACED = {
    "manual": "{manual}",
    "manual in a tuple": "{{manual}}",
    "manual, tied to others": "{manual shard_as 3}",
    "manual with comments": "{manual/*index=0*/}",
    "a manual subgroup": "{devices=[1,1,2]<=[2] last_tile_dims={manual}}",
    "a manual subgroup, listed": "{devices=[1,1,2]1,0 last_tile_dims={manual}}",
    "manual and replicated subgroups": "{devices=[1,1,2,1]<=[2] last_tile_dims={manual, replicated}}",
    "a manual axis of a mesh": "{mesh['a'=2], [{}, {}], manual={'a'}}",
    "manual over a mesh": "{mesh['a'=2], manual}",
    "unknown": "{unknown}",
    "unknown, tied to others": "{unknown shard_as 0}",
}


def module(argument: str = "", result: str = "") -> str:
    return (
        "module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {\n"
        f"{MESH}\nfunc.func public @main(%x: {X} {argument}) -> ({X} {result}) {{\n"
        f"%y = stablehlo.negate %x : {X}\nreturn %y : {X}\n}}\n}}\n"
    )


PLAIN = module()


def never_proved(whole: str, part: str) -> None:
    with pytest.raises(InputError) as error:
        hlo_verify.verify(whole, part)
    assert error.value.code is Annotation.PLACES_NOTHING
    assert "--shardings" in str(error.value)


@pytest.mark.parametrize("text", [*map(on, UNPLACED.values())], ids=UNPLACED.keys())
@pytest.mark.parametrize("side", ["argument", "result"])
def test_an_annotation_that_places_nothing_is_an_error_wherever_it_stands(text: str, side: str) -> None:
    annotated = module(**{side: text})
    never_proved(annotated, PLAIN)
    never_proved(PLAIN, annotated)
    never_proved(annotated, annotated)


@pytest.mark.parametrize("text", UNPLACED.values(), ids=UNPLACED.keys())
def test_the_user_may_say_what_the_module_does_not(text: str, tmp_path: Path) -> None:
    path = tmp_path / "shardings.toml"
    path.write_text('[arguments]\n0 = "{replicated}"\n[results]\n0 = "{replicated}"\n')
    report = hlo_verify.verify(module(on(text), on(text)), PLAIN, shardings=path)
    assert report.verdict is Verdict.PROVED and report.headline == ""


HLO = """HloModule m, entry_computation_layout={(f32[4,6]{1,0})->f32[4,6]{1,0}}, num_partitions=2

ENTRY main {
  x = f32[4,6]{1,0} parameter(0), sharding=GIVEN
  ROOT y = f32[4,6]{1,0} negate(x)
}
"""


@pytest.mark.parametrize("text", [t for t in UNPLACED.values() if "mesh" not in t and "{{" not in t])
@pytest.mark.parametrize("form", [str, lambda text: jaxlib_api.hlo_text_to_proto(text)], ids=["text", "proto"])
def test_hlo_and_protos_say_it_too(text: str, form: Callable[[str], str | bytes]) -> None:
    given = form(HLO.replace("GIVEN", text))
    for pair in ((given, PLAIN), (PLAIN, given)):
        with pytest.raises(InputError) as error:
            hlo_verify.verify(*pair)
        assert error.value.code is Annotation.PLACES_NOTHING


def test_what_the_other_module_says_counts_where_nothing_is_known() -> None:
    """`{unknown}` says nothing; `{manual}` in the logical module is what is asked for, and is not understood."""
    stated = module(on("{replicated}"), on("{replicated}"))
    assert hlo_verify.verify(module(on("{unknown}"), on("{unknown}")), stated).verdict is Verdict.PROVED
    assert hlo_verify.verify(stated, module(on("{manual}"), on("{manual}"))).verdict is Verdict.PROVED
    never_proved(module(on("{manual}"), on("{replicated}")), stated)


ROWS, REVERSED = "{devices=[2,1]<=[2]}", "{devices=[2,1]1,0}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ROWS, REVERSED),
        (ROWS, "{maximal device=0}"),
        ("{replicated}", "{devices=[1,1,2]<=[2] last_tile_dims={unreduced}}"),
        ("{maximal device=1}", "{maximal device=0}"),
    ],
)
@pytest.mark.parametrize("side", ["argument", "result"])
def test_modules_that_contradict_each_other_are_no_pair(one: str, other: str, side: str) -> None:
    for texts in ((one, other), (other, one)):
        with pytest.raises(InputError, match="place it differently") as error:
            hlo_verify.verify(*(module(**{side: on(text)}) for text in texts))
        assert error.value.code is Annotation.CONTRADICTION


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{replicated}", "{devices=[1,1,2]<=[2] last_tile_dim_replicate}"),
        (
            "{devices=[1,1,2]<=[2] last_tile_dims={unreduced}}",
            "{devices=[1,1,2]1,0 last_tile_dims={unreduced}}",
        ),
        ("{devices=[1,2]<=[2]}", "{mesh['a'=2], [{}, {'a'}]}"),
    ],
)
def test_one_placement_in_two_spellings_is_no_contradiction(one: str, other: str) -> None:
    load_both = [load(module(on(text))).argument_shardings[0] for text in (one, other)]
    assert all(load_both)
    assert len(argument_shardings(load(module(on(one))), load(module(on(other))))) == 1


@pytest.mark.parametrize(
    "attributes",
    [
        '{mhlo.sharding = "{replicated}", sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}',
        '{mhlo.sharding = "{manual}", sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}',
    ],
)
def test_a_module_that_contradicts_itself(attributes: str) -> None:
    with pytest.raises(InputError, match="places it in two ways") as error:
        load(module(attributes))
    assert error.value.code is Annotation.CONTRADICTION


def test_what_the_partitioner_left_on_the_module_is_read_where_the_signature_says_nothing() -> None:
    text = module().replace("attributes {", 'attributes {mhlo.spmd_parameters_shardings = ["{devices=[2,1]<=[2]}"], ')
    (sharding,) = load(text).argument_shardings
    assert sharding is not None and sharding.tiles == (2, 1)
    other = text.replace(f"%x: {X} ", f"%x: {X} {on('{replicated}')}")
    with pytest.raises(InputError, match="in two ways"):
        load(other)


@pytest.mark.parametrize(
    "text",
    [
        "{maximal device=2}",
        "{maximal_mesh[device_id=2]}",
        "{{replicated}, {replicated}}",
        "{devices=[2]<=[2]}",
        "{devices=[2,2]<=[4]}",
        "{something}",
        "{}",
        "",
        "{devices=[2,1]0,0}",
    ],
)
def test_an_annotation_that_does_not_fit_is_an_error(text: str) -> None:
    for pair in ((module(on(text)), PLAIN), (PLAIN, module("", on(text)))):
        with pytest.raises(InputError):
            hlo_verify.verify(*pair)


def test_one_module_alone() -> None:
    """What XLA leaves without a sharding it takes whole on every device; not so what is annotated otherwise."""
    with pytest.raises(InputError):
        hlo_verify.verify(module(on("{manual}"), on("{replicated}")))


SHARD_MAP = """
  %r = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"}
    (%a: tensor<2xf32>) {
    %o = stablehlo.add %a, %a : tensor<2xf32>
    sdy.return %o : tensor<2xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>"""


@pytest.mark.parametrize("place", ["argument", "result"])
@pytest.mark.parametrize("other", ["{devices=[4]3,1,2,0}", "{replicated}"])
def test_a_module_with_manual_regions_may_not_contradict_either(place: str, other: str) -> None:
    """Its arguments and results are whole tensors; how they lie is stated all the same."""
    split = on("{devices=[4]<=[4]}")
    body = "%r = stablehlo.add %x, %x : tensor<8xf32>\nreturn %r : tensor<8xf32>"
    whole = pairs.module(f"%x: tensor<8xf32> {split}", f"tensor<8xf32> {split}", body)

    def mapped(argument: str, result: str) -> str:
        text = pairs.module(f"%x: tensor<8xf32> {argument}", f"tensor<8xf32> {result}", SHARD_MAP)
        return text.replace("func.func", 'sdy.mesh @mesh = <["x"=4]>\nfunc.func', 1)

    assert hlo_verify.verify(whole, mapped(split, split)).verdict is Verdict.PROVED
    assert hlo_verify.verify(whole, mapped("", "")).verdict is Verdict.PROVED
    wrong = mapped(on(other), split) if place == "argument" else mapped(split, on(other))
    with pytest.raises(InputError, match=f"{place} .* place it differently"):
        hlo_verify.verify(whole, wrong)
