"""What communicates has to be the same for all ranks, and no branch or loop that only some devices run may hide it.

Every form of communication is put into every place; none is ever PROVED, nor is anything REFUTED by running it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import hlo_verify
from hlo_verify import Verdict
from hlo_verify.diagnostics.errors import InputError

TYPE = "tensor<4xf32>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"

Form = Callable[[Sequence[int]], str]
"""The lines that exchange `%x` among those devices, in that order, and leave `%y`."""


def _groups(members: Sequence[int]) -> str:
    return f"replica_groups = dense<[{list(members)}]> : tensor<1x{len(members)}xi64>"


def _larger(members: Sequence[int]) -> str:
    return f"tensor<{4 * len(members)}xf32>"


def _reducer(name: str) -> str:
    return f"""({{
    ^bb0(%{name}a: tensor<f32>, %{name}b: tensor<f32>):
      %{name}c = stablehlo.add %{name}a, %{name}b : tensor<f32>
      stablehlo.return %{name}c : tensor<f32>
    }})"""


def all_reduce(members: Sequence[int]) -> str:
    return f"""
    %y = "stablehlo.all_reduce"(%x) <{{{_groups(members)}, {CHANNEL}, use_global_device_ids}}> {_reducer("r")}
      : ({TYPE}) -> {TYPE}"""


def all_gather(members: Sequence[int]) -> str:
    return f"""
    %g = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, {_groups(members)}, {CHANNEL}, use_global_device_ids}}>
      : ({TYPE}) -> {_larger(members)}
    %y = stablehlo.slice %g [0:4] : ({_larger(members)}) -> {TYPE}"""


def reduce_scatter(members: Sequence[int]) -> str:
    pieces, kinds = ", ".join(["%x"] * len(members)), ", ".join([TYPE] * len(members))
    return f"""
    %g = stablehlo.concatenate {pieces}, dim = 0 : ({kinds}) -> {_larger(members)}
    %y = "stablehlo.reduce_scatter"(%g) <{{scatter_dimension = 0 : i64, {_groups(members)}, {CHANNEL},
      use_global_device_ids}}> {_reducer("r")} : ({_larger(members)}) -> {TYPE}"""


def all_to_all(members: Sequence[int]) -> str:
    count = len(members)
    return f"""
    %y = "stablehlo.all_to_all"(%x) <{{split_dimension = 0 : i64, concat_dimension = 0 : i64,
      split_count = {count} : i64, {_groups(members)}, {CHANNEL}}}> : ({TYPE}) -> {TYPE}"""


def all_to_all_of_tuple(members: Sequence[int]) -> str:
    count, kinds = len(members), ", ".join([TYPE] * len(members))
    return f"""
    %n = stablehlo.negate %x : {TYPE}
    %g:{count} = "mhlo.all_to_all"({", ".join(["%x", *["%n"] * (count - 1)])}) <{{{_groups(members)},
      channel_handle = #mhlo.channel_handle<handle = 1, type = 0>}}> : ({kinds}) -> ({kinds})
    %y = stablehlo.add %g#0, %g#1 : {TYPE}"""


def permute(members: Sequence[int]) -> str:
    pairs = [[a, b] for a, b in zip(members, [*members[1:], members[0]], strict=True)][: len(members) - 1]
    return f"""
    %y = "stablehlo.collective_permute"(%x) <{{source_target_pairs = dense<{pairs}> : tensor<{len(pairs)}x2xi64>,
      {CHANNEL}}}> : ({TYPE}) -> {TYPE}"""


def broadcast(members: Sequence[int]) -> str:
    return f"""
    %y = "stablehlo.collective_broadcast"(%x) <{{{_groups(members)}, {CHANNEL}}}> : ({TYPE}) -> {TYPE}"""


def ragged(members: Sequence[int]) -> str:
    count = len(members)
    kind = f"tensor<{count}xi32>"
    return f"""
    %o = stablehlo.constant dense<0.0> : {TYPE}
    %s = stablehlo.constant dense<1> : {kind}
    %t = stablehlo.iota dim = 0 : {kind}
    %y = stablehlo.custom_call @ragged_all_to_all(%x, %o, %t, %s, %t, %s) {{api_version = 4 : i32,
      backend_config = {{channel_id = 1 : i64, {_groups(members)}}}}}
      : ({TYPE}, {TYPE}, {kind}, {kind}, {kind}, {kind}) -> {TYPE}"""


def kernel(members: Sequence[int]) -> str:
    config = f'{{\\"collective_id\\": 0, \\"members\\": {list(members)}}}'
    return f"""
    %y = stablehlo.custom_call @tpu_custom_call(%x) {{backend_config = "{config}"}} : ({TYPE}) -> {TYPE}"""


def unknown(members: Sequence[int]) -> str:
    return f"""
    %y = stablehlo.custom_call @exchange_rows(%x) {{backend_config = "{list(members)}"}} : ({TYPE}) -> {TYPE}"""


def point_to_point(members: Sequence[int]) -> str:
    handle = f"{{channel_handle = #stablehlo.channel_handle<handle = {1 + members[0]}, type = 1>}}"
    return f"""
    %t = stablehlo.after_all : !stablehlo.token
    %u = "stablehlo.send"(%x, %t) {handle} : ({TYPE}, !stablehlo.token) -> !stablehlo.token
    %y, %v = "stablehlo.recv"(%u) {handle} : (!stablehlo.token) -> ({TYPE}, !stablehlo.token)"""


def asynchronous(members: Sequence[int]) -> str:
    inner, after = all_gather(members).split("%y")
    kind = _larger(members)
    return f"""
    %f = "stablehlo.async_start"(%x) ({{
    ^bb0(%w: {TYPE}):{inner.replace("%x", "%w").replace("%g", "%h")}
      stablehlo.return %h : {kind}
    }}) : ({TYPE}) -> !stablehlo.future<{kind}>
    %g = "stablehlo.async_done"(%f) : (!stablehlo.future<{kind}>) -> {kind}
    %y{after}"""


def fused(members: Sequence[int]) -> str:
    inner = all_to_all_of_tuple(members).replace("%y", "%z").replace("%x", "%w")
    return f"""
    %y = "mhlo.fusion"(%x) ({{
    ^bb0(%w: {TYPE}):{inner}
      mhlo.return %z : {TYPE}
    }}) : ({TYPE}) -> {TYPE}"""


def nested(members: Sequence[int]) -> str:
    inner = permute(members).replace("%y", "%z")
    return f"""
    %c = stablehlo.constant dense<1> : tensor<i32>
    %y = "stablehlo.case"(%c) ({{
      stablehlo.return %x : {TYPE}
    }}, {{{inner}
      stablehlo.return %z : {TYPE}
    }}) : (tensor<i32>) -> {TYPE}"""


KNOWN: dict[str, Form] = {
    form.__name__: form
    for form in (
        *(all_reduce, all_gather, reduce_scatter, all_to_all, all_to_all_of_tuple, permute, broadcast, ragged),
        *(asynchronous, fused, nested),
    )
}
FORMS: dict[str, Form] = KNOWN | {form.__name__: form for form in (kernel, unknown, point_to_point)}


def local(body: str, devices: int, functions: str = "") -> str:
    """What each device runs on its own `%x`, which it has a row of."""
    return f"""module @m attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%x0: tensor<1x4xf32>) -> tensor<1x4xf32> {{
    %x = stablehlo.reshape %x0 : (tensor<1x4xf32>) -> {TYPE}{body}
    %y0 = stablehlo.reshape %y : ({TYPE}) -> tensor<1x4xf32>
    return %y0 : tensor<1x4xf32>
  }}{functions}
}}
"""


def whole(body: str, devices: int, functions: str = "") -> str:
    """The same as the program of all."""
    rows, placed = f"tensor<{devices}x4xf32>", '[<@mesh, [{"d"}, {}]>]'
    on = f'{{mhlo.sharding = "{{devices=[{devices},1]<=[{devices}]}}"}}'
    return f"""module @m attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["d"={devices}]>
  func.func public @main(%a: {rows} {on}) -> ({rows} {on}) {{
    %r = sdy.manual_computation(%a) in_shardings={placed} out_shardings={placed} manual_axes={{"d"}}
      (%x0: tensor<1x4xf32>) {{
    %x = stablehlo.reshape %x0 : (tensor<1x4xf32>) -> {TYPE}{body}
    %y0 = stablehlo.reshape %y : ({TYPE}) -> tensor<1x4xf32>
      sdy.return %y0 : tensor<1x4xf32>
    }} : ({rows}) -> {rows}
    return %r : {rows}
  }}{functions}
}}
"""


def verdict(logical: str, partitioned: str | list[str]) -> Verdict | None:
    """None where these are no pair."""
    try:
        return hlo_verify.verify(logical, partitioned).verdict  # type: ignore[arg-type]
    except InputError:
        return None


COPY = f"\n    %y = stablehlo.reshape %x : ({TYPE}) -> {TYPE}"


def _called(body: str) -> tuple[str, str]:
    """The same in a function."""
    function = f"\n  func.func private @called(%x: {TYPE}) -> {TYPE} {{{body}\n    return %y : {TYPE}\n  }}"
    return f"\n    %y = func.call @called(%x) : ({TYPE}) -> {TYPE}", function


def _each_its_own(form: Form) -> tuple[str, str]:
    """What devices have where each runs the exchange of its own graph, if all of them did."""
    both = [_called(form(members)) for members in ((0, 1), (1, 0))]
    (ours, one), (theirs, other) = (
        (call.replace("@called", f"@f{n}").replace("%y", f"%y{n}"), function.replace("@called", f"@f{n}"))
        for n, (call, function) in enumerate(both, start=1)
    )
    chosen = f"""
    %id = stablehlo.partition_id : tensor<ui32>
    %first = stablehlo.constant dense<0> : tensor<ui32>
    %p = stablehlo.compare EQ, %id, %first : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    %y = stablehlo.select %p, %y1, %y2 : tensor<i1>, {TYPE}"""
    return ours + theirs + chosen, one + other


@pytest.mark.drawn(12)
@pytest.mark.parametrize("called", [False, True], ids=["in place", "in a function"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_ranks_agree_on_who_communicates(form: Form, called: bool) -> None:
    ours, theirs = (_called(form(members)) if called else (form(members), "") for members in ((0, 1), (1, 0)))
    for logical in (whole(*_at(ours, 2)), whole(COPY, 2), whole(*_at(_each_its_own(form), 2))):
        ranks = [local(*_at(each, 2)) for each in (ours, theirs)]
        assert verdict(logical, ranks) in (None, Verdict.UNKNOWN)
    agreeing = verdict(whole(*_at(ours, 2)), [local(*_at(ours, 2))] * 2)
    assert agreeing is (Verdict.PROVED if form.__name__ in KNOWN else Verdict.UNKNOWN)


def _at(each: tuple[str, str], devices: int) -> tuple[str, int, str]:
    return each[0], devices, each[1]


def test_ranks_agree_on_the_functions_that_communicate() -> None:
    """They call functions of other names, which all of them have."""
    functions = "".join(
        _called(all_to_all_of_tuple(members))[1].replace("@called", f"@f{n}")
        for n, members in enumerate([(0, 1), (1, 0)])
    )
    calls = [_called("")[0].replace("@called", f"@f{n}") for n in range(2)]
    assert verdict(whole(calls[0], 2, functions), [local(call, 2, functions) for call in calls]) is None


FIRST_TWO = """
    %id = stablehlo.partition_id : tensor<ui32>
    %two = stablehlo.constant dense<2> : tensor<ui32>
    %p = stablehlo.compare LT, %id, %two : (tensor<ui32>, tensor<ui32>) -> tensor<i1>"""


def hidden(body: str) -> str:
    """The exchange in a branch that two devices take."""
    return f"""{FIRST_TWO}
    %y = "stablehlo.if"(%p) ({{{body.replace("%y", "%hidden")}
      stablehlo.return %hidden : {TYPE}
    }}, {{
      stablehlo.return %x : {TYPE}
    }}) : (tensor<i1>) -> {TYPE}"""


def _open(body: str) -> str:
    """The same, with an exchange that all devices take part in."""
    return f"""{FIRST_TWO}{body.replace("%y", "%open")}
    %y = stablehlo.select %p, %open, %x : tensor<i1>, {TYPE}"""


@pytest.mark.drawn(6)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_no_branch_of_some_devices_hides_communication(form: Form) -> None:
    body = form(range(4))
    for logical in (whole(_open(body), 4), whole(hidden(body), 4), whole(COPY, 4)):
        assert verdict(logical, local(hidden(body), 4)) is Verdict.UNKNOWN
    function = _called(body)
    assert verdict(whole(_open(body), 4), local(hidden(function[0]), 4, function[1])) is Verdict.UNKNOWN
    assert verdict(whole(hidden(COPY), 4), local(_open(COPY), 4)) is Verdict.PROVED
    if form.__name__ in KNOWN:
        assert verdict(whole(_open(body), 4), local(_open(body), 4)) is Verdict.PROVED


def _looped(body: str, trips: str) -> str:
    """As many turns as the number of the device says, or two for all."""
    return f"""{FIRST_TWO}
    %all = stablehlo.constant dense<2> : tensor<ui32>
    %some = stablehlo.add %id, %all : tensor<ui32>
    %zero = stablehlo.constant dense<0> : tensor<ui32>
    %one = stablehlo.constant dense<1> : tensor<ui32>
    %w:2 = stablehlo.while(%i = %zero, %before = %x) : tensor<ui32>, {TYPE}
    cond {{
      %q = stablehlo.compare LT, %i, %{trips} : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      stablehlo.return %q : tensor<i1>
    }} do {{
      %j = stablehlo.add %i, %one : tensor<ui32>{body.replace("%y", "%after").replace("%x", "%before")}
      stablehlo.return %j, %after : tensor<ui32>, {TYPE}
    }}
    %y = stablehlo.reshape %w#1 : ({TYPE}) -> {TYPE}"""


@pytest.mark.drawn(6)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_no_loop_that_ends_earlier_on_some_devices_communicates(form: Form) -> None:
    body = form(range(4))
    for logical in (whole(_looped(body, "some"), 4), whole(_looped(body, "all"), 4), whole(COPY, 4)):
        assert verdict(logical, local(_looped(body, "some"), 4)) is Verdict.UNKNOWN
    if form.__name__ in KNOWN:
        assert verdict(whole(_looped(body, "all"), 4), local(_looped(body, "all"), 4)) is Verdict.PROVED


UNUSED = {
    "unused": COPY,
    "times zero": f"""
    %nothing = stablehlo.constant dense<0.0> : {TYPE}
    %gone = stablehlo.multiply %hung, %nothing : {TYPE}
    %y = stablehlo.add %x, %gone : {TYPE}""",
}


def _while(start: str, step: str, condition: str = "%i") -> str:
    """A loop of which nothing is used, that sums what devices have and counts by a step."""
    body = all_reduce(range(4)).replace("%y", "%after").replace("%x", "%before")
    return f"""
    %id = stablehlo.partition_id : tensor<ui32>
    %zero = stablehlo.constant dense<0> : tensor<ui32>
    %one = stablehlo.constant dense<1> : tensor<ui32>
    %more = stablehlo.add %id, %one : tensor<ui32>
    %five = stablehlo.constant dense<5> : tensor<ui32>
    %w:2 = stablehlo.while(%i = {start}, %before = %x) : tensor<ui32>, {TYPE}
    cond {{
      %e = stablehlo.slice %before [0:1] : ({TYPE}) -> tensor<1xf32>
      %f = stablehlo.reshape %e : (tensor<1xf32>) -> tensor<f32>
      %data = stablehlo.convert %f : (tensor<f32>) -> tensor<ui32>
      %q = stablehlo.compare LT, {condition}, %five : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      stablehlo.return %q : tensor<i1>
    }} do {{
      %j = stablehlo.add %i, {step} : tensor<ui32>{body}
      stablehlo.return %j, %after : tensor<ui32>, {TYPE}
    }}{COPY}"""


APART = {
    "start": _while("%id", "%one"),
    "step": _while("%zero", "%more"),
    "data": _while("%zero", "%one", "%data"),
    "no elements": f"""{FIRST_TWO}
    %none = "stablehlo.if"(%p) ({{{all_reduce(range(4)).replace("%y", "%hidden")}
      %e = stablehlo.slice %hidden [0:0] : ({TYPE}) -> tensor<0xf32>
      stablehlo.return %e : tensor<0xf32>
    }}, {{
      %e = stablehlo.slice %x [0:0] : ({TYPE}) -> tensor<0xf32>
      stablehlo.return %e : tensor<0xf32>
    }}) : (tensor<i1>) -> tensor<0xf32>{COPY}""",
    "no results": f"""{FIRST_TWO}
    "stablehlo.if"(%p) ({{{all_reduce(range(4)).replace("%y", "%hidden")}
      stablehlo.return
    }}, {{
      stablehlo.return
    }}) : (tensor<i1>) -> (){COPY}""",
}


@pytest.mark.parametrize("body", APART.values(), ids=APART)
def test_devices_part_in_many_ways(body: str) -> None:
    assert verdict(whole(COPY, 4), local(body, 4)) is Verdict.UNKNOWN


def test_devices_that_count_alike_stay_together() -> None:
    assert verdict(whole(COPY, 4), local(_while("%zero", "%one"), 4)) is Verdict.PROVED
    summed = all_reduce(range(4)).replace("%y", "%sum") + _while("%zero", "%one", "%data").replace("= %x)", "= %sum)")
    assert verdict(whole(COPY, 4), local(summed, 4)) is Verdict.PROVED


@pytest.mark.drawn(12)
@pytest.mark.parametrize("end", UNUSED.values(), ids=UNUSED)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_nothing_is_proved_of_a_program_that_may_hang(form: Form, end: str) -> None:
    body = form(range(4))
    for apart in (hidden(body), _looped(body, "some")):
        hung = apart.replace("%y", "%hung")
        assert verdict(whole(COPY, 4), local(hung + end, 4)) is Verdict.UNKNOWN
    both = _looped(body, "all").replace("%y", "%hung")
    if form.__name__ in KNOWN and end is COPY:  # 0 times what may be no number is not 0
        assert verdict(whole(COPY, 4), local(both + end, 4)) is Verdict.PROVED
