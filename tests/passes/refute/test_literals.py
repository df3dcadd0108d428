"""A constant that one module alone holds may be what the other computes of constants, rounded to the type."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.passes.load.load import load
from hlo_verify.passes.refute.literals import Literals, computes_with_constants, may_be_too_large
from hlo_verify.program.element_types import DTYPES
from tests.support.pairs import REPLICATED, module, on

FUNCTIONS = {
    "tanh": (np.tanh, (2.0, 6.0, -6.0)),
    "exponential": (np.exp, (-30.0, 2.0, 20.0)),
    "exponential_minus_one": (np.expm1, (-12.0,)),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), (-30.0, 12.0)),
}
NARROW = ["bf16", "f16", "f8E5M2", "f8E4M3"]


def plus(dtype: str, lines: str) -> str:
    """The argument and `%b`."""
    kind = f"tensor<4x{dtype}>"
    body = f"{lines}\n%r = stablehlo.add %b, %x : {kind}\nreturn %r : {kind}".replace("TYPE", kind)
    return module(f"%x: {kind} {on(REPLICATED)}", f"{kind} {on(REPLICATED)}", body, 1)


def constant(name: str, value: float, dtype: str) -> str:
    bits = np.asarray(value, DTYPES[dtype]).view(f"u{ml_dtypes.finfo(DTYPES[dtype]).bits // 8}")
    return f"%{name} = stablehlo.constant dense<0x{int(bits):0{bits.itemsize * 2}X}> : TYPE"


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_function_of_a_constant_is_folded_to_is_not_refuted(name: str, dtype: str) -> None:
    function, points = FUNCTIONS[name]
    for point in points:
        with np.errstate(over="ignore"):
            folded = float(np.asarray(function(np.float64(point))).astype(DTYPES[dtype]))
        computed = plus(dtype, constant("a", point, dtype) + f"\n%b = stablehlo.{name} %a : TYPE")
        literal = plus(dtype, constant("b", folded, dtype))
        for pair in ((computed, literal), (literal, computed)):
            assert hlo_verify.verify(*pair).verdict is not Verdict.REFUTED, (name, point, folded)


FOLDED = {
    "added": ("add", 1.0, 1e-8),
    "next to a large one": ("add", 2.0**24, 1.0),
    "less than one": ("subtract", 1.0, 1e-8),
    "a power of nearly one": ("power", 0.999999999, 0.5),
    "too small": ("multiply", -1e-30, 1e-30),
    "too large": ("multiply", 1e30, 1e30),
}


@pytest.mark.parametrize("name", FOLDED)
def test_a_plain_number_of_both_may_be_folded_as_well(name: str) -> None:
    """Each module has the number for another purpose, where it is meant as it is written."""
    kind, *given = FOLDED[name]
    with np.errstate(over="ignore"):
        wide = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "power": np.power}[kind](*given)
        folded = float(np.float32(wide))
    lines = [constant(name, value, "f32") for name, value in (("m", folded), ("p", given[0]), ("q", given[1]))]
    meant = "\n".join([*lines, "%y = stablehlo.maximum %x, %m : TYPE"])
    computed = plus("f32", f"{meant}\n%c = stablehlo.{kind} %p, %q : TYPE\n%b = stablehlo.add %c, %y : TYPE")
    literal = plus("f32", f"{meant}\n%b = stablehlo.add %m, %y : TYPE")
    for pair in ((computed, literal), (literal, computed)):
        assert hlo_verify.verify(*pair).verdict is not Verdict.REFUTED
    if name == "too large":
        return  # of an infinity that is none, nothing is known
    other = constant("c", 0.5, "f32") + "\n%b = stablehlo.add %c, %y : TYPE"
    for pair in ((computed, plus("f32", f"{meant}\n{other}")), (plus("f32", f"{meant}\n{other}"), computed)):
        assert hlo_verify.verify(*pair).verdict is Verdict.REFUTED


LEFT_OUT = {
    ("multiply", "tanh", 6.0, "bf16"): Verdict.UNKNOWN,
    ("multiply", "tanh", 6.0, "f32"): Verdict.REFUTED,  # 0.9999877, which is no 1 there
    ("multiply", "tanh", 2.0, "bf16"): Verdict.REFUTED,
    ("add", "exponential", -120.0, "f32"): Verdict.UNKNOWN,
    ("add", "exponential", -20.0, "f32"): Verdict.REFUTED,
    ("add", "exponential", -20.0, "f16"): Verdict.UNKNOWN,
}


@pytest.mark.parametrize("case", LEFT_OUT, ids=str)
def test_what_is_folded_to_a_factor_of_1_or_an_addend_of_0_leaves_no_constant_behind(
    case: tuple[str, str, float, str],
) -> None:
    kind, function, point, dtype = case
    lines = f"%e = stablehlo.{function} %c : TYPE\n%b = stablehlo.{kind} %x, %e : TYPE"
    computed = plus(dtype, f"{constant('c', point, dtype)}\n{lines}")
    left_out = plus(dtype, "%b = stablehlo.maximum %x, %x : TYPE")
    for pair in ((computed, left_out), (left_out, computed)):
        assert hlo_verify.verify(*pair).verdict is LEFT_OUT[case]


def test_a_plain_number_is_meant_where_what_is_computed_of_constants_is_another_or_that_itself() -> None:
    """Of an exponent and a sum of halves, neither brings a doubt upon 1.0."""
    half = constant("h", 0.5, "f32") + "\n%c = stablehlo.add %h, %h : TYPE\n%e = stablehlo.exponential %h : TYPE\n"
    one = constant("m", 1.0, "f32") + "\n%y = stablehlo.maximum %x, %m : TYPE\n"
    rest = "%d = stablehlo.add %c, %e : TYPE\n%z = stablehlo.add %d, %y : TYPE\n%b = stablehlo.add %z, %SAME : TYPE"
    pair = [plus("f32", half + one + rest.replace("SAME", name)) for name in ("m", "h")]
    found = hlo_verify.verify(*pair)
    assert found.verdict is Verdict.REFUTED


COMPUTED: dict[str, tuple[str, bool]] = {
    "a place in order": ("%c = stablehlo.subtract %p, %q : TYPE\n%d = stablehlo.multiply %c, %h : TYPE", False),
    "rounded down": ("%c = stablehlo.multiply %p, %h : TYPE\n%d = stablehlo.floor %c : TYPE", False),
    "a sum that is rounded": ("%c = stablehlo.add %p, %t : TYPE", True),
    "a product that is rounded": ("%c = stablehlo.multiply %t, %t : TYPE", True),
    "of a number that is rounded": ("%c = stablehlo.subtract %t, %t : TYPE", True),
    "a quotient": ("%c = stablehlo.divide %q, %p : TYPE", True),
    "a root": ("%c = stablehlo.sqrt %p : TYPE", True),
    "too large": ("%c = stablehlo.multiply %g, %g : TYPE", True),
    "too small": ("%c = stablehlo.multiply %s, %s : TYPE", True),
    "of a table": ("%i = stablehlo.iota dim = 0 : TYPE\n%c = stablehlo.add %i, %p : TYPE", True),
    "of an argument": ("%c = stablehlo.multiply %x, %h : TYPE", False),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_computed_without_a_rounding_is_folded_to_nothing_else(name: str) -> None:
    lines, is_rounded = COMPUTED[name]
    given = {"p": 3.0, "q": 1.0, "h": 0.5, "t": 0.1, "g": 2.0**100, "s": 2.0**-100}
    constants = "\n".join(constant(*each, "f32") for each in given.items())
    module = load(plus("f32", f"{constants}\n{lines}\n%b = stablehlo.maximum %x, %x : TYPE"))
    assert computes_with_constants(module) is is_rounded


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", NARROW)
def test_what_it_is_not_is_refuted(dtype: str) -> None:
    computed = plus(dtype, constant("a", 6.0, dtype) + "\n%b = stablehlo.tanh %a : TYPE")
    assert hlo_verify.verify(computed, plus(dtype, constant("b", 2.0, dtype))).verdict is Verdict.REFUTED


@pytest.mark.drawn(1)
@pytest.mark.parametrize("dtype", ["f32", *NARROW])
def test_where_nothing_is_computed_of_constants_a_plain_one_is_meant_as_it_is_written(dtype: str) -> None:
    one, other = (plus(dtype, constant("b", value, dtype)) for value in (1.0, 0.0))
    assert hlo_verify.verify(one, other).verdict is Verdict.REFUTED


TOO_LARGE = {
    "an_exponential": ("%a = stablehlo.constant dense<1.0e2> : TYPE\n%b = stablehlo.exponential %a : TYPE", True),
    "a_pole": (
        "%a = stablehlo.constant dense<0.0> : TYPE\n%c = stablehlo.log %a : TYPE\n%b = stablehlo.negate %c : TYPE",
        True,
    ),
    "a_product": ("%a = stablehlo.constant dense<1.0e30> : TYPE\n%b = stablehlo.multiply %a, %a : TYPE", True),
    "of_one_element": (
        "%a = stablehlo.constant dense<[1.0, 2.0, 3.0e2, 4.0]> : TYPE\n%b = stablehlo.exponential %a : TYPE",
        True,
    ),
    "of_large_integers": (
        "%i = stablehlo.constant dense<1000000> : tensor<4xi32>\n"
        "%c = stablehlo.convert %i : (tensor<4xi32>) -> tensor<4xf16>\n"
        "%b = stablehlo.convert %c : (tensor<4xf16>) -> TYPE",
        True,
    ),
    "of_a_narrower_type": (
        "%a = stablehlo.constant dense<1.0e5> : TYPE\n%c = stablehlo.convert %a : (TYPE) -> tensor<4xf16>\n"
        "%b = stablehlo.convert %c : (tensor<4xf16>) -> TYPE",
        True,
    ),
    "what_is_not_enclosed": (
        "%a = stablehlo.constant dense<1.0> : TYPE\n"
        '%b = stablehlo.custom_call @unknown(%a) {backend_config = ""} : (TYPE) -> TYPE',
        True,
    ),
    "a_fraction": (
        "%a = stablehlo.constant dense<1.0> : TYPE\n%c = stablehlo.constant dense<1.6e1> : TYPE\n"
        "%b = stablehlo.divide %a, %c : TYPE",
        False,
    ),
    "integers": (
        "%i = stablehlo.iota dim = 0 : tensor<4xi32>\n%j = stablehlo.add %i, %i : tensor<4xi32>\n"
        "%b = stablehlo.convert %j : (tensor<4xi32>) -> TYPE",
        False,
    ),
    "places": (
        "%i = stablehlo.iota dim = 0 : TYPE\n%a = stablehlo.constant dense<-5.0e-1> : TYPE\n"
        "%c = stablehlo.multiply %i, %a : TYPE\n%b = stablehlo.exponential %c : TYPE",
        False,
    ),
    "no_number": (
        "%a = stablehlo.constant dense<0x7FC00000> : TYPE\n%c = stablehlo.constant dense<1.0> : TYPE\n"
        "%d = stablehlo.add %c, %c : TYPE\n%b = stablehlo.maximum %a, %d : TYPE",
        False,
    ),
    "chosen_instead_of_no_number": (
        "%a = stablehlo.constant dense<0x7FC00000> : TYPE\n%c = stablehlo.constant dense<1.0e2> : TYPE\n"
        "%p = stablehlo.compare NE, %a, %a : (TYPE, TYPE) -> tensor<4xi1>\n"
        "%d = stablehlo.select %p, %c, %a : tensor<4xi1>, TYPE\n%b = stablehlo.exponential %d : TYPE",
        True,
    ),
    "an_infinity": (
        "%a = stablehlo.constant dense<0xFF800000> : TYPE\n%c = stablehlo.convert %a : (TYPE) -> tensor<4xf16>\n"
        "%d = stablehlo.convert %c : (tensor<4xf16>) -> TYPE\n%b = stablehlo.abs %d : TYPE",
        False,
    ),
    "a_mask_of_infinities": (
        "%a = stablehlo.constant dense<0xFF800000> : TYPE\n%z = stablehlo.constant dense<0.0> : TYPE\n"
        "%i = stablehlo.iota dim = 0 : TYPE\n%p = stablehlo.compare LT, %i, %z : (TYPE, TYPE) -> tensor<4xi1>\n"
        "%b = stablehlo.select %p, %z, %a : tensor<4xi1>, TYPE",
        False,
    ),
    "an_exponential_of_such_a_mask": (
        "%a = stablehlo.constant dense<0xFF800000> : TYPE\n%z = stablehlo.constant dense<1.0e2> : TYPE\n"
        "%i = stablehlo.iota dim = 0 : TYPE\n%p = stablehlo.compare LT, %i, %z : (TYPE, TYPE) -> tensor<4xi1>\n"
        "%d = stablehlo.select %p, %z, %a : tensor<4xi1>, TYPE\n%b = stablehlo.exponential %d : TYPE",
        True,
    ),
    "arguments": ("%b = stablehlo.multiply %x, %x : TYPE", False),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_may_be_folded_to_an_infinity(name: str) -> None:
    lines, is_too_large = TOO_LARGE[name]
    assert may_be_too_large(load(plus("f32", lines))) is is_too_large


IS_INFINITE = """%inf = stablehlo.constant dense<0x7F800000> : TYPE
%is = stablehlo.compare EQ, %x, %inf, FLOAT : (TYPE, TYPE) -> tensor<4xi1>
%zero = stablehlo.constant dense<0.0> : TYPE
%y = stablehlo.select %is, %zero, %x : tensor<4xi1>, TYPE
%k = stablehlo.constant dense<1.6e1> : TYPE
%c = stablehlo.KIND %k : TYPE
%b = stablehlo.add %y, %c : TYPE"""


def test_what_is_asked_of_infinity_is_asked_of_infinity() -> None:
    """JAX asks in gradients of `logaddexp` whether something is infinite; a program by hand does not."""
    half = "%h = stablehlo.constant dense<5.0e-1> : TYPE\n%a = stablehlo.multiply %x, %h : TYPE\n"
    other = "%f = stablehlo.constant dense<4.0> : TYPE\n%b = stablehlo.add %a, %f : TYPE"
    pair = plus("f32", IS_INFINITE.replace("KIND", "sqrt")), plus("f32", half + other)
    assert hlo_verify.verify(*pair).verdict is Verdict.REFUTED


@pytest.mark.parametrize("value", [1019 / 1024, -1.0])
def test_a_plain_number_of_a_table_is_one_by_chance(value: float) -> None:
    """One in 2^12 numbers of a table has few bits, and the cosine of 355 is rounded to -1; 0 is 0."""
    positions = np.arange(400)
    table = np.cos(positions / 7).astype(np.float32)
    near = int(np.argmin(np.abs(table - value)))
    exact = table.astype(np.float64)
    exact[near] = value * (1 + 2.0**-25)  # what the other module has, of which that is the rounding
    table[near] = value
    off = Literals(frozenset())(table, "f32")
    assert (np.abs(exact - table) <= off).all()
    assert not Literals(frozenset())(np.array([0.5, value, 0.1]), "f32")[:2].any()
    assert not Literals(frozenset())(np.array([0.0, 0.1, 0.3]), "f32")[0]


def test_a_table_that_is_computed_by_position_is_not_refuted() -> None:
    """Of 4096 cosines in single precision one is -1 and one has 12 bits."""
    mesh = jax.sharding.AbstractMesh((4096,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    table = np.cos(np.arange(4096) / 7)[:, None].astype(np.float32)

    def local(x: jax.Array) -> jax.Array:
        return x * jnp.cos((lax.axis_index("d") + jnp.zeros((1, 1))) / 7)

    on_devices = jax.shard_map(local, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    found = hlo_verify.check(lambda x: x * table, on_devices, jax.ShapeDtypeStruct((4096, 1), jnp.float32))
    assert found.verdict is not Verdict.REFUTED


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_the_bits_of_integers_that_are_constants(bits: int) -> None:
    """Their ranges say nothing of a number that has these bits: in a narrow type, it may be beyond the largest."""
    dtype = {8: "f8E5M2", 16: "bf16", 32: "f32"}[bits]
    one, two = {8: (0x3C, 0x40), 16: (0x3F80, 0x4000), 32: (0x3F800000, 0x40000000)}[bits]
    lines = f"""%a = stablehlo.constant dense<0> : tensor<4xui{bits}>
        %c = stablehlo.constant dense<OTHER> : tensor<4xui{bits}>
        %d = stablehlo.or %a, %c : tensor<4xui{bits}>
        %b = stablehlo.bitcast_convert %d : (tensor<4xui{bits}>) -> TYPE"""
    pair = [plus(dtype, lines.replace("OTHER", str(number))) for number in (one, two)]
    assert hlo_verify.verify(*pair).verdict is (Verdict.UNKNOWN if bits == 8 else Verdict.REFUTED)
    assert hlo_verify.verify(pair[0], pair[0]).verdict is Verdict.PROVED


def test_infinities_that_masks_and_guards_write_are_meant() -> None:
    """A softmax that is merged from parts of which some are masked altogether asks for infinities, and JAX converts the
    one that masks: neither is what something finite was folded to."""
    mesh = AbstractMesh((2,), ("d",), axis_types=(AxisType.Auto,))

    def masked(scores: jax.Array, first: jax.Array | int) -> jax.Array:
        columns = first + jnp.arange(scores.shape[1])
        return jnp.where(columns <= jnp.arange(4)[:, None], scores, -jnp.inf)

    def whole(scores: jax.Array, values: jax.Array) -> jax.Array:
        return jax.nn.softmax(masked(scores, 0), axis=-1) @ values

    def merged(scores: jax.Array, values: jax.Array) -> jax.Array:
        """Less the maxima in whose units the sums are."""
        x = masked(scores, lax.axis_index("d") * len(values))
        most = x.max(-1)
        weights = jnp.exp(x - jnp.where(jnp.isinf(most), 0, most)[:, None])
        sums = weights.sum(-1)
        logarithms, parts = lax.all_gather((jnp.log(sums), weights @ values / jnp.where(sums == 0, 1, sums)), "d")
        return (jax.nn.softmax(logarithms, axis=0) * parts).sum(0)

    mapped = jax.shard_map(merged, mesh=mesh, in_specs=(P(None, "d"), P("d")), out_specs=P(), check_vma=False)
    shapes = jax.ShapeDtypeStruct((4, 4), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.float32)
    assert hlo_verify.check(whole, mapped, *shapes).verdict is Verdict.REFUTED
