"""A constant that a pass folded stands for what it was folded from, and for nothing that is further away."""

from __future__ import annotations

import numpy as np
import pytest

from hlo_verify.passes.chain.constant_values import computed
from hlo_verify.passes.chain.folded_constants import Folded, with_rests
from hlo_verify.passes.chain.pair_programs import pair_of_wholes
from hlo_verify.passes.diagnose.examine import prove
from hlo_verify.passes.load.load import load
from hlo_verify.report import Verdict


def program(*lines: str, kind: str = "tensor<f32>") -> str:
    body = "\n".join(lines)
    return f"module @m {{\nfunc.func public @main(%x: {kind}) -> {kind} {{\n{body}\nreturn %y : {kind}\n}}\n}}\n"


def constant(name: str, value: float, kind: str = "tensor<f32>") -> str:
    return f"{name} = stablehlo.constant dense<{value:.9e}> : {kind}"


def apply(name: str, operation: str, *operands: str, kind: str = "tensor<f32>") -> str:
    return f"{name} = stablehlo.{operation} {', '.join(operands)} : {kind}"


def verdict(before: str, after: str) -> tuple[Verdict, tuple[str, ...]]:
    first, second = load(before), load(after)
    readings = [reading.module for reading in Folded().readings(first, second)]
    proofs = [(prove(*pair_of_wholes(first, reading)).verdict, reading.notes) for reading in readings]
    return next((found for found in proofs if found[0] is Verdict.PROVED), proofs[0])


A, B = np.float32(0.7978846), np.float32(0.044715)
OPERATIONS = {"multiply": A * B, "divide": A / B, "add": A + B, "subtract": A - B}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_on_constants(operation: str) -> None:
    folded = float(OPERATIONS[operation])
    before = program(
        constant("%a", A), constant("%b", B), apply("%c", operation, "%a", "%b"), apply("%y", "multiply", "%x", "%c")
    )
    after = program(constant("%c", folded), apply("%y", "multiply", "%x", "%c"))
    found, notes = verdict(before, after)
    assert found is Verdict.PROVED
    assert len(notes) == 1 and notes[0].startswith("the constant ") and notes[0].endswith("rounded")
    off = float(np.nextafter(np.nextafter(np.float32(folded), np.float32(9)), np.float32(9)))
    found, notes = verdict(before, program(constant("%c", off), apply("%y", "multiply", "%x", "%c")))
    assert found is not Verdict.PROVED
    assert not notes


def test_division_by_a_constant() -> None:
    before = program(constant("%c", 3.0), apply("%y", "divide", "%x", "%c"))
    after = program(constant("%c", float(1 / np.float32(3))), apply("%y", "multiply", "%x", "%c"))
    assert verdict(before, after)[0] is Verdict.PROVED


def tenth(of_x: str, value: float = 0.1) -> str:
    """(x + 0.1) + x / 10, or x * 0.1."""
    made = {
        "divided": (constant("%c", 10.0), apply("%d", "divide", "%x", "%c")),
        "multiplied": (constant("%c", float(np.float32(value))), apply("%d", "multiply", "%x", "%c")),
        "added": (constant("%c", 10.0), apply("%d", "add", "%x", "%c")),
    }[of_x]
    tenth = constant("%a", float(np.float32(0.1))), apply("%b", "add", "%x", "%a")
    return program(*tenth, *made, apply("%y", "add", "%b", "%d"))


def test_the_inverse_of_a_divisor_may_be_there_already() -> None:
    """A learning rate's 0.1 is another number than the tenth that a division by 10 is turned into a product with."""
    found, notes = verdict(tenth("divided"), tenth("multiplied"))
    assert found is Verdict.PROVED
    assert notes == ("the constant 0.100000001 is 1 / 10, rounded",)
    near = float(np.nextafter(np.float32(0.1), np.float32(1)))
    assert verdict(tenth("divided"), tenth("multiplied", near))[0] is not Verdict.PROVED


def test_what_nothing_is_divided_by_has_no_inverse_there() -> None:
    readings = Folded().readings(load(tenth("added")), load(tenth("multiplied")))
    assert not any(reading.said for reading in readings)


def test_constants_that_were_apart() -> None:
    before = program(
        constant("%a", A), apply("%z", "multiply", "%x", "%a"), constant("%b", B), apply("%y", "multiply", "%z", "%b")
    )
    after = program(constant("%c", float(A * B)), apply("%y", "multiply", "%x", "%c"))
    assert verdict(before, after)[0] is Verdict.PROVED


