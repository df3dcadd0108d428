"""Devices in the orders that real meshes have them in: renumbered by place, proved; and what is wrong stays wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from hlo_verify.passes.load.load import load
from hlo_verify.passes.prove.device_order import by_place
from hlo_verify.passes.prove.prove import BY_PLACE, prove_at_once
from hlo_verify.passes.recheck.recheck import recheck
from hlo_verify.report import Report, Verdict

ORDERS = {
    "v5e:2x2": [0, 1, 3, 2],
    "v5p:2x2x1": [0, 2, 1, 3],
    "v5e:2x4": [0, 1, 2, 3, 7, 6, 5, 4],
    "v5p:2x2x2": [0, 1, 3, 2, 6, 7, 5, 4],
    "v5e:4x4": [0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4],
    "v5e:4x4 as 2x8": [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15],
    "drawn": [5, 2, 7, 0, 3, 6, 1, 4],
}
"""`mesh_utils.create_device_mesh` of `topologies.get_topology_desc` (jax 0.11.1, libtpu 0.0.46.3): rings on a torus. On
larger tori, up to v5p:16x16x32, mesh axes are digits of devices' numbers in another order."""

ADD = """({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %c = stablehlo.add %a, %b : tensor<f32>
  stablehlo.return %c : tensor<f32>
})"""
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def dense(rows: Sequence[Sequence[int]]) -> str:
    return f"dense<{[list(row) for row in rows]}> : tensor<{len(rows)}x{len(rows[0])}xi64>"


def modules(
    order: Sequence[int], groups: Sequence[int] | None = None, ring: Sequence[int] | None = None,
    places: Sequence[int] | None = None,
) -> tuple[str, str]:  # fmt: skip
    """`x * sum(x)`, each part one place further on, a gather of `x`, and the number of each element's shard, on devices
    in that order; groups, ring and the table of places as for other orders make it wrong."""
    n, order = len(order), list(order)
    groups, ring, places = (list(order if other is None else other) for other in (groups, ring, places))
    placed = f'mhlo.sharding = "{{devices=[{n}]{",".join(map(str, order))}}}"'
    turned = placed.replace(",".join(map(str, order)), ",".join(map(str, order[1:] + order[:1])))
    whole = f"""module attributes {{mhlo.num_partitions = {n} : i32}} {{
func.func public @main(%x: tensor<{2 * n}xf32> {{{placed}}}) -> (tensor<{2 * n}xf32> {{{turned}}},
    tensor<{2 * n}xf32> {{mhlo.sharding = "{{replicated}}"}}, tensor<{2 * n}xui32> {{{placed}}}) {{
%zero = stablehlo.constant dense<0.0> : tensor<f32>
%s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
  : (tensor<{2 * n}xf32>, tensor<f32>) -> tensor<f32>
%w = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<{2 * n}xf32>
%y = stablehlo.multiply %x, %w : tensor<{2 * n}xf32>
%i = stablehlo.iota dim = 0 : tensor<{2 * n}xui32>
%two = stablehlo.constant dense<2> : tensor<{2 * n}xui32>
%n = stablehlo.divide %i, %two : tensor<{2 * n}xui32>
return %y, %x, %n : tensor<{2 * n}xf32>, tensor<{2 * n}xf32>, tensor<{2 * n}xui32>
}} }}"""
    pairs = [(ring[k], ring[(k + 1) % n]) for k in range(n)]
    part = f"""module attributes {{mhlo.num_partitions = {n} : i32}} {{
func.func public @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<{2 * n}xf32>, tensor<2xui32>) {{
%zero = stablehlo.constant dense<0.0> : tensor<f32>
%p = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
  : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
%s = "stablehlo.all_reduce"(%p) <{{replica_groups = {dense([groups])}, {CHANNEL}, use_global_device_ids}}> {ADD}
  : (tensor<f32>) -> tensor<f32>
%w = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<2xf32>
%r = "stablehlo.collective_permute"(%x) <{{source_target_pairs = {dense(pairs)}, {CHANNEL}}}>
  : (tensor<2xf32>) -> tensor<2xf32>
%y = stablehlo.multiply %r, %w : tensor<2xf32>
%g = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, replica_groups = {dense([groups])}, {CHANNEL},
  use_global_device_ids}}> : (tensor<2xf32>) -> tensor<{2 * n}xf32>
%d = stablehlo.partition_id : tensor<ui32>
%table = stablehlo.constant dense<{np.argsort(places).tolist()}> : tensor<{n}xui32>
%e = stablehlo.dynamic_slice %table, %d, sizes = [1] : (tensor<{n}xui32>, tensor<ui32>) -> tensor<1xui32>
%n = stablehlo.broadcast_in_dim %e, dims = [0] : (tensor<1xui32>) -> tensor<2xui32>
return %y, %g, %n : tensor<2xf32>, tensor<{2 * n}xf32>, tensor<2xui32>
}} }}"""
    return whole, part


