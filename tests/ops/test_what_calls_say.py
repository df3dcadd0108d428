"""What a custom call says of itself makes it another one: types of its settings, tuples, an effect, a comparator.

Each pair has a twin that says the same, and is PROVED: the difference is what keeps the pair open.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.registered_calls import registered
from hlo_verify.report import Report
from tests.support.pairs import module

TYPE = "tensor<8xf32>"
RETURN = f"    return %y : {TYPE}"
NEGATED = f"    %y = stablehlo.negate %x : {TYPE}\n"


@pytest.fixture(autouse=True)
def _known_by_name() -> Iterator[None]:
    hlo_verify.register_custom_call("by.name")
    hlo_verify.register_custom_call("by.function", lambda x: -x)
    yield
    for target in list(registered()):
        hlo_verify.forget_custom_call(target)


def program(body: str, functions: str = "") -> str:
    return module(f"%x: {TYPE}", TYPE, body + RETURN, 1).removesuffix("}\n") + functions + "}\n"


def verdict(logical: str, partitioned: str) -> Verdict:
    return report(logical, partitioned).verdict


def report(logical: str, partitioned: str) -> Report:
    return hlo_verify.verify(logical, partitioned, devices=1)


def call(attributes: str, target: str = "by.name", of: str = "x", result: str = "y") -> str:
    return f"    %{result} = stablehlo.custom_call @{target}(%{of}) {{{attributes}}} : ({TYPE}) -> {TYPE}\n"


SETTINGS = [
    ("1 : i32", "1 : i64"),
    ("1 : i8", "1 : ui8"),
    ("1 : index", "1 : i64"),
    ("1.0 : f32", "1.0 : f64"),
    ("0x7FC00000 : f32", "0x7FC00001 : f32"),
    ("-0.0 : f32", "0.0 : f32"),
    ("[1, 2]", "array<i64: 1, 2>"),
    ("[1 : i32]", "[1 : i64]"),
    ("{b = 1 : i32}", "{b = 1 : i64}"),
    ("@body", '"body"'),
    ("f32", '"f32"'),
    ("unit", "true"),
    ("array<i8: 1>", "array<i16: 1>"),
    ("dense<1> : tensor<2xi8>", "dense<1> : tensor<2xui8>"),
    ("dense<(1.0, 2.0)> : tensor<1xcomplex<f32>>", "dense<(1.0, 3.0)> : tensor<1xcomplex<f32>>"),
]
FORMS = {
    "configuration": lambda value: f"backend_config = {{a = {value}}}, api_version = 4 : i32",
    "mhlo's": lambda value: f"mhlo.backend_config = {{a = {value}}}",
    "other": lambda value: f"my.setting = {{a = {value}}}",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("one", "other"), SETTINGS)
def test_settings_of_other_types_are_others(one: str, other: str, form: str) -> None:
    body = f"  func.func private @body(%a: {TYPE}) -> {TYPE} {{\n    return %a : {TYPE}\n  }}\n"
    first, second = (program(call(FORMS[form](value)), body) for value in (one, other))
    assert verdict(first, first) is Verdict.PROVED
    assert verdict(first, second) is Verdict.UNKNOWN


def of_hlo(says: str, target: str) -> str:
    """The program of that call as XLA prints it."""
    return (
        "HloModule m, entry_computation_layout={(f32[8]{0})->f32[8]{0}}, num_partitions=1\n\n"
        "ENTRY %main (x: f32[8]) -> f32[8] {\n  %x = f32[8]{0} parameter(0)\n"
        f'  ROOT %y = f32[8]{{0}} custom-call(%x), custom_call_target="{target}"{says}\n}}\n'
    )


def of_matrix(text: str) -> str:
    """A program of a matrix in the place of its vector."""
    return text.replace(TYPE, "tensor<3x3xf32>").replace("f32[8]{0}", "f32[3,3]{1,0}").replace("f32[8]", "f32[3,3]")


TYPED = ", api_version=API_VERSION_TYPED_FFI, backend_config={a = 1 : i32}"


@pytest.mark.parametrize("target", ["by.name", "lapack_spotrf_ffi"])
@pytest.mark.parametrize("given", ['backend_config = "", ', ""])
@pytest.mark.parametrize("version", ["", ", api_version = 1 : i32"])
def test_typed_settings_are_those_that_xla_makes_of_them(target: str, given: str, version: str) -> None:
    """As JAX writes them beside an empty text, and as XLA prints them: what jaxlib makes of the one is the other."""
    said = f"{given}mhlo.backend_config = {{a = 1 : i32}}{version}"
    one, hlo = of_matrix(program(call(said, target))), of_matrix(of_hlo(TYPED, target))
    assert verdict(one, hlo) is Verdict.PROVED
    for other in ("{a = 1 : i64}", "{a = 2 : i32}", "{b = 1 : i32}", "{a = 1 : i32, b = 1 : i32}"):
        assert verdict(one, hlo.replace("{a = 1 : i32}", other)) is Verdict.UNKNOWN
        assert verdict(one.replace("{a = 1 : i32}", other), hlo) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    "said",
    [
        'backend_config = "x", mhlo.backend_config = {a = 1 : i32}',
        "api_version = 2 : i32, mhlo.backend_config = {a = 1 : i32}",
        'backend_config = "", api_version = 3 : i32, mhlo.backend_config = {a = 1 : i32}',
        'backend_config = "", mhlo.backend_config = "{a = 1 : i32}"',
        "api_version = 4 : i32, mhlo.backend_config = {a = 1 : i32}",
        "api_version = 4 : i32, backend_config = {b = 1 : i32}, mhlo.backend_config = {a = 1 : i32}",
    ],
)
def test_typed_settings_that_xla_does_not_read_are_others(said: str) -> None:
    """Beside a text, or under another version, XLA makes a call without them."""
    assert verdict(program(call(said)), program(call(said))) is Verdict.PROVED
    for target in ("by.name", "lapack_spotrf_ffi"):
        assert verdict(of_matrix(program(call(said, target))), of_matrix(of_hlo(TYPED, target))) is Verdict.UNKNOWN


def test_effects_with_settings_of_other_types_are_others() -> None:
    one, other = (
        program(call(f"has_side_effect = true, my.setting = {value}", "print", result="u") + NEGATED)
        for value in ("1 : i32", "1 : i64")
    )
    assert verdict(one, one) is Verdict.PROVED
    assert verdict(one, other) is Verdict.UNKNOWN


def of_tuple(nesting: str) -> str:
    """A call that takes `%x` twice: as two operands, or in a tuple, or in one inside of another."""
    pair, single = f"tuple<{TYPE}, {TYPE}>", f"tuple<{TYPE}>"
    lines, operands, types = {
        "flat": ("", "%x, %x", f"{TYPE}, {TYPE}"),
        "tuple": (f"    %t = stablehlo.tuple %x, %x : {pair}\n", "%t", pair),
        "nested": (
            f"    %s = stablehlo.tuple %x : {single}\n    %t = stablehlo.tuple %s, %x : tuple<{single}, {TYPE}>\n",
            "%t",
            f"tuple<{single}, {TYPE}>",
        ),
    }[nesting]
    return program(f"{lines}    %y = stablehlo.custom_call @by.name({operands}) : ({types}) -> {TYPE}\n")


@pytest.mark.parametrize("other", ["flat", "tuple", "nested"])
@pytest.mark.parametrize("one", ["flat", "tuple", "nested"])
def test_a_tuple_is_another_operand_than_what_is_in_it(one: str, other: str) -> None:
    assert (verdict(of_tuple(one), of_tuple(other)) is Verdict.PROVED) is (one == other)


def test_a_tuple_of_results_is_several() -> None:
    several = f"    %r:2 = stablehlo.custom_call @by.name(%x) : ({TYPE}) -> ({TYPE}, {TYPE})\n"
    pair = f"tuple<{TYPE}, {TYPE}>"
    joined = (
        f"    %t = stablehlo.custom_call @by.name(%x) : ({TYPE}) -> {pair}\n"
        f"    %r = stablehlo.get_tuple_element %t[1] : ({pair}) -> {TYPE}\n"
    )
    one, other = several + NEGATED.replace("%x", "%r#1"), joined + NEGATED.replace("%x", "%r")
    assert verdict(program(one), program(other)) is Verdict.PROVED


EFFECT = "has_side_effect = true"
HAVE_EFFECTS = ("by.name", "by.function", "print", "tpu_custom_call", "lapack_spotrf_ffi", "AllocateBuffer", "TopK")
EFFECTS = {
    "left out": NEGATED,
    "twice": call(EFFECT, result="u") + call(EFFECT, result="v") + NEGATED,
    "of another value": NEGATED + call(EFFECT, of="y", result="u"),
    "otherwise": call(f'{EFFECT}, backend_config = "a"', result="u") + NEGATED,
}


@pytest.mark.parametrize("other", EFFECTS)
@pytest.mark.parametrize("target", [*HAVE_EFFECTS, "X64SplitLow", "ragged_all_to_all"])
def test_effects_count_whatever_is_known_of_the_target(target: str, other: str) -> None:
    one = program(call(EFFECT, target, result="u") + NEGATED)
    assert verdict(one, program(NEGATED + call(EFFECT, target, result="u"))) is Verdict.PROVED
    assert verdict(one, program(EFFECTS[other].replace("@by.name", f"@{target}"))) is Verdict.UNKNOWN


def top_k(kind: str, compared: str, attributes: str = "") -> str:
    """The greatest three by a comparator that says that of itself; by `chlo.top_k` if it is "chlo"."""
    types, one = f"tensor<3x{kind}>, tensor<3xi32>", f"tensor<{kind}>"
    if compared == "chlo":
        body = f"    %r, %i = chlo.top_k(%x, k = 3) : tensor<8x{kind}> -> ({types})\n    return %r, %i : {types}"
        return module(f"%x: tensor<8x{kind}>", types, body, 1)
    body = (
        f"    %r:2 = stablehlo.custom_call @TopK(%x) {{called_computations = [@order]{attributes}}}"
        f" : (tensor<8x{kind}>) -> ({types})\n    return %r#0, %r#1 : {types}"
    )
    order = f"""  func.func private @order(%a: {one}, %b: {one}, %c: tensor<i32>, %d: tensor<i32>) -> tensor<i1> {{
    %p = stablehlo.compare {compared} : ({one}, {one}) -> tensor<i1>
    return %p : tensor<i1>
  }}