def test_splats() -> None:
    kind = "tensor<4xf32>"
    before = program(
        constant("%a", A, kind),
        constant("%b", B, kind),
        apply("%c", "multiply", "%a", "%b", kind=kind),
        apply("%y", "multiply", "%x", "%c", kind=kind),
        kind=kind,
    )
    after = program(constant("%c", float(A * B), kind), apply("%y", "multiply", "%x", "%c", kind=kind), kind=kind)
    assert verdict(before, after)[0] is Verdict.PROVED


def test_what_was_there_before_stays() -> None:
    """A constant that both have is no folded one, even if the module computes a number close to it as well."""
    product = float(A * B)
    lines = [constant("%a", A), constant("%b", B), apply("%c", "multiply", "%a", "%b"), constant("%d", product)]
    text = program(*lines, apply("%e", "add", "%c", "%d"), apply("%y", "multiply", "%x", "%e"))
    assert verdict(text, text) == (Verdict.PROVED, ())


def test_a_number_that_cancellation_leaves_is_no_rounding() -> None:
    """(2^24 + 1) - 2^24 is 0 in single precision and 1 over the reals: a zero is not taken for it."""
    big = constant("%a", 2.0**24), constant("%b", 1.0)
    sums = apply("%s", "add", "%a", "%b"), apply("%c", "subtract", "%s", "%a")
    before = program(*big, *sums, apply("%y", "multiply", "%x", "%c"))
    after = program(constant("%c", 0.0), apply("%y", "multiply", "%x", "%c"))
    found, notes = verdict(before, after)
    assert found is not Verdict.PROVED
    assert not notes


def test_what_is_known_holds_for_later_modules() -> None:
    folded = Folded()
    first = load(program(constant("%c", 3.0), apply("%y", "divide", "%x", "%c")))
    second = load(program(constant("%c", float(1 / np.float32(3))), apply("%y", "multiply", "%x", "%c")))
    for _ in range(2):
        second = next(folded.readings(first, second)).module
        assert prove(*pair_of_wholes(first, second)).verdict is Verdict.PROVED
        again = load(program(constant("%d", float(1 / np.float32(3))), apply("%y", "multiply", "%d", "%x")))
        assert prove(*pair_of_wholes(first, next(folded.readings(second, again)).module)).verdict is Verdict.PROVED


def test_a_constant_that_is_there_already_is_told_apart_by_its_use() -> None:
    """0.1 * 3 folds into a number that the program has for another purpose too."""
    product = float(np.float32(0.1) * np.float32(3))
    lines = [constant("%a", np.float32(0.1)), constant("%b", 3.0), constant("%d", product)]
    sums = [apply("%s", "add", "%x", "%d"), apply("%y", "multiply", "%s", "%c")]
    before = program(*lines, apply("%c", "multiply", "%a", "%b"), *sums)
    assert verdict(before, program(lines[2], constant("%c", product), *sums))[0] is Verdict.PROVED
    assert (
        verdict(before, program(lines[2], constant("%c", product), *reversed(sums[:1]), sums[1]))[0] is Verdict.PROVED
    )
    wrong = [apply("%s", "add", "%x", "%c"), apply("%y", "multiply", "%s", "%d")]
    assert verdict(before, program(lines[2], constant("%c", product * 1.01), *wrong))[0] is not Verdict.PROVED


def test_an_exact_product_is_no_rounding_of_another() -> None:
    """0.1 / 512 is exact; what 0.7 * 0.00027901787 rounds to is the same number, and not what was meant."""
    lines = [constant("%a", np.float32(0.1)), constant("%b", 2.0**-9)]
    more = [constant("%c", np.float32(0.7)), constant("%d", np.float32(0.00027901787))]
    rest = [apply("%t", "multiply", "%x", "%c"), apply("%u", "multiply", "%t", "%d")]
    before = program(*lines, *more, apply("%e", "multiply", "%a", "%b"), *rest, apply("%y", "multiply", "%u", "%e"))
    after = program(*more, constant("%e", float(np.float32(0.1) * 2.0**-9)), *rest, apply("%y", "multiply", "%u", "%e"))
    assert verdict(before, after) == (Verdict.PROVED, ())


