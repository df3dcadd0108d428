"""What an evaluation holds at one time has an end, on however many devices; nothing larger is made on the way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hlo_verify.evaluate import Blocks, Evaluation, Limits, dense, evaluate, of_dense
from hlo_verify.evaluate.arguments import random_argument
from hlo_verify.evaluate.blocks import aligned, of_devices
from hlo_verify.evaluate.groups import grouped
from hlo_verify.evaluate.held import Held
from hlo_verify.evaluate.maps import Maps
from hlo_verify.evaluate.unknown import TooLargeError
from hlo_verify.passes.load.load import load
from hlo_verify.passes.refute.plainer import filled
from hlo_verify.program.ir import Module, TensorType

SIZE, COUNT = 4096, 6
X = np.random.default_rng(0).normal(size=SIZE).astype(np.float32)
VECTOR = f"tensor<{SIZE}xf32>"


def of_several(count: int = COUNT) -> Module:
    """A module that makes so many vectors before it adds them up."""
    made = "\n".join(f"%y{n} = stablehlo.{name} %x : {VECTOR}" for n, name in enumerate(FUNCTIONS[:count]))
    sums = "\n".join(f"%s{n + 1} = stablehlo.add %s{n}, %y{n + 1} : {VECTOR}" for n in range(count - 1))
    text = f"{made}\n%s0 = stablehlo.abs %y0 : {VECTOR}\n{sums}\nreturn %s{count - 1} : {VECTOR}"
    return load(f"module @m {{ func.func public @main(%x: {VECTOR}) -> ({VECTOR}) {{\n{text}\n}} }}")


FUNCTIONS = ("exponential", "sine", "cosine", "tanh", "logistic", "negate")


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What was held, whenever something was added; and at the end."""
    seen: list[float] = []

    def noted(self: Held, value: Blocks | None, do: object) -> None:
        do(self, value)  # type: ignore[operator]
        seen.append(self.elements)

    for name in ("add", "drop"):
        does = getattr(Held, name)
        monkeypatch.setattr(Held, name, lambda self, value, does=does: noted(self, value, does))
    return seen


def evaluated(room: float, module: Module | None = None) -> Evaluation:
    return evaluate(module or of_several(), [of_dense(X)], 1, limits=Limits(room=room))


def test_values_that_are_held_are_counted(most: list[float]) -> None:
    found = evaluated(Limits().room)
    assert found.results[0] is not None and not found.exceeded
    assert max(most) == pytest.approx((COUNT + 1) * SIZE)  # all of them, and the first without its sign beside it
    assert most[-1] == 0


@pytest.mark.parametrize("count", [2, 4, COUNT])
def test_no_more_is_held_than_there_is_room_for(count: int, most: list[float]) -> None:
    found = evaluated(count * SIZE)
    assert found.results[0] is None and found.exceeded > Limits().elements and "at one time" in found.unknown[0]
    assert max(most) <= count * SIZE


def test_a_loop_holds_no_more_with_every_turn(most: list[float]) -> None:
    text = f"""module @m {{ func.func public @main(%x: {VECTOR}) -> ({VECTOR}) {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %c = %x) : tensor<i32>, {VECTOR} cond {{
        %end = stablehlo.constant dense<20> : tensor<i32>
        %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        %s = stablehlo.sine %c : {VECTOR}
        %d = stablehlo.multiply %s, %c : {VECTOR}
        stablehlo.return %j, %d : tensor<i32>, {VECTOR}
      }}
      return %r#1 : {VECTOR} }} }}"""
    found = evaluated(5 * SIZE, load(text))
    assert found.results[0] is not None
    assert max(most) <= 4 * SIZE and most[-1] == 0  # x, what is carried, and two that are made of it


def test_views_of_one_array_are_held_once() -> None:
    held, whole = Held(), of_dense(X)
    part = replace(whole, values=whole.values[:, ::2])
    for value in (whole, part, None, whole):
        held.add(value)
    assert held.elements == SIZE / 2  # of 32 bits each
    for value in (whole, None, part):
        held.drop(value)
        assert held.elements == SIZE / 2
    held.drop(whole)
    assert held.elements == 0