def proved(pair: tuple[str, str]) -> Report:
    return prove_at_once(*map(load, pair))


@pytest.mark.parametrize("name", ORDERS)
def test_right(name: str) -> None:
    report = proved(modules(ORDERS[name]))
    assert report.verdict is Verdict.PROVED


@pytest.mark.parametrize("name", ["v5e:2x4", "drawn"])
def test_steps_say_that_devices_are_numbered_by_place(name: str) -> None:
    assert BY_PLACE in proved(modules(ORDERS[name])).assumptions
    assert BY_PLACE not in proved(modules(range(8))).assumptions


def swapped(order: Sequence[int], generator: random.Random) -> list[int]:
    """The order with two devices exchanged, which are no rotation of it."""
    a, b = generator.sample(range(len(order)), 2)
    other = list(order)
    other[a], other[b] = other[b], other[a]
    return other


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", [name for name in ORDERS if len(ORDERS[name]) > 4])
def test_wrong_stays_wrong(name: str, seed: int) -> None:
    order, generator = ORDERS[name], random.Random(seed)
    other = swapped(order, generator)
    for wrong, result in (({"groups": other}, 1), ({"ring": other}, 0), ({"places": other}, 2)):
        found = proved(modules(order, **wrong)).results
        assert found[result].verdict is Verdict.UNKNOWN, wrong


@pytest.mark.parametrize("name", ["v5e:2x4", "v5p:2x2x2", "drawn"])
def test_a_module_for_the_plain_order_is_wrong_on_another_mesh(name: str) -> None:
    plain = list(range(8))
    found = proved(modules(ORDERS[name], groups=plain, ring=plain, places=plain)).results
    assert {result.verdict for result in found} == {Verdict.UNKNOWN}


def test_every_number_of_a_device_is_changed_alike() -> None:
    logical, partitioned = map(load, modules(ORDERS["drawn"]))
    found = by_place(logical, partitioned, 8)
    assert found is not None
    whole, part = found
    assert whole.argument_shardings[0] is not None
    assert whole.argument_shardings[0].coordinates[:, 0].tolist() == list(range(8))
    ops = {op.name: op for op in part.main.ops}
    assert ops["all_gather"].attributes["replica_groups"].tolist() == [list(range(8))]
    pairs = ops["collective_permute"].attributes["source_target_pairs"].tolist()
    assert sorted(pairs) == sorted([k, (k + 1) % 8] for k in range(8))
    tables = [op.attributes["value"].tolist() for op in part.main.ops if op.name == "constant" and op.types[0].shape]
    assert ORDERS["drawn"] in tables


def test_a_second_check_of_it() -> None:
    done = recheck(*map(load, modules(ORDERS["v5e:2x2"])))
    assert not done.disagreements


@pytest.mark.parametrize("given", ["order", "groups of all, unsaid"])
def test_what_hangs_on_the_order_of_numbers_is_left_alone(given: str) -> None:
    whole, part = modules(ORDERS["drawn"] if given != "order" else range(8))
    if given != "order":
        part = part.replace(
            dense([ORDERS["drawn"]]) + f", {CHANNEL},\n  use_global_device_ids", dense([[0]]) + f", {CHANNEL}"
        )
    assert by_place(load(whole), load(part), 8) is None