@pytest.mark.parametrize(
    ("operation", "given", "written"),
    [("sqrt", 2 / np.pi, np.sqrt(2 / np.pi)), ("log", 10.0, np.log(10.0)), ("rsqrt", 2 * np.pi, (2 * np.pi) ** -0.5)],
)
def test_what_an_irrational_function_is_as_people_write_it(operation: str, given: float, written: float) -> None:
    """f32(sqrt(2 / pi)) is the number after the root of f32(2 / pi)."""
    before = program(constant("%a", given), apply("%c", operation, "%a"), apply("%y", "multiply", "%x", "%c"))

    def found(number: float) -> Verdict:
        return verdict(before, program(constant("%c", number), apply("%y", "multiply", "%x", "%c")))[0]

    assert found(written) is Verdict.PROVED
    number = np.float32(written)
    assert found(float(number * np.float32(1 + 2**-21))) is not Verdict.PROVED
    assert found(float(number * np.float32(1 - 2**-21))) is not Verdict.PROVED


def test_the_next_number_is_none_that_sums_and_products_have() -> None:
    """3 is exact, and so is 9: the number after it is another one."""
    after = program(
        constant("%c", float(np.nextafter(np.float32(9), np.float32(10)))), apply("%y", "multiply", "%x", "%c")
    )
    before = program(constant("%a", 3.0), apply("%c", "multiply", "%a", "%a"), apply("%y", "multiply", "%x", "%c"))
    assert verdict(before, after)[0] is not Verdict.PROVED


def by_people(numbers: tuple[float, ...], written: float) -> tuple[str, ...]:
    """What a number that a person wrote is taken for, where the other module computes with some numbers."""
    uses = [apply(f"%y{n}", "multiply", "%x", f"%c{n}") for n in range(len(numbers))]
    sums = [apply(f"%z{n}", "add", "%x" if not n else f"%z{n - 1}", f"%y{n}") for n in range(len(numbers))]
    lines = [constant(f"%c{n}", number) for n, number in enumerate(numbers)]
    last = apply("%y", "add", f"%z{len(numbers) - 1}", "%x")
    before = program(*lines, *uses, *sums, last)
    after = program(constant("%c", written), apply("%y", "multiply", "%x", "%c"))
    return next(Folded(by_people=True).readings(load(before), load(after))).said