"""
    return module(f"%x: tensor<8x{kind}>", types, body, 1).removesuffix("}\n") + order + "}\n"


@pytest.mark.parametrize(
    ("kind", "compared", "is_proved"),
    [
        ("f32", "GT, %a, %b", True),
        ("f32", "GT, %a, %b, FLOAT", True),
        ("f32", "LT, %b, %a, FLOAT", True),
        ("f32", "GT, %a, %b, TOTALORDER", False),
        ("f32", "GT, %b, %a", False),
        ("f32", "GE, %a, %b", False),
        ("i32", "GT, %a, %b, SIGNED", True),
        ("i32", "GT, %a, %b, UNSIGNED", False),
        ("ui32", "GT, %a, %b, UNSIGNED", True),
        ("ui32", "GT, %a, %b, SIGNED", False),
    ],
)
def test_the_best_are_so_by_an_order_of_their_type(kind: str, compared: str, is_proved: bool) -> None:
    assert (verdict(top_k(kind, "chlo"), top_k(kind, compared)) is Verdict.PROVED) is is_proved


def test_the_best_by_an_order_that_is_stated_otherwise_are_unknown() -> None:
    least = ", mhlo.attributes = {k = 3 : i64, largest = false}"
    found = verdict(top_k("f32", "chlo"), top_k("f32", "GT, %a, %b", least))
    assert found is Verdict.UNKNOWN


def by_bits(flipped: int = 2**31 - 1, direction: str = "GT", on: str = "ab", config: str = "stable") -> str:
    """The greatest three by the bits of numbers as XLA for TPUs compares them: of negative ones all but one flipped."""
    keys = "".join(
        f"""    %i{n} = stablehlo.bitcast_convert %{n} : (tensor<f32>) -> tensor<i32>
    %l{n} = stablehlo.compare LT, %i{n}, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %x{n} = stablehlo.xor %i{n}, %most : tensor<i32>
    %k{n} = stablehlo.select %l{n}, %x{n}, %i{n} : tensor<i1>, tensor<i32>
