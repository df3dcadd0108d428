"""Shapes with their layouts, and groups of devices in each spelling."""

from __future__ import annotations

import pytest

from hlo_verify.hlo.groups import parse_groups
from hlo_verify.hlo.shapes import Array, Tuple, leaves, parse_shape, same, split


def test_a_layout_says_order_tiles_and_memory() -> None:
    shape = parse_shape("bf16[128,64]{0,1:T(8,128)(2,1)S(1)}")
    assert shape == Array("bf16", (128, 64), (0, 1), ((8, 128), (2, 1)), 1)
    assert isinstance(shape, Array) and shape.bytes == 128 * 64 * 2
    assert parse_shape("f32[]{:T(128)}") == Array("f32", (), (), ((128,),))
    split_over_cores = parse_shape("f32[256,128]{1,0:T(8,128)S(1)SC(0:128)}")
    assert isinstance(split_over_cores, Array) and split_over_cores.pieces == 2
    four_bits = parse_shape("s4[10]{0:E(4)}")
    assert isinstance(four_bits, Array) and four_bits.bytes == 5


def test_tuples() -> None:
    shape = parse_shape("((f32[2]{0}, /*index=1*/token[]), b(s32[3]))")
    assert [(path, str(leaf)) for path, leaf in leaves(shape)] == [
        ((0, 0), "f32[2]"),
        ((0, 1), "token[]"),
        ((1,), "s32[3]"),
    ]
    assert same(shape, parse_shape("((f32[2]{0:S(1)}, token[]), s32[3])"))
    assert not same(shape, parse_shape("((f32[2], token[]), s32[4])"))
    assert parse_shape("()") == Tuple(())


@pytest.mark.parametrize("text", ["", "f32", "f32[2", "(f32[2]", "f32[2]{1,0} x"])
def test_what_is_no_shape(text: str) -> None:
    with pytest.raises(ValueError):
        parse_shape(text)


def test_commas_in_brackets_and_strings_do_not_split() -> None:
    assert split('a={1,2}, b="x, {", c=[2,4]<=[8] , d') == ["a={1,2}", 'b="x, {"', "c=[2,4]<=[8]", "d"]
    assert split(" ") == []


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("{{0,1}, {2,3,4}}", ((0, 1), (2, 3, 4))),
        ("{}", ()),
        ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['a'=2,'b'=4] {'a'}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['a'=2,'b'=4] {'b'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['a'=2,'b'=2] {'a','b'}", ((0, 1, 2, 3),)),
        ("mesh['a'=2,'b'=2] {'b','a'}", ((0, 2, 1, 3),)),
        ("mesh['a'=4] {'a':(2)2}", ((0, 1), (2, 3))),
        ("mesh['a'=4] {'a':(1)2}", ((0, 2), (1, 3))),
        ("mesh['a'=4] {'z'}", None),
        ("mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'b'}", ((3, 2), (1, 0))),
        ("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}", ((0, 2), (1, 3))),
        ("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,1)) {'b'}", None),
        ("[3,4]<=[8]", None),
        ("everyone", None),
    ],
)
def test_groups(text: str, groups: tuple[tuple[int, ...], ...] | None) -> None:
    assert parse_groups(text) == groups
