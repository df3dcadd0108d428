"""What Shardy says among frontend attributes counts as much as `mhlo.sharding` does: one module, one placement."""

from __future__ import annotations

import pytest

from hlo_verify import jaxlib_api
from hlo_verify.diagnostics import Annotation
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load.load import load

MESH = '["x"=2, "y"=2]'
PLACES = {  # Shardy's dimensions, and HloShardings that say the same
    "[{%sx%s, %sy%s}]": "{devices=[4]<=[4]}",
    "[{%sy%s, %sx%s}]": "{devices=[4]<=[2,2]T(1,0)}",
    "[{%sx%s, ?}]": "{devices=[2,2]<=[4] last_tile_dim_replicate}",
    "[{}], replicated={%sx%s}": "{replicated}",
    "[{}], unreduced={%sx%s}": "{devices=[1,2,2]<=[4] last_tile_dims={unreduced, replicated}}",
}


def dimensions(text: str, quote: str) -> str:
    return text.replace("%s", quote)


def of_mlir(argument: tuple[str, str | None], result: tuple[str, str | None], *, at_module: bool = False) -> str:
    """A module whose argument and result have an HloSharding and one of Shardy's each, where it is not None."""

    def attributes(placed: tuple[str, str | None]) -> str:
        hlo, shardy = placed
        said = [f'mhlo.sharding = "{hlo}"'] if hlo else []
        if shardy is not None:
            text = f"#sdy.sharding<@m, {dimensions(shardy, chr(92) + '22')}>"
            said.append(f'mhlo.frontend_attributes = {{xla.sdy.sharding = "{text}"}}')
        return "{" + ", ".join(said) + "}"

    escaped = MESH.replace('"', "\\22")
    meshes = f', mhlo.frontend_attributes = {{xla.sdy.meshes = "{{m = #sdy.mesh<{escaped}>}}"}}' if at_module else ""
    return (
        f"module @t attributes {{mhlo.num_partitions = 4 : i32{meshes}}} {{\n"
        + ("" if at_module else f"sdy.mesh @m = <{MESH}>\n")
        + f"func.func @main(%x: tensor<8xf32> {attributes(argument)}) -> (tensor<8xf32> {attributes(result)}) {{\n"
        "%y = stablehlo.negate %x : tensor<8xf32>\nreturn %y : tensor<8xf32>\n}\n}\n"
    )


def of_hlo(argument: tuple[str, str | None], result: tuple[str, str | None], *, root: str = "tuple") -> str:
    """The same as XLA dumps it before Shardy has run: of results a custom call tells."""

    def attributes(placed: str | None, kind: str) -> str:
        if placed is None:
            return ""
        one = f"<@m, {dimensions(placed, chr(92) + chr(34))}>"
        text = f"#sdy.sharding{one}" if kind == "parameter" else f"#sdy.sharding_per_value<[{one}]>"
        return f', frontend_attributes={{xla.sdy.sharding="{text}"}}'

    def sharding(placed: str) -> str:
        return f", sharding={placed}" if placed else ""

    ends = {
        "tuple": "(f32[8]{0}) tuple(r)" + (f", sharding={{{result[0]}}}" if result[0] else ""),
        "reshape": "f32[8]{0} reshape(r)" + sharding(result[0]),
    }
    gives = "(f32[8]{0})" if root == "tuple" else "f32[8]{0}"
    return (
        f"HloModule t, entry_computation_layout={{(f32[8]{{0}})->{gives}}}, num_partitions=4, "
        f"frontend_attributes={{xla.sdy.meshes={{m = #sdy.mesh<{MESH}>}}}}\n\nENTRY main {{\n"
        f"  x = f32[8]{{0}} parameter(0){sharding(argument[0])}{attributes(argument[1], 'parameter')}\n"
        "  y = f32[8]{0} negate(x)\n"
        '  r = f32[8]{0} custom-call(y), custom_call_target="xla.sdy.FuncResultSharding", '
        f"custom_call_has_side_effect=true{attributes(result[1], 'result')}\n  ROOT o = {ends[root]}\n}}\n"
    )


FORMS = {
    "StableHLO": of_mlir,
    "StableHLO, meshes at the module": lambda *placed: of_mlir(*placed, at_module=True),
    "HLO": of_hlo,
    "HLO, no tuple": lambda *placed: of_hlo(*placed, root="reshape"),
    "a proto": lambda *placed: jaxlib_api.hlo_text_to_proto(of_hlo(*placed)),
}


