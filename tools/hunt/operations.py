"""How each operation is written in Python, from its attributes. Attributes are relative to shapes where they can be, so
that a program stays one when its arguments get smaller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Attributes = Mapping[str, Any]
Names = Sequence[str]


def _pairs(given: Any) -> str:
    return "[" + ", ".join(str(tuple(each)) for each in given) + "]"


def _unary(n: Names, a: Attributes) -> str:
    return f"{a['function']}({n[0]})"


def _binary(n: Names, a: Attributes) -> str:
    return f"{a['function']}({n[0]}, {n[1]})"


def _choose(n: Names, a: Attributes) -> str:
    return f"jnp.where({n[0]} > {n[1]}, {n[0]}, 2 * {n[1]})"


def _merge(n: Names, a: Attributes) -> str:
    x, d = n[0], a["dim"]
    return f"{x}.reshape({x}.shape[:{d}] + (-1,) + {x}.shape[{d + 2}:])"


def _split(n: Names, a: Attributes) -> str:
    x, d = n[0], a["dim"]
    sizes = f"(-1, {a['by']})" if a["minor"] else f"({a['by']}, -1)"
    return f"{x}.reshape({x}.shape[:{d}] + {sizes} + {x}.shape[{d + 1}:])"


def _flatten(n: Names, a: Attributes) -> str:
    return f"{n[0]}.reshape(-1)"


def _transpose(n: Names, a: Attributes) -> str:
    return f"jnp.transpose({n[0]}, {tuple(a['order'])})"


def _repeat(n: Names, a: Attributes) -> str:
    """A new dimension, in which all is alike."""
    x = f"jnp.expand_dims({n[0]}, {a['dim']})"
    return f"jnp.broadcast_to({x}, {n[0]}.shape[:{a['dim']}] + ({a['size']},) + {n[0]}.shape[{a['dim']}:])"


def _reverse(n: Names, a: Attributes) -> str:
    return f"lax.rev({n[0]}, {tuple(a['dims'])})"


def _slice(n: Names, a: Attributes) -> str:
    d = a["dim"]
    return f"lax.slice_in_dim({n[0]}, {a['low']}, {n[0]}.shape[{d}] - {a['high']}, {a['stride']}, axis={d})"


def _roll(n: Names, a: Attributes) -> str:
    return f"jnp.roll({n[0]}, {a['by']}, axis={a['dim']})"


def _pad(n: Names, a: Attributes) -> str:
    return f"lax.pad({n[0]}, jnp.array({a['value']}, {n[0]}.dtype), {_pairs(a['edges'])})"


def _concatenate(n: Names, a: Attributes) -> str:
    return f"lax.concatenate([{', '.join(n)}], {a['dim']})"


def _iota(n: Names, a: Attributes) -> str:
    return f"{n[0]} + lax.broadcasted_iota({n[0]}.dtype, {n[0]}.shape, {a['dim']})"


def _triangle(n: Names, a: Attributes) -> str:
    return f"jnp.{a['function']}({n[0]}, {a['diagonal']})"


def _reduce(n: Names, a: Attributes) -> str:
    return f"jnp.{a['function']}({n[0]}, axis={tuple(a['dims'])})"


def _place(n: Names, a: Attributes) -> str:
    return f"jnp.{a['function']}({n[0]}, axis={a['dim']})"


def _cumulative(n: Names, a: Attributes) -> str:
    reverse = ", reverse=True" if a["reverse"] else ""
    return f"lax.{a['function']}({n[0]}, axis={a['dim']}{reverse})"


def _sort(n: Names, a: Attributes) -> str:
    return f"lax.sort({n[0]}, dimension={a['dim']})"


def _arrange(n: Names, a: Attributes) -> str:
    """One by the order of another."""
    return f"lax.sort(({n[0]}, {n[1]}), dimension={a['dim']}, num_keys=1)[1]"


def _best(n: Names, a: Attributes) -> str:
    return f"lax.top_k({n[0]}, {a['count']})[{a['which']}]"


def _scan(n: Names, a: Attributes) -> str:
    zero = f"jnp.zeros({n[0]}.shape[1:], {n[0]}.dtype)"
    return f"lax.scan(lambda c, v: (c * 2 + v, c + v), {zero}, {n[0]})[{a['which']}]"


_INITIAL = {"max": "-jnp.inf", "min": "jnp.inf", "add": "0."}


def _windows(n: Names, a: Attributes) -> str:
    dilations = ""
    if any(each != 1 for each in (*a["base"], *a["dilation"])):
        dilations = f", {tuple(a['base'])}, {tuple(a['dilation'])}"
    function = a["function"]
    return (
        f"lax.reduce_window({n[0]}, {_INITIAL[function]}, lax.{function}, {tuple(a['sizes'])}, {tuple(a['strides'])}, "
        f"{_pairs(a['edges'])}{dilations})"
    )


LAYOUTS = {1: (("NWC", "WIO", "NWC"), ("NCW", "OIW", "NCW")), 2: (("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"))}


def _convolution(n: Names, a: Attributes) -> str:
    layout = LAYOUTS[len(a["strides"])][a["channels_first"]]
    further = f", dimension_numbers={layout}"
    for name, neutral in (("lhs_dilation", 1), ("rhs_dilation", 1)):
        if any(each != neutral for each in a[name]):
            further += f", {name}={tuple(a[name])}"
    for name in ("feature_group_count", "batch_group_count"):
        if a[name] != 1:
            further += f", {name}={a[name]}"
    return f"lax.conv_general_dilated({n[0]}, {n[1]}, {tuple(a['strides'])}, {_pairs(a['edges'])}{further})"


def _product(n: Names, a: Attributes) -> str:
    return f"jnp.einsum({a['formula']!r}, {n[0]}, {n[1]})"


def _unreduced(n: Names, a: Attributes) -> str:
    """A product on an explicit mesh that is left in addends."""
    from tools.hunt.source import spec_text

    return f"jnp.einsum({a['formula']!r}, {n[0]}, {n[1]}, out_sharding={spec_text(a['spec'], a['over'])})"


def _dynamic_slice(n: Names, a: Attributes) -> str:
    return f"lax.dynamic_slice_in_dim({n[0]}, {n[1]}[0], {a['size']}, {a['dim']})"


def _dynamic_update(n: Names, a: Attributes) -> str:
    return f"lax.dynamic_update_slice_in_dim({n[0]}, {n[1]}, {n[2]}[0], {a['dim']})"


def _take(n: Names, a: Attributes) -> str:
    return f"jnp.take({n[0]}, {n[1]}, axis={a['dim']}, mode={a['mode']!r})"


def _take_along(n: Names, a: Attributes) -> str:
    return f"jnp.take_along_axis({n[0]}, {n[1]}, axis={a['dim']}, mode={a['mode']!r})"


def _each_row(n: Names, a: Attributes) -> str:
    """Of each row the element that the index says."""
    return f"{n[0]}[jnp.arange({n[0]}.shape[0]), {n[1]}]"


def _scatter(n: Names, a: Attributes) -> str:
    at = ":, " * a["dim"]
    unique = ", unique_indices=True" if a["unique"] else ""
    return f"{n[0]}.at[{at}{n[1]}].{a['function']}({n[2]}, mode={a['mode']!r}{unique})"


def _scatter_rows(n: Names, a: Attributes) -> str:
    return f"{n[0]}.at[jnp.arange({n[0]}.shape[0]), {n[1]}].{a['function']}({n[2]})"


def _fourier(n: Names, a: Attributes) -> str:
    return f"jnp.fft.{a['function']}({n[0]}, axis={a['dim']}).real"


OPERATIONS: dict[str, Callable[[Names, Attributes], str]] = {
    "unary": _unary, "binary": _binary, "choose": _choose, "merge": _merge, "split": _split, "flatten": _flatten,
    "transpose": _transpose, "repeat": _repeat, "reverse": _reverse, "slice": _slice, "roll": _roll, "pad": _pad,
    "concatenate": _concatenate, "iota": _iota, "triangle": _triangle, "reduce": _reduce, "place": _place,
    "cumulative": _cumulative, "sort": _sort, "arrange": _arrange, "best": _best, "scan": _scan, "windows": _windows,
    "convolution": _convolution, "product": _product, "unreduced": _unreduced, "dynamic_slice": _dynamic_slice,
    "dynamic_update": _dynamic_update, "take": _take, "take_along": _take_along, "each_row": _each_row,
    "scatter": _scatter, "scatter_rows": _scatter_rows, "fourier": _fourier,
}  # fmt: skip


def expression(op: str, names: Names, attributes: Attributes, placed: bool = True) -> str:
    """One operation as an expression of its operands' names. Where nothing is `placed`, it says no sharding."""
    if op == "unreduced" and not placed:
        return _product(names, attributes)
    return OPERATIONS[op](names, attributes)