"""
        for n in "ab"
    )
    constants = f"""    %zero = stablehlo.constant dense<0> : tensor<i32>
    %most = stablehlo.constant dense<{flipped}> : tensor<i32>
"""
    first, second = on
    plain = top_k("f32", "GT, %a, %b", f', backend_config = "{config}"')
    compared = (
        f"    %p = stablehlo.compare {direction}, %k{first}, %k{second} : (tensor<i32>, tensor<i32>) -> tensor<i1>"
    )
    types = "(tensor<f32>, tensor<f32>)"
    return plain.replace(f"    %p = stablehlo.compare GT, %a, %b : {types} -> tensor<i1>", constants + keys + compared)


@pytest.mark.parametrize(
    "other",
    [
        top_k("f32", "chlo"),
        by_bits(flipped=2**31 - 2),
        by_bits(direction="LT"),
        by_bits(direction="GE"),
        by_bits(on="ba"),
        by_bits(config="unstable"),
    ],
    ids=["numbers", "other bits", "least", "not strict", "exchanged", "unstable"],
)
def test_the_best_by_another_comparator_are_so_by_the_same_alone(other: str) -> None:
    assert verdict(by_bits(), by_bits().replace("@order", "@another")) is Verdict.PROVED
    assert verdict(by_bits(), other) is Verdict.UNKNOWN


MARKS = ("Sharding", "LayoutConstraint", "MoveToHost", "annotate_device_placement", "xla.sdy.PropagationBarrier")


@pytest.mark.parametrize("to", ["tensor<8xi32>", "tensor<8xbf16>", "tensor<2x4xf32>", "tensor<4xf32>"])
@pytest.mark.parametrize("target", MARKS)
def test_marks_that_give_another_type_are_not_understood(target: str, to: str) -> None:
    marked = f"    %y = stablehlo.custom_call @{target}(%x) : ({TYPE}) -> {to}\n    return %y : {to}"
    plain = {
        "tensor<4xf32>": f"    %y = stablehlo.slice %x [0:4] : ({TYPE}) -> {to}",
        "tensor<2x4xf32>": f"    %y = stablehlo.reshape %x : ({TYPE}) -> {to}",
    }.get(to, f"    %y = stablehlo.convert %x : ({TYPE}) -> {to}")
    found = verdict(
        module(f"%x: {TYPE}", to, marked, 1), module(f"%x: {TYPE}", to, f"{plain}\n    return %y : {to}", 1)
    )
    assert found is Verdict.UNKNOWN