WRITTEN = {
    "a power": ((0.9,), 0.9**3),
    "one and another": ((0.1,), 1 + 0.1),
    "one and a product": ((0.01, 0.7), 1 + 0.01 * 0.7),
    "the rest of a product": ((0.01, 0.1), 1 - 0.01 * 0.1),
    "the rest of a power": ((0.7,), 1 - 0.7**2),
    "the rest of a multiple": ((0.13,), 1 - 4 * 0.13),
    "a multiple": ((0.1,), 3 * 0.1),
    "the opposite of a multiple": ((0.1,), -6 * 0.1),
    "one and a multiple": ((0.1,), 1 + 2 * 0.1),
    "a product of three": ((0.1, 0.7, 0.3), 0.1 * 0.7 * 0.3),
    "a quotient of a product": ((0.7, 0.1, 0.3), 0.7 * 0.1 / 0.3),
    "a product with an opposite": ((0.7978846, -0.044715), 0.7978846 * 0.044715),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_people_compute_in_double_precision(name: str) -> None:
    numbers, written = WRITTEN[name]
    assert any("is" in said for said in by_people(numbers, written))
    for off in (1 + 2**-19, 1 - 2**-19, 1.0013, -1.7):
        assert not by_people(numbers, written * off)


def test_what_people_compute_of_numbers_that_are_exact_is_exact() -> None:
    """The number after 9 is no power of 3, and 0.75 * 1.5 has a value."""
    up = np.float32(100)
    assert not by_people((3.0,), float(np.nextafter(np.float32(27), up)))
    assert not by_people((0.75, 1.5), float(np.nextafter(np.float32(1.125), up)))
    assert not by_people((0.9,), float(np.nextafter(np.float32(0.9), up)))


def test_a_number_that_is_divided_by_itself_is_off_by_its_rounding_once() -> None:
    """The neighbour of a third is no third: `c / c / c` is 1/c, not off by three roundings."""
    beside = float(np.nextafter(np.float32(1 / 3), np.float32(1)))
    assert not by_people((beside,), 3.0)
    assert by_people((float(np.float32(1 / 3)),), float(np.float32(1 / 3)) ** 2)


def test_what_a_large_number_is_beside_one_is_no_computation() -> None:
    """A mask of -1e9 in one module, and 1e9 in the other."""
    assert not by_people((1e9,), -1e9)
    assert not by_people((-1e9,), 1e9)
    assert by_people((0.01,), 0.99)


def test_what_else_a_number_may_be() -> None:
    """0.9999 is what 1 lacks of 0.01 * 0.01, or of 0.001 * 0.1."""
    numbers = (0.01, 0.001, 0.1)
    uses = [apply(f"%y{n}", "multiply", "%x", f"%c{n}") for n in range(3)]
    lines = [constant(f"%c{n}", number) for n, number in enumerate(numbers)]
    sums = [apply("%z", "add", "%y0", "%y1"), apply("%y", "add", "%z", "%y2")]
    before = load(program(*lines, *uses, *sums))
    after = load(program(constant("%c", 0.9999), apply("%y", "multiply", "%x", "%c")))
    found = [reading.said for reading in Folded(by_people=True).readings(before, after)]
    assert len(found) == len(set(found)) > 1
    assert any("0.1" in said and "0.001" in said for (said,) in found)


def test_what_is_made_in_single_precision_may_be_something_else_as_well() -> None:
    """0.09 is `0.1 - 0.01` as it stands, and `0.9 * 0.1` where those are rounded first."""
    said = {text for texts in _readings((0.9, 0.1, 0.99, 0.01), 0.09) for text in texts}
    assert {part in text for part in (" - ", " * ") for text in said} == {True, False}
    assert any("0.899999976 * 0.100000001" in text for text in said) and any(
        " - 0.00999999978" in text for text in said
    )


def test_a_multiple_or_the_rest_of_one() -> None:
    """0.6 is what four times 0.1 leaves of 1, or six times 0.1; what two numbers make is taken for that alone."""
    assert {"(4 * 0.1" in said for (said,) in _readings((0.1,), 0.6)} == {True, False}
    assert not any("* 0.1" in said for (said,) in _readings((0.1, 0.4), 0.6))


def _readings(numbers: tuple[float, ...], written: float) -> list[tuple[str, ...]]:
    lines = [constant(f"%c{n}", number) for n, number in enumerate(numbers)]
    uses = [apply(f"%y{n + 1}", "multiply", f"%y{n}" if n else "%x", f"%c{n}") for n in range(len(numbers))]
    last = apply("%y", "add", f"%y{len(numbers)}", "%x")
    before = load(program(*lines, *uses, last))
    after = load(program(constant("%c", written), apply("%y", "multiply", "%x", "%c")))
    return [reading.said for reading in Folded(by_people=True).readings(before, after)]


def test_the_logarithm_of_a_base() -> None:
    before = program(constant("%c", 10000.0), apply("%y", "power", "%c", "%x"))
    log = np.log(10000.0)
    for number, is_found in ((log, True), (-log, True), (-log / 2, False), (log * (1 + 2**-20), False)):
        after = program(constant("%c", number), apply("%z", "multiply", "%x", "%c"), apply("%y", "exponential", "%z"))
        found = next(Folded(by_people=True).readings(load(before), load(after))).said
        assert bool(found) is is_found


def test_an_opposite_on_the_way() -> None:
    """`-log(10000) / 4`, as places are encoded."""
    computed_there = (
        apply("%l", "log", "%c"),
        apply("%n", "negate", "%l"),
        apply("%q", "divide", "%n", "%d"),
        apply("%y", "multiply", "%x", "%q"),
    )
    before = program(constant("%c", 10000.0), constant("%d", 4.0), *computed_there)
    wanted = np.float32(np.float32(-np.log(np.float32(10000.0))) / np.float32(4))
    for number, is_found in ((wanted, True), (-wanted, False), (wanted * np.float32(1 + 2**-20), False)):
        after = program(constant("%c", float(number)), apply("%y", "multiply", "%x", "%c"))
        found = [said for reading in Folded().readings(load(before), load(after)) for said in reading.said]
        assert any("(0 - log(10000)) / 4" in said for said in found) is is_found


def test_a_function_that_is_too_large_for_its_type_is_no_number() -> None:
    """Which numpy warns of, of types of half precision too."""
    large = program(
        constant("%c", 6e4, "tensor<f16>"),
        apply("%e", "exponential", "%c", kind="tensor<f16>"),
        apply("%y", "multiply", "%x", "%e", kind="tensor<f16>"),
        kind="tensor<f16>",
    )
    assert all(np.isfinite(float(found.rounded)) for found in computed(load(large).main))


@pytest.mark.parametrize(
    ("whole", "part", "is_rest"),
    [
        (0.9, 0.1, True),
        (0.999, 0.001, True),
        (0.75, 0.25, False),
        (0.9, 0.10001, False),
        (0.1, 0.9, True),
        (0.9, 0.9, False),
    ],
)
def test_what_is_left_of_one_in_either_module(whole: float, part: float, is_rest: bool) -> None:
    """Where both are in one module, or one in each."""
    one, other = (program(constant("%c", c), apply("%y", "multiply", "%x", "%c")) for c in (whole, part))
    both = program(
        constant("%c", whole),
        constant("%d", part),
        apply("%z", "multiply", "%x", "%c"),
        apply("%y", "multiply", "%z", "%d"),
    )
    for pair in ((one, other), (both, both), (both, one)):
        found = with_rests(*map(load, pair))
        assert (found is not None) is is_rest
        assert found is None or any("1 - " in said for reading in found for said in reading.said)


@pytest.mark.parametrize(
    ("whole", "parts", "size", "said"),
    [
        (0.9, (0.00625,), 16, "1 - (16 * 0.00625000009)"),
        (-0.9, (0.00625,), 16, "(16 * 0.00625000009) - 1"),
        (0.9, (0.00625, 0.1), 16, "1 - 0.100000001"),  # what leaves it by itself comes first
        (0.9, (0.00625,), 8, None),
        (0.9, (0.0062501,), 16, None),
        (0.75, (0.015625,), 16, None),  # nothing is rounded
    ],
)
def test_what_a_part_for_each_of_some_leaves_of_one(
    whole: float, parts: tuple[float, ...], size: int, said: str | None
) -> None:
    kind = f"tensor<{size}xf32>"
    lines = [constant(f"%c{n}", number, kind) for n, number in enumerate((whole, *parts))]
    lines += [apply(f"%d{n}", "multiply", "%x", f"%c{n}", kind=kind) for n in range(len(parts) + 1)]
    last = apply("%y", "add", f"%d{len(parts)}", "%x", kind=kind)
    module = load(program(*lines, last, kind=kind))
    found = with_rests(module, module)
    assert [found is None, *(said is not None and said in each.said[0] for each in found or ())] in (
        [said is None],
        [said is None, True, True],
    )


def test_a_rest_is_one_where_something_is_multiplied_by_it() -> None:
    """A number that is a weight and the base of a power may be read as a rest in the weight alone, or in neither."""
    weight, power = apply("%v", "multiply", "%x", "%c"), apply("%w", "power", "%c", "%x")
    rest = "0.899999976 is 1 - 0.100000001"
    for uses, as_weights, found in (
        ((weight, power), (), ["multiply", "power"]),
        ((weight, power), (rest,), ["multiply"]),
        ((power,), (rest,), []),
    ):
        module = load(program(constant("%c", 0.9), constant("%d", 0.1), *uses, apply("%y", "add", "%x", "%d")))
        readings = with_rests(module, module, as_weights=as_weights)
        read = (
            [] if readings is None else [op for op in readings[0].module.main.ops if op.name in ("multiply", "power")]
        )
        assert [op.name for op in read if not readings or readings[0].meant.keys() & set(op.operands)] == found
        assert with_rests(module, module, (rest,), as_weights) is None


@pytest.mark.parametrize("kinds", [("f64", "f16"), ("f16", "f64"), ("f32", "bf16")])
def test_numbers_of_two_types_are_no_rests_of_each_other(kinds: tuple[str, str]) -> None:
    """The bits of one are not as many as those of the other."""
    lines = [
        line
        for k, (kind, value) in enumerate(zip(kinds, (0.9, 0.1), strict=True))
        for line in (
            constant(f"%c{k}", value, f"tensor<{kind}>"),
            f"%d{k} = stablehlo.convert %c{k} : (tensor<{kind}>) -> tensor<f32>",
        )
    ]
    module = load(program(*lines, apply("%y", "multiply", "%d0", "%d1")))
    assert with_rests(module, module) is None
