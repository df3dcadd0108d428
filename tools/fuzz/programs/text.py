"""The text of a program, as StableHLO in its generic form."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from tools.fuzz.programs.program import COMPLEX, Block, Function, Kind, Node, identity

ARRAY = "array<i64: {}>"


def tensor(kind: Kind) -> str:
    return f"tensor<{''.join(f'{n}x' for n in kind.shape)}{kind.dtype}>"


def module(
    function: Function,
    devices: int,
    arguments: Sequence[str],
    results: Sequence[str],
    head: str = "",
    replicas: int = 1,
) -> str:
    """A module whose arguments and results have such attributes (a text for each, empty for none)."""
    counts = f"mhlo.num_partitions = {devices // replicas} : i32, mhlo.num_replicas = {replicas} : i32"
    kinds = [tensor(function.kinds[value]) for value in function.body.arguments]
    takes = ", ".join(f"%{v}: {t} {a}" for v, t, a in zip(function.body.arguments, kinds, arguments, strict=True))
    gives = ", ".join(
        f"{tensor(function.kinds[value])} {a}" for value, a in zip(function.body.results, results, strict=True)
    )
    lines = _body(function, function.body, "return", 2)
    main = f"  func.func public @main({takes}) -> ({gives}) {{\n" + "\n".join(lines) + "\n  }\n"
    return f"module @m attributes {{{counts}}} {{\n{head}{_with_functions(function, main)}}}\n"


def _with_functions(function: Function, main: str) -> str:
    """The text with what is called; what differs in names alone is one function."""
    calls = [node for block in function.body.blocks() for node in block.nodes if node.op == "call"]
    texts = {node.outputs[0]: _function(function, node) for node in calls}
    plain: dict[str, int] = {}
    same = {n: plain.setdefault(_without_names(text), n) for n, text in texts.items()}
    found = main + "".join(f"  func.func private @f{n}{text}" for n, text in texts.items() if same[n] == n)
    return re.sub(r"callee = @f(\d+)", lambda match: f"callee = @f{same[int(match[1])]}", found)


def _function(function: Function, node: Node) -> str:
    (block,) = node.regions
    takes = ", ".join(f"%{value}: {tensor(function.kinds[value])}" for value in block.arguments)
    gives = ", ".join(tensor(function.kinds[value]) for value in block.results)
    lines = "\n".join(_body(function, block, "return", 2))
    return f"({takes}) -> ({gives}) {{\n{lines}\n  }}\n"


def _without_names(text: str) -> str:
    """The text with values numbered as they come; calls inside of it keep their own numbers."""
    numbers: dict[str, int] = {}
    return re.sub(r"%\w+", lambda match: f"%{numbers.setdefault(match[0], len(numbers))}", text)


def _body(function: Function, block: Block, end: str, depth: int) -> list[str]:
    lines = [line for node in block.nodes for line in _node(function, node, depth)]
    names = ", ".join(f"%{value}" for value in block.results)
    kinds = ", ".join(tensor(function.kinds[value]) for value in block.results)
    if end == "return":
        return [*lines, f"{'  ' * depth}return {names} : {kinds}"]
    return [*lines, f'{"  " * depth}"{end}"({names}) : ({kinds}) -> ()']


def _node(function: Function, node: Node, depth: int) -> list[str]:
    pad = "  " * depth
    kinds = [function.kinds[value] for value in node.inputs]
    results = [function.kinds[value] for value in node.outputs]
    names = [f"%{value}" for value in node.inputs]
    lines, regions = [], ""
    if "combine" in node.attributes:
        # A literal, since what a reducer leaves as it is belongs to the reduction, not to the program.
        if node.op in ("reduce", "reduce_window"):
            scalar = kinds[0].shaped()
            start = f"%s{node.outputs[0]}"
            nothing = identity(node.attributes["combine"], scalar.dtype)
            value = literal(node.attributes.get("start", nothing), scalar)
            lines.append(f'{pad}{start} = "stablehlo.constant"() {{value = {value}}} : () -> {tensor(scalar)}')
            names.append(start)
            kinds.append(scalar)
        regions = f" ({{\n{_reducer(node, kinds[0].shaped())}\n{pad}}})"
    elif node.op == "sort":
        regions = f" ({{\n{_comparator(node, kinds)}\n{pad}}})"
    elif node.op == "argmax":
        return _argmax(node, kinds, results, depth)
    elif node.regions and node.op != "call":
        end = "sdy.return" if node.op == "manual" else "stablehlo.return"
        texts = []
        for block in node.regions:
            heads = ", ".join(f"%{value}: {tensor(function.kinds[value])}" for value in block.arguments)
            head = [f"{pad}^bb0({heads}):"] if block.arguments else []
            texts.append("{\n" + "\n".join([*head, *_body(function, block, end, depth + 1)]) + f"\n{pad}}}")
        regions = f" ({', '.join(texts)})"
    found = ", ".join(text for text in ATTRIBUTES.get(node.op, _none)(node, kinds, results) if text)
    op = NAMES.get(node.op, f"stablehlo.{node.op}")
    outputs = ", ".join(f"%{value}" for value in node.outputs)
    lines.append(
        f'{pad}{outputs} = "{op}"({", ".join(names)}){regions} {{{found}}} : '
        f"({', '.join(map(tensor, kinds))}) -> {_together([tensor(kind) for kind in results])}"
    )
    return lines


NAMES = {"manual": "sdy.manual_computation", "call": "func.call", "mulhi": "chlo.mulhi"}


def _together(kinds: Sequence[str]) -> str:
    return kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"


def _reducer(node: Node, scalar: Kind) -> str:
    name, kind = f"{node.outputs[0]}", tensor(scalar)
    combine = node.attributes["combine"]
    body = f'%z{name} = "stablehlo.{combine}"(%x{name}, %y{name}) : ({kind}, {kind}) -> {kind}'
    last = "y" if combine == "second" else "z"
    body = "" if combine == "second" else body
    return f'^bb0(%x{name}: {kind}, %y{name}: {kind}):\n{body}\n"stablehlo.return"(%{last}{name}) : ({kind}) -> ()'


def _comparator(node: Node, kinds: Sequence[Kind]) -> str:
    name = node.outputs[0]
    pairs = [f"%{side}{name}_{k}: {tensor(kind.shaped())}" for k, kind in enumerate(kinds) for side in "xy"]
    kind = tensor(kinds[0].shaped())
    direction = f"#stablehlo<comparison_direction {node.attributes['direction']}>"
    return (
        f"^bb0({', '.join(pairs)}):\n"
        f'%z{name} = "stablehlo.compare"(%x{name}_0, %y{name}_0) {{comparison_direction = {direction}}} : '
        f'({kind}, {kind}) -> tensor<i1>\n"stablehlo.return"(%z{name}) : (tensor<i1>) -> ()'
    )


def _argmax(node: Node, kinds: Sequence[Kind], results: Sequence[Kind], depth: int) -> list[str]:
    """The greatest along a dimension with its number, the lowest number of equal ones, as JAX lowers it."""
    n, pad = node.outputs[0], "  " * depth
    value, index = (tensor(kind.shaped()) for kind in kinds)
    low = literal(identity("maximum", kinds[0].dtype), kinds[0].shaped())
    return [
        f'{pad}%s{n} = "stablehlo.constant"() {{value = {low}}} : () -> {value}',
        f'{pad}%t{n} = "stablehlo.constant"() {{value = {literal(0, kinds[1].shaped())}}} : () -> {index}',
        f'{pad}%{n}, %{node.outputs[1]} = "stablehlo.reduce"(%{node.inputs[0]}, %{node.inputs[1]}, %s{n}, %t{n}) ({{',
        f"^bb0(%a{n}: {value}, %i{n}: {index}, %b{n}: {value}, %j{n}: {index}):",
        _compare(f"%p{n}", "GT", f"%a{n}", f"%b{n}", value),
        _compare(f"%q{n}", "EQ", f"%a{n}", f"%b{n}", value),
        _compare(f"%r{n}", node.attributes["ties"], f"%i{n}", f"%j{n}", index),
        f'%u{n} = "stablehlo.and"(%q{n}, %r{n}) : (tensor<i1>, tensor<i1>) -> tensor<i1>',
        f'%v{n} = "stablehlo.or"(%p{n}, %u{n}) : (tensor<i1>, tensor<i1>) -> tensor<i1>',
        f'%c{n} = "stablehlo.select"(%p{n}, %a{n}, %b{n}) : (tensor<i1>, {value}, {value}) -> {value}',
        f'%k{n} = "stablehlo.select"(%v{n}, %i{n}, %j{n}) : (tensor<i1>, {index}, {index}) -> {index}',
        f'"stablehlo.return"(%c{n}, %k{n}) : ({value}, {index}) -> ()',
        f"{pad}}}) {{dimensions = {ARRAY.format(node.attributes['dim'])}}} : "
        f"({', '.join(map(tensor, kinds))}, {value}, {index}) -> ({', '.join(map(tensor, results))})",
    ]


def _compare(name: str, direction: str, a: str, b: str, kind: str) -> str:
    return (
        f'{name} = "stablehlo.compare"({a}, {b}) {{comparison_direction = #stablehlo<comparison_direction '
        f"{direction}>}} : ({kind}, {kind}) -> tensor<i1>"
    )


def literal(value: Any, kind: Kind) -> str:
    """An attribute with those elements: one for all, or nested lists."""
    return f"dense<{_elements(value, kind)}> : {tensor(kind)}"


def _elements(value: Any, kind: Kind) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_elements(each, kind) for each in value)}]" if value else ""
    if kind.dtype == "i1":
        return "true" if value else "false"
    if kind.dtype == COMPLEX:
        return f"({complex(value).real:.17e}, {complex(value).imag:.17e})"
    if not kind.is_float:
        return str(int(value) % 2**kind.bits if kind.dtype.startswith("ui") else int(value))
    if math.isfinite(value):
        return f"{value:.17e}"
    bits = {"f16": ("7E00", "7C00", "FC00"), "bf16": ("7FC0", "7F80", "FF80")}
    bits |= {
        "f32": ("7FC00000", "7F800000", "FF800000"),
        "f64": ("7FF8" + "0" * 12, "7FF" + "0" * 13, "FFF" + "0" * 13),
    }
    nan, most, least = bits[kind.dtype]
    return "0x" + (nan if math.isnan(value) else most if value > 0 else least)


def _array(values: Sequence[int]) -> str:
    return ARRAY.format(", ".join(map(str, values))) if values else "array<i64>"


def _none(node: Node, kinds: Sequence[Kind], results: Sequence[Kind]) -> list[str]:
    return []


def _groups(node: Node) -> str:
    """Groups of unequal sizes are filled up with -1."""
    size = max(map(len, node.attributes["groups"]))
    rows = [[*row, *[-1] * (size - len(row))] for row in node.attributes["groups"]]
    return f"replica_groups = {literal(rows, Kind((len(rows), len(rows[0])), 'i64'))}"


def _across(node: Node) -> list[str]:
    """Which devices communicate (see `replicas`)."""
    has_channel, is_global = node.attributes.get("channel", True), node.attributes.get("global", True)
    can_be = node.op in ("all_reduce", "reduce_scatter", "all_gather")
    flag = "use_global_device_ids" if is_global and can_be else ""
    rows = _pairs(node) if node.op == "collective_permute" else _groups(node)
    return [rows, CHANNEL if has_channel else "", flag]


CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def _slices(node: Node, kinds: Sequence[Kind], results: Sequence[Kind]) -> list[str]:
    names = {"starts": "start_indices", "limits": "limit_indices", "strides": "strides"}
    return [f"{name} = {_array(node.attributes[key])}" for key, name in names.items()]


def _padding(node: Node, kinds: Sequence[Kind], results: Sequence[Kind]) -> list[str]:
    low, high = node.attributes["low"], node.attributes["high"]
    inner = node.attributes.get("inner", [0] * len(low))
    return [f"edge_padding_{name} = {_array(each)}" for name, each in (("low", low), ("high", high))] + [
        f"interior_padding = {_array(inner)}"
    ]


def _windows(node: Node, kinds: Sequence[Kind], results: Sequence[Kind]) -> list[str]:
    dim, rank = node.attributes["dim"], len(results[0].shape)

    def along(value: int, otherwise: int = 1) -> str:
        return _array([value if k == dim else otherwise for k in range(rank)])

    edges = [list(node.attributes["edges"]) if k == dim else [0, 0] for k in range(rank)]
    return [
        f"window_dimensions = {along(node.attributes['size'])}",
        f"window_strides = {along(node.attributes['stride'])}",
        f"base_dilations = {along(1)}",
        f"window_dilations = {along(node.attributes['dilation'])}",
        f"padding = {literal(edges, Kind((rank, 2), 'i64'))}",
    ]


def _dot(node: Node, kinds: Sequence[Kind], results: Sequence[Kind]) -> list[str]:
    a = node.attributes
    lists = [
        f"lhs_batching_dimensions = {list(a['batch'][0])}",
        f"rhs_batching_dimensions = {list(a['batch'][1])}",
        f"lhs_contracting_dimensions = {list(a['contract'][0])}",
        f"rhs_contracting_dimensions = {list(a['contract'][1])}",
    ]
    return [f"dot_dimension_numbers = #stablehlo.dot<{', '.join(lists)}>"]


def _take(node: Node, kinds: Sequence[Kind], results: Sequence[Kind]) -> list[str]:
    """Rows of the operand, by a vector of indices."""
    rank = len(kinds[0].shape)
    numbers = (
        f"offset_dims = {list(range(1, rank))}, collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    )
    sizes = _array([1, *kinds[0].shape[1:]])
    return [f"dimension_numbers = #stablehlo.gather<{numbers}>", f"slice_sizes = {sizes}", "indices_are_sorted = false"]


def _scatter(node: Node, kinds: Sequence[Kind], results: Sequence[Kind]) -> list[str]:
    rank = len(kinds[0].shape)
    numbers = (
        f"update_window_dims = {list(range(1, rank))}, inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    )
    return [
        f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>",
        "indices_are_sorted = false",
        f"unique_indices = {str(node.attributes.get('unique', False)).lower()}",
    ]


def _pairs(node: Node) -> str:
    pairs = node.attributes["pairs"]
    return f"source_target_pairs = {literal(pairs, Kind((len(pairs), 2), 'i64'))}"


def _call(node: Node, kinds: Sequence[Kind], results: Sequence[Kind]) -> list[str]:
    return [
        f'call_target_name = "{node.attributes["target"]}"',
        f"has_side_effect = {str(node.attributes.get('effect', False)).lower()}",
        "api_version = 2 : i32",
    ]


def _manual(node: Node, kinds: Sequence[Kind], results: Sequence[Kind]) -> list[str]:
    axes = ", ".join(f'"{name}"' for name in node.attributes["axes"])
    return [
        f"in_shardings = #sdy.sharding_per_value<[{', '.join(node.attributes['takes'])}]>",
        f"out_shardings = #sdy.sharding_per_value<[{', '.join(node.attributes['gives'])}]>",
        f"manual_axes = #sdy<manual_axes{{{axes}}}>",
    ]


ATTRIBUTES: dict[str, Callable[[Node, Sequence[Kind], Sequence[Kind]], list[str]]] = {
    "constant": lambda n, k, r: [f"value = {literal(n.attributes['value'], r[0])}"],
    "dynamic_slice": lambda n, k, r: [f"slice_sizes = {_array(r[0].shape)}"],
    "compare": lambda n, k, r: [f"comparison_direction = #stablehlo<comparison_direction {n.attributes['direction']}>"],
    "broadcast_in_dim": lambda n, k, r: [f"broadcast_dimensions = {_array(n.attributes['dims'])}"],
    "transpose": lambda n, k, r: [f"permutation = {_array(n.attributes['order'])}"],
    "reverse": lambda n, k, r: [f"dimensions = {_array(n.attributes['dims'])}"],
    "slice": _slices,
    "pad": _padding,
    "concatenate": lambda n, k, r: [f"dimension = {n.attributes['dim']} : i64"],
    "iota": lambda n, k, r: [f"iota_dimension = {n.attributes['dim']} : i64"],
    "reduce_window": _windows,
    "rng_bit_generator": lambda n, k, r: ["rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>"],
    "call": lambda n, k, r: [f"callee = @f{n.outputs[0]}"],
    "reduce": lambda n, k, r: [f"dimensions = {_array(n.attributes['dims'])}"],
    "dot_general": _dot,
    "gather": _take,
    "scatter": _scatter,
    "sort": lambda n, k, r: [f"dimension = {n.attributes['dim']} : i64", "is_stable = true"],
    "all_reduce": lambda n, k, r: _across(n),
    "reduce_scatter": lambda n, k, r: [*_across(n), f"scatter_dimension = {n.attributes['dim']} : i64"],
    "all_gather": lambda n, k, r: [*_across(n), f"all_gather_dim = {n.attributes['dim']} : i64"],
    "all_to_all": lambda n, k, r: [
        *_across(n), f"split_dimension = {n.attributes['split']} : i64",
        f"concat_dimension = {n.attributes['dim']} : i64", f"split_count = {len(n.attributes['groups'][0])} : i64",
    ],
    "collective_permute": lambda n, k, r: _across(n),
    "collective_broadcast": lambda n, k, r: _across(n),
    "rng": lambda n, k, r: ["rng_distribution = #stablehlo<rng_distribution UNIFORM>"],
    "custom_call": _call,
    "manual": _manual,
}  # fmt: skip