def test_room_is_asked_for_before_tensors_are_aligned() -> None:
    """Both are small, but on each of 512 devices one of them has classes of its own: together they were not."""
    devices, maps, asked = 512, Maps(), list[float]()
    wide = of_devices(np.random.default_rng(1).normal(size=(2, SIZE)))
    wide = Blocks((np.arange(devices) % 2, *wide.classes[1:]), wide.values)
    own = Blocks((np.arange(devices), np.zeros(SIZE, np.int64)), np.arange(devices, dtype=float)[:, None])
    _, values = aligned([wide, own], maps, asked.append)
    assert max(asked) == devices * SIZE == values[0].size

    def full(elements: float) -> None:
        raise TooLargeError(str(elements))

    with pytest.raises(TooLargeError):
        aligned([wide, own], maps, full)


@pytest.mark.parametrize("kind", ["FFT", "IFFT"])
def test_a_transform_of_many_elements_is_too_large(kind: str) -> None:
    """Its matrix would have 2^32 elements."""
    type_ = "tensor<65536xcomplex<f32>>"
    text = f"""module @m {{ func.func public @main(%x: {type_}) -> {type_} {{
      %y = stablehlo.fft %x, type = {kind}, length = [65536] : ({type_}) -> {type_}
      return %y : {type_} }} }}"""
    found = evaluate(load(text), [of_dense(np.ones(65536, np.complex64))], 1)
    assert found.results[0] is None and found.exceeded


def test_what_is_held_does_not_change_results() -> None:
    found = evaluated((COUNT + 3) * SIZE).results[0]
    assert found is not None
    x = X.astype(float)
    wanted = np.exp(x) + np.sin(x) + np.cos(x) + np.tanh(x) + 1 / (1 + np.exp(-x)) - x
    np.testing.assert_allclose(dense(found, 0), wanted)


def test_arguments_of_one_size_share_their_maps() -> None:
    """Those of a train step with 126 layers, each with maps of its own, took 2 GB."""
    generator = np.random.default_rng(0)
    drawn = [random_argument((4096, 8192), "f32", generator, tiles=(8, 4), detail=8) for _ in range(20)]
    alike = [filled(each, value, TensorType((4096, 8192), "f32"), None) for each in drawn for value in (0, 1)]
    for some in (drawn, alike):
        assert len({id(map_) for each in some for map_ in each.classes[1:]}) == 2
    assert len({each.values.tobytes() for each in drawn}) == 20


def test_groups_of_many_devices_are_no_table_of_devices_and_members() -> None:
    """For each of 131072 devices all members of its group would be 17 GB."""
    devices, size = 1 << 17, 1 << 14
    groups = np.arange(devices).reshape(size, -1).T
    found = grouped(groups, devices)
    assert sum(each.size for each in (found.members, found.row_of, found.ranks)) == 3 * devices
    for device in (0, 1, 8, devices - 1):
        assert found.members[found.row_of[device], found.ranks[device]] == device
    text = """module @m attributes {mhlo.num_partitions = 2 : i32} {
      func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %y = "stablehlo.all_reduce"(%x) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32> }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}
          : (tensor<4xf32>) -> tensor<4xf32>
        return %y : tensor<4xf32> } }"""
    module = load(text)
    (op,) = module.main.ops
    op = replace(op, attributes={**op.attributes, "replica_groups": groups})
    module = replace(module, partitions=devices, main=replace(module.main, ops=(op,)))
    values = np.random.default_rng(0).normal(size=(16, 4))
    given = Blocks((np.arange(devices) % 16, np.arange(4)), values)
    (result,) = evaluate(module, [given], devices).results
    assert result is not None
    for device in (0, 5, devices - 3):
        wanted = values[groups[device % 8] % 16].sum(axis=0)
        np.testing.assert_allclose(dense(result, device), wanted)
