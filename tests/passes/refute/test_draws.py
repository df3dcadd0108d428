"""Inputs are drawn so that shards differ which devices make of a dimension that comes whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hlo_verify.passes.load.load import load
from hlo_verify.passes.refute.draws import AT_ZERO, EVEN, Drawing, Zeroed, shards_inside, sizes_of_constants
from hlo_verify.passes.refute.search import Search
from hlo_verify.program.pair import Pair, pair_of
from hlo_verify.program.preconditions import apply, parse
from tests.passes.refute.test_search import pair
from tests.support.pairs import REPLICATED, module, on

SIZE, DEVICES = 64, 4
WHOLE, PART = f"tensor<{SIZE}xf32>", f"tensor<{SIZE // DEVICES}xf32>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
GROUPS = f"replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, {CHANNEL}"
OWN = f"""
    %d = stablehlo.partition_id : tensor<ui32>
    %k = stablehlo.convert %d : (tensor<ui32>) -> tensor<i32>
    %n = stablehlo.constant dense<{SIZE // DEVICES}> : tensor<i32>
    %b = stablehlo.multiply %k, %n : tensor<i32>
    %p = stablehlo.dynamic_slice %x, %b, sizes = [{SIZE // DEVICES}] : ({WHOLE}, tensor<i32>) -> {PART}"""
JOINED = f"""
    %r = "stablehlo.all_gather"(%q) {{all_gather_dim = 0 : i64, {GROUPS}, use_global_device_ids}} :
      ({PART}) -> {WHOLE}"""
GATHERED = f"""{OWN}
    %q = stablehlo.cosine %p : {PART}{JOINED}"""


def permuted(pairs: str) -> str:
    """Devices send their shards to others before these are joined."""
    return f"""{OWN}
    %o = stablehlo.cosine %p : {PART}
    %q = "stablehlo.collective_permute"(%o) {{source_target_pairs = dense<{pairs}> : tensor<4x2xi64>, {CHANNEL}}} :
      ({PART}) -> {PART}{JOINED}"""


def split_inside(body: str) -> Pair:
    """The cosine of what comes whole, which devices compute in shards."""
    given, found = f"%x: {WHOLE} {on(REPLICATED)}", f"{WHOLE} {on(REPLICATED)}"
    end = f"\n    return %r : {WHOLE}"
    logical = module(given, found, f"    %r = stablehlo.cosine %x : {WHOLE}{end}", DEVICES)
    return pair_of(load(logical), load(module(given, found, body + end, DEVICES)))


COLLECTIVES = {
    "all_gather": ("tensor<8x3xf32>", "tensor<32x3xf32>", f"all_gather_dim = 0 : i64, {GROUPS}, use_global_device_ids"),
    "all_to_all": (
        "tensor<8x12xf32>",
        "tensor<32x3xf32>",
        f"split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 4 : i64, {GROUPS}",
    ),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_dimensions_that_are_exchanged_are_seen_to_be_split(name: str) -> None:
    kind, result, attributes = COLLECTIVES[name]
    text = module(
        f"%x: {kind}",
        f"{result}, tensor<4x3xf32>",
        f'    %r = "stablehlo.{name}"(%x) {{{attributes}}} : ({kind}) -> {result}\n'
        f"    %s = stablehlo.slice %r [0:4, 0:3] : ({result}) -> tensor<4x3xf32>\n"
        f"    return %r, %s : {result}, tensor<4x3xf32>",
    )
    wanted = {"all_gather": {32: 4}, "all_to_all": {32: 4, 12: 4}}[name]
    assert shards_inside(load(text)) == wanted  # of a slice, nothing


def test_the_most_shards_count() -> None:
    """Where groups of four and of two exchange dimensions of one size."""
    two = "replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, " + CHANNEL
    body = "\n".join(
        f'    %r{n} = "stablehlo.all_gather"(%x{n}) {{all_gather_dim = 0 : i64, {groups}, use_global_device_ids}} : '
        f"(tensor<{size}xf32>) -> tensor<32xf32>"
        for n, (groups, size) in enumerate([(two, 16), (GROUPS, 8), (two, 16)])
    )
    given = "%x0: tensor<16xf32>, %x1: tensor<8xf32>, %x2: tensor<16xf32>"
    kinds = ", ".join(["tensor<32xf32>"] * 3)
    assert shards_inside(load(module(given, kinds, f"{body}\n    return %r0, %r1, %r2 : {kinds}"))) == {32: 4}


def distinct(drawing: Drawing, seed: int) -> int:
    """How many of the shards inside look different."""
    (blocks,) = drawing.draw(EVEN[0], seed)
    shards = blocks.values[0][blocks.classes[1]].reshape(DEVICES, -1)
    return len(np.unique(shards, axis=0))


def test_every_other_draw_tells_shards_inside_apart() -> None:
    """With few values, as the first draws have; the others are as if the dimension were not split."""
    drawing = Drawing(split_inside(GATHERED))
    told = [[distinct(drawing, seed) for seed in range(start, 16, 2)] for start in (0, 1)]
    assert all(n > 1 for n in told[0])
    plain = Drawing(split_inside(f"    %r = stablehlo.cosine %x : {WHOLE}"))
    assert told[1] == [distinct(plain, seed) for seed in range(1, 16, 2)]
    assert told[0] != [distinct(plain, seed) for seed in range(0, 16, 2)]


def test_shards_that_change_places_are_found() -> None:
    right, wrong = permuted("[[0, 0], [1, 1], [2, 2], [3, 3]]"), permuted("[[0, 0], [1, 2], [2, 1], [3, 3]]")
    assert not Search(split_inside(right)).find([0], draws=4)
    assert Search(split_inside(wrong)).find([0], draws=4) == {0}


DECIDED = """
    %z = stablehlo.constant dense<0.0> : TYPE
    %p = stablehlo.multiply %v, %w : TYPE
    %a = stablehlo.add %p, %x : TYPE
    %c = stablehlo.compare GT, %a, %z : (TYPE, TYPE) -> tensor<8xi1>
    %y = stablehlo.select %c, %a, %u : tensor<8xi1>, TYPE
"""


def test_what_differs_at_0_alone_is_found() -> None:
    """Slopes of `maximum(a, 0)` do, for an `a` that is 0 where several arguments are."""
    modules = pair("tensor<8xf32>", "vwxu", "y", DECIDED, "GT", "GE")
    assert Search(modules).find([0], draws=2 * len(EVEN)) == set()
    assert Search(modules).find([0]) == {0}


def test_zeros_are_drawn_where_they_are_allowed() -> None:
    """Half of the elements of each argument, of the arguments half as a whole, or all; none that has to be positive."""
    modules = pair("tensor<8xf32>", "vwxu", "y", DECIDED, "GT", "GE")
    for zeros in Zeroed:
        (draw,) = (draw for draw in AT_ZERO if draw.zeros is zeros)
        for kept in ((), (0, 2)):
            logical = apply(modules.logical, [parse(f"arg{n} is positive") for n in kept])
            inputs = Drawing(replace(modules, logical=logical)).draw(draw, 0)
            some = [n for n, blocks in enumerate(inputs) if not blocks.values.all()]
            assert (some or kept) and not set(some) & set(kept)
            assert kept or zeros is Zeroed.ELEMENTS or len(some) == (4 if zeros is Zeroed.ALL else 2)
            assert zeros is Zeroed.ELEMENTS or not any(inputs[n].values.any() for n in some)


LARGEST = """
    %c = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %a = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [0] :
      (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %r = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> TYPE
"""


def test_a_maximum_that_starts_from_0_is_found() -> None:
    """Of 64 numbers that are drawn one by one, all are negative once in 2^64 draws."""
    modules = pair("tensor<64xf32>", "x", "r", LARGEST, "0xFF800000", "0.0")
    assert Search(modules).find([0], draws=len(EVEN)) == {0}


def test_negative_numbers_are_drawn_where_they_are_allowed() -> None:
    modules = pair("tensor<8xf32>", "vwxu", "y", DECIDED, "GT", "GE")
    (draw,) = (draw for draw in EVEN if draw.negative)
    logical = apply(modules.logical, [parse("arg2 is positive")])
    inputs = Drawing(replace(modules, logical=logical)).draw(draw, 0)
    assert [bool((blocks.values < 0).all()) for blocks in inputs] == [True, True, False, True]
    assert (inputs[2].values > 0).all()


def test_negative_numbers_are_drawn_of_types_that_have_a_sign() -> None:
    modules = pair("tensor<8xf8E8M0FNU>", "x", "x", "", "", "")
    (draw,) = (draw for draw in EVEN if draw.negative)
    (scales,) = Drawing(modules).draw(draw, 0)
    assert (scales.values > 0).all()


ANY_AND_ALL = """
    %false = stablehlo.constant dense<false> : tensor<i1>
    %true = stablehlo.constant dense<true> : tensor<i1>
    %or = stablehlo.reduce(%m init: %false) applies stablehlo.or across dimensions = [0] :
      (tensor<40xi1>, tensor<i1>) -> tensor<i1>
    %and = stablehlo.reduce(%m init: %true) applies stablehlo.and across dimensions = [0] :
      (tensor<40xi1>, tensor<i1>) -> tensor<i1>
"""


@pytest.mark.parametrize(("flag", "constant"), [("or", "true"), ("and", "false")])
def test_what_differs_where_all_flags_are_alike_is_found(flag: str, constant: str) -> None:
    """Whether any flag of forty holds is told from what is always true where none does; whether all do, from what never
    is where they do."""
    given, found = f"%m: tensor<40xi1> {on(REPLICATED)}", f"tensor<i1> {on(REPLICATED)}"
    both = (load(module(given, found, f"{ANY_AND_ALL}    return %{name} : tensor<i1>", 1)) for name in (flag, constant))
    assert Search(pair_of(*both)).find([0]) == {0}


COUNTED = """
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %least = stablehlo.constant dense<LEAST> : tensor<i32>
    %n = stablehlo.convert %m : (tensor<24xi1>) -> tensor<24xi32>
    %sum = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [0] :
      (tensor<24xi32>, tensor<i32>) -> tensor<i32>
    %p = stablehlo.compare GE, %sum, %least : (tensor<i32>, tensor<i32>) -> tensor<i1>
    return %p : tensor<i1>
"""


@pytest.mark.parametrize(("least", "other"), [(1, 6), (18, 24)])
def test_what_differs_where_few_flags_hold_or_few_do_not_is_found(least: int, other: int) -> None:
    given, found = f"%m: tensor<24xi1> {on(REPLICATED)}", f"tensor<i1> {on(REPLICATED)}"
    both = (load(module(given, found, COUNTED.replace("LEAST", str(n)), 1)) for n in (least, other))
    assert Search(pair_of(*both)).find([0]) == {0}


def test_flags_alike_are_drawn_where_there_are_flags() -> None:
    modules = pair("tensor<8xf32>", "vwxu", "y", DECIDED, "GT", "GE")
    assert all(draw.flags is None and draw.rarely is None for draw in Drawing(modules).draws)


NORMALIZED = """
    %c = stablehlo.constant dense<1.0e-8> : TYPE
    %a = stablehlo.abs %x : TYPE
    %m = stablehlo.maximum %a, %c : TYPE
    %y = stablehlo.divide %x, %m : TYPE
"""
WITH_A_ROOT = """
    %c = stablehlo.constant dense<1.0e-16> : TYPE
    %q = stablehlo.multiply %x, %x : TYPE
    %s = stablehlo.add %q, %c : TYPE
    %r = stablehlo.sqrt %s : TYPE
    %y = stablehlo.divide %x, %r : TYPE
"""
BY_A_ROOT = """
    %c = stablehlo.constant dense<1.0e-8> : TYPE
    %q = stablehlo.abs %x : TYPE
    %r = stablehlo.sqrt %q : TYPE
    %s = stablehlo.add %r, %c : TYPE
    %y = stablehlo.divide %x, %s : TYPE
"""
CUT_OFF = """
    %c = stablehlo.constant dense<1000.0> : TYPE
    %a = stablehlo.abs %x : TYPE
    %y = stablehlo.minimum %a, %c : TYPE
"""
SATURATED = """
    %c = stablehlo.constant dense<50.0> : TYPE
    %a = stablehlo.divide %x, %c : TYPE
    %t = stablehlo.tanh %a : TYPE
    %y = stablehlo.multiply %t, %c : TYPE
"""


@pytest.mark.parametrize(
    ("kind", "body", "old", "new"),
    [
        ("f32", NORMALIZED, "1.0e-8", "1.0e-6"),
        ("bf16", NORMALIZED, "1.0e-8", "1.0e-6"),
        ("f32", NORMALIZED, "maximum %a, %c", "add %a, %c"),
        ("f32", WITH_A_ROOT, "1.0e-16", "1.0e-15"),
        ("f32", BY_A_ROOT, "1.0e-8", "0.0"),
        ("f32", CUT_OFF, "1000.0", "2000.0"),
        ("f16", CUT_OFF, "1000.0", "1010.0"),
        ("f32", CUT_OFF, "minimum %a, %c", "maximum %a, %a"),
        ("f32", SATURATED, "50.0", "49.99"),
    ],
)
def test_constants_that_tell_at_their_own_size_alone_are_found(kind: str, body: str, old: str, new: str) -> None:
    modules = pair(f"tensor<8x{kind}>", "x", "y", body, old, new)
    assert Search(modules).find([0]) == {0}


def test_sizes_are_drawn_at_of_constants() -> None:
    def sizes(old: str, new: str) -> tuple[float, ...]:
        body = NORMALIZED.replace("1.0e-8", old)
        return sizes_of_constants(pair("tensor<8xf32>", "x", "y", body, old, new))

    assert sizes("1.0", "1.0") == ()
    assert sizes("1.0e-8", "1.0e-8") == sizes("1.0e-8", "1.0")
    assert sizes("1.0e-8", "1.0") == pytest.approx((2.5e-17, 2.5e-9, 2.5e-5))
    assert (
        sizes("1.0e-8", "0x7F800000")
        == sizes("1.0e-8", "-1.0e4")
        == sizes("1.0e-8", "1.0e-37")
        == sizes("1.0e-8", "1.0")
    )
    assert len(sizes("1000.0", "1.0e-6")) == 4