@pytest.mark.drawn(10)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("shardy", PLACES)
def test_two_statements_of_one_placement_must_agree(form, shardy: str) -> None:  # type: ignore[no-untyped-def]
    here = (PLACES[shardy], shardy)
    module = load(form(here, here))
    assert module.argument_shardings[0] is not None and module.result_shardings[0] is not None
    for other in PLACES.values():
        if other != PLACES[shardy]:
            for what, placed in (("argument", ((other, shardy), here)), ("result", (here, (other, shardy)))):
                with pytest.raises(InputError, match=f"{what} .* in two ways: .* and #sdy.sharding") as error:
                    load(form(*placed))
                assert error.value.code is Annotation.CONTRADICTION
                assert other[:-1] in str(error.value)  # a newer jaxlib adds metadata


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_one_statement_is_enough(form) -> None:  # type: ignore[no-untyped-def]
    split = next(iter(PLACES))
    module = load(form(("", split), ("", split)))
    for sharding in (*module.argument_shardings, *module.result_shardings):
        assert sharding is not None and sharding.tiles == (4,)


@pytest.mark.parametrize("name", ["xla.sdy.tuple_args_shardings", "xla.sdy.tuple_results_shardings"])
def test_what_the_module_says_of_all_arguments_or_results(name: str) -> None:
    split, text = ("{devices=[4]<=[4]}", None), of_mlir(("{devices=[4]<=[4]}", None), ("{devices=[4]<=[4]}", None))

    def saying(axes: str, count: int = 1) -> str:
        one = f"<@m, [{{{axes}}}]>"
        said = f'{name} = "#sdy.sharding_per_value<[{", ".join([one] * count)}]>"'
        return text.replace("attributes {", f"attributes {{mhlo.frontend_attributes = {{{said}}}, ", 1)

    assert split[1] is None and load(saying("\\22x\\22, \\22y\\22"))
    with pytest.raises(InputError, match="in two ways"):
        load(saying("\\22y\\22, \\22x\\22"))
    with pytest.raises(InputError, match="2 shardings for 1"):
        load(saying("\\22x\\22, \\22y\\22", 2))


@pytest.mark.parametrize("text", ["nonsense", "#sdy.sharding<@other, [{}]>", "#sdy.sharding<@m, [{}, {}]>", ""])
def test_what_is_no_sharding_of_this_tensor_is_an_error(text: str) -> None:
    module = of_mlir(("{replicated}", "[{}]"), ("{replicated}", None)).replace("#sdy.sharding<@m, [{}]>", text)
    with pytest.raises(InputError):
        load(module)


TUPLE = """HloModule t, entry_computation_layout={((f32[8]))->f32[8]}, num_partitions=4, \
frontend_attributes={xla.sdy.meshes={m = #sdy.mesh<["x"=4]>}}

ENTRY main {
  p = (f32[8]) parameter(0), sharding={{devices=[4]<=[4]}}, frontend_attributes={xla.sdy.sharding="SAID"}
  ROOT r = f32[8] get-tuple-element(p), index=0
}
"""


def test_a_tuple_s_elements_are_placed_in_a_list() -> None:
    def saying(*dimensions: str) -> str:
        values = ", ".join(f"<@m, [{{{each}}}]>" for each in dimensions)
        return TUPLE.replace("SAID", f"#sdy.sharding_per_value<[{values}]>")

    axis = chr(92) + '"x' + chr(92) + '"'
    (sharding,) = load(saying(axis)).argument_shardings
    assert sharding is not None and sharding.tiles == (4,)
    with pytest.raises(InputError, match="in two ways"):
        load(saying(""))
    with pytest.raises(InputError, match="2 shardings for 1"):
        load(saying(axis, axis))


LOOP = """HloModule t, entry_computation_layout={(f32[8])->f32[8]}, num_partitions=4, \
frontend_attributes={xla.sdy.meshes={m = #sdy.mesh<["x"=4]>}}

body {
  b = (s32[], f32[8]) parameter(0), frontend_attributes={xla.sdy.sharding="stale"}
  i = s32[] get-tuple-element(b), index=0
  x = f32[8] get-tuple-element(b), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[8]) tuple(j, x)
}

condition {
  c = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY main {
  p = f32[8] parameter(0), sharding={replicated}, frontend_attributes={xla.sdy.sharding="#sdy.sharding<@m, [{SAID}]>"}
  zero = s32[] constant(0)
  s = (s32[], f32[8]) tuple(zero, p)
  w = (s32[], f32[8]) while(s), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
"""


def test_what_loops_carry_loses_its_statements_and_the_entry_does_not() -> None:
    """jaxlib refuses those of tuples."""
    assert load(LOOP.replace("SAID", "")).argument_shardings[0] is not None
    with pytest.raises(InputError, match="in two ways"):
        load(LOOP.replace("SAID", chr(92) + '"x' + chr(92) + '"'))
