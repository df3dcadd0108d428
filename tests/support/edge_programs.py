"""Random programs at the borders of real numbers: zeros, infinities, divisions by 0, loops whose turns hang on zeros.

Each value has four elements. What an operation is written as is data: the kinds of its operands and of its result
(`f` floats, `i` integers, `b` truth values), and its text, in which `{r}` is the result and begins the names of values
on the way.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

DEVICES = 4
KINDS = {"f": "tensor<4xf32>", "i": "tensor<4xi32>", "b": "tensor<4xi1>", "g": "tensor<f32>", "j": "tensor<i32>"}
TYPES = {**{kind.upper(): text for kind, text in KINDS.items()}, "M": "tensor<4x4xf32>", "T": "tensor<i1>"}
TYPES |= {"C": "tensor<4xcomplex<f32>>", "V": "tensor<4x1xi32>"}

FLOATS = "0.0 -0.0 1.0 -1.0 0.5 -2.0 3.0 0x7F800000 0xFF800000 0x7FC00000".split()
MIXED = ["[0.0, 1.0, 2.0, 0.5]", "[0xFF800000, 0.0, -1.0, 1.0]", "[1.0, 2.0, 3.0, 0.5]", "[0.0, -0.0, 0.0, 0.0]"]
INTEGERS = "0 1 -1 2 3 65536 -2147483648 [0,1,2,3] [1,0,1,0] [0,0,0,5]".split()
GROUPS = "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def _unary(names: str, kind: str, dialect: str = "stablehlo") -> dict[str, tuple[str, str, str]]:
    text = kind.upper()
    return {f"{name} {kind}": (kind, kind, f"{{r}} = {dialect}.{name} {{0}} : {{{text}}}") for name in names.split()}


def _binary(names: str, kind: str) -> dict[str, tuple[str, str, str]]:
    text = f"{{{kind.upper()}}}"
    return {f"{n} {kind}": (kind * 2, kind, f"{{r}} = stablehlo.{n} {{0}}, {{1}} : {text}") for n in names.split()}


def _reductions() -> Iterator[tuple[str, tuple[str, str, str]]]:
    for kind, names in (("f", "add multiply maximum minimum"), ("i", "add multiply maximum minimum and or")):
        scalar, whole = {"f": "{G}", "i": "{J}"}[kind], f"{{{kind.upper()}}}"
        for name in names.split():
            for init in ["0.0", "1.0", "-1.0", "0xFF800000", "0x7F800000"] if kind == "f" else ["0", "1"]:
                yield (
                    f"reduce {name} {kind} {init}",
                    (
                        kind,
                        kind,
                        f"{{r}}_s = stablehlo.constant dense<{init}> : {scalar}\n"
                        f"{{r}}_x = stablehlo.reduce({{0}} init: {{r}}_s) applies stablehlo.{name} across dimensions = "
                        f"[0] : ({whole}, {scalar}) -> {scalar}\n"
                        f"{{r}} = stablehlo.broadcast_in_dim {{r}}_x, dims = [] : ({scalar}) -> {whole}",
                    ),
                )


def _scatters() -> Iterator[tuple[str, tuple[str, str, str]]]:
    for name in ("add", "multiply", "maximum", "minimum", "set"):
        body = "" if name == "set" else f"{{r}}_z = stablehlo.{name} {{r}}_p, {{r}}_q : {{G}}\n"
        last = "{r}_q" if name == "set" else "{r}_z"
        yield (
            f"scatter {name}",
            (
                "fif",
                "f",
                "{r}_v = stablehlo.reshape {1} : ({I}) -> {V}\n"
                '{r} = "stablehlo.scatter"({0}, {r}_v, {2}) ({{\n^bb0({r}_p: {G}, {r}_q: {G}):\n'
                f"{body}stablehlo.return {last} : {{G}}\n}}}}) "
                "{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], "
                "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}} : ({F}, {V}, {F}) -> {F}",
            ),
        )


def _collectives() -> Iterator[tuple[str, tuple[str, str, str]]]:
    """On four devices, in groups of two; `exchange_n` are done within rows."""
    for name in ("add", "multiply", "maximum", "minimum"):
        yield (
            f"all_reduce {name}",
            (
                "f",
                "f",
                '{r} = "stablehlo.all_reduce"({0}) ({{\n^bb0({r}_p: {G}, {r}_q: {G}):\n'
                f"{{r}}_z = stablehlo.{name} {{r}}_p, {{r}}_q : {{G}}\nstablehlo.return {{r}}_z : {{G}}\n}}}}) "
                f"{{{{replica_groups = {GROUPS}, {CHANNEL}, use_global_device_ids}}}} : ({{F}}) -> {{F}}",
            ),
        )
    yield (
        "all_gather",
        (
            "f",
            "f",
            f'{{r}}_g = "stablehlo.all_gather"({{0}}) {{{{all_gather_dim = 0 : i64, replica_groups = {GROUPS}, '
            f"{CHANNEL}, use_global_device_ids}}}} : ({{F}}) -> tensor<8xf32>\n"
            "{r} = stablehlo.slice {r}_g [2:6] : (tensor<8xf32>) -> {F}",
        ),
    )
    yield (
        "all_to_all",
        (
            "f",
            "f",
            f'{{r}} = "stablehlo.all_to_all"({{0}}) {{{{split_dimension = 0 : i64, concat_dimension = 0 : i64, '
            f"split_count = 2 : i64, replica_groups = {GROUPS}, {CHANNEL}}}}} : ({{F}}) -> {{F}}",
        ),
    )
    yield (
        "collective_permute",
        (
            "f",
            "f",
            '{r} = "stablehlo.collective_permute"({0}) {{source_target_pairs = dense<[[0, 1], [2, 0]]> : '
            f"tensor<2x2xi64>, {CHANNEL}}}}} : ({{F}}) -> {{F}}",
        ),
    )
    yield (
        "partition_id",
        (
            "",
            "i",
            "{r}_p = stablehlo.partition_id : tensor<ui32>\n{r}_q = stablehlo.convert {r}_p : (tensor<ui32>) -> {J}\n"
            "{r} = stablehlo.broadcast_in_dim {r}_q, dims = [] : ({J}) -> {I}",
        ),
    )


INDEX = (
    "{r}_i = stablehlo.slice {1} [0:1] : ({I}) -> tensor<1xi32>\n"
    "{r}_j = stablehlo.reshape {r}_i : (tensor<1xi32>) -> {J}\n"
)
COUNTED = """{r}_i = stablehlo.slice {0} [3:4] : ({I}) -> tensor<1xi32>
{r}_z = stablehlo.constant dense<0> : {J}
{r}_one = stablehlo.constant dense<1> : {J}
{r}_five = stablehlo.constant dense<5> : {J}
{r}_k = stablehlo.reshape {r}_i : (tensor<1xi32>) -> {J}
{r}_n = stablehlo.minimum {r}_k, {r}_five : {J}
{r}:2 = stablehlo.while({r}_c = {r}_z, {r}_s = {1}) : {J}, {F}
cond {{
  {r}_t = stablehlo.compare LT, {r}_c, {r}_n : ({J}, {J}) -> {T}
  stablehlo.return {r}_t : {T}
}} do {{
  {r}_d = stablehlo.add {r}_c, {r}_one : {J}
  {r}_e = stablehlo.BODY : {F}
  stablehlo.return {r}_d, {r}_e : {J}, {F}
}}"""
BRANCHED = """{r}_i = stablehlo.slice {0} [0:1] : ({B}) -> tensor<1xi1>
{r}_k = stablehlo.reshape {r}_i : (tensor<1xi1>) -> {T}
{r} = "stablehlo.if"({r}_k) ({{
  {r}_a = stablehlo.multiply {1}, {2} : {F}
  stablehlo.return {r}_a : {F}
}}, {{
  {r}_b = stablehlo.divide {2}, {1} : {F}
  stablehlo.return {r}_b : {F}
}}) : ({T}) -> {F}"""
MADE_OF_PARTS: dict[str, tuple[str, str, str]] = {
    "compare f": ("ff", "b", "{r} = stablehlo.compare LE, {0}, {1} : ({F}, {F}) -> {B}"),
    "compare ne": ("ff", "b", "{r} = stablehlo.compare NE, {0}, {1} : ({F}, {F}) -> {B}"),
    "compare i": ("ii", "b", "{r} = stablehlo.compare GT, {0}, {1} : ({I}, {I}) -> {B}"),
    "is_finite": ("f", "b", "{r} = stablehlo.is_finite {0} : ({F}) -> {B}"),
    "select": ("bff", "f", "{r} = stablehlo.select {0}, {1}, {2} : {B}, {F}"),
    "clamp": ("fff", "f", "{r} = stablehlo.clamp {0}, {1}, {2} : {F}"),
    "to integers": ("f", "i", "{r} = stablehlo.convert {0} : ({F}) -> {I}"),
    "to floats": ("i", "f", "{r} = stablehlo.convert {0} : ({I}) -> {F}"),
    "of truths": ("b", "f", "{r} = stablehlo.convert {0} : ({B}) -> {F}"),
    "to truths": ("i", "b", "{r} = stablehlo.convert {0} : ({I}) -> {B}"),
    "floats to truths": ("f", "b", "{r} = stablehlo.convert {0} : ({F}) -> {B}"),
    "narrow": (
        "i",
        "i",
        "{r}_n = stablehlo.convert {0} : ({I}) -> tensor<4xi8>\n{r} = stablehlo.convert {r}_n : (tensor<4xi8>) -> {I}",
    ),
    "square": ("f", "f", "{r} = stablehlo.multiply {0}, {0} : {F}"),
    "wrapped square": ("i", "i", "{r} = stablehlo.multiply {0}, {0} : {I}"),
    "ratio": ("f", "f", "{r} = stablehlo.divide {0}, {0} : {F}"),
    "iota": ("", "f", "{r} = stablehlo.iota dim = 0 : {F}"),
    "iota i": ("", "i", "{r} = stablehlo.iota dim = 0 : {I}"),
    "reverse": ("f", "f", "{r} = stablehlo.reverse {0}, dims = [0] : {F}"),
    "concatenate": (
        "ff",
        "f",
        "{r}_a = stablehlo.slice {0} [0:2] : ({F}) -> tensor<2xf32>\n"
        "{r}_b = stablehlo.slice {1} [2:4] : ({F}) -> tensor<2xf32>\n"
        "{r} = stablehlo.concatenate {r}_a, {r}_b, dim = 0 : (tensor<2xf32>, tensor<2xf32>) -> {F}",
    ),
    "pad": (
        "ff",
        "f",
        "{r}_i = stablehlo.slice {1} [1:2] : ({F}) -> tensor<1xf32>\n"
        "{r}_v = stablehlo.reshape {r}_i : (tensor<1xf32>) -> {G}\n"
        "{r} = stablehlo.pad {0}, {r}_v, low = [1], high = [-1], interior = [0] : ({F}, {G}) -> {F}",
    ),
    "dynamic_slice": (
        "fi",
        "f",
        INDEX + "{r}_w = stablehlo.concatenate {0}, {0}, dim = 0 : ({F}, {F}) -> tensor<8xf32>\n"
        "{r} = stablehlo.dynamic_slice {r}_w, {r}_j, sizes = [4] : (tensor<8xf32>, {J}) -> {F}",
    ),
    "dynamic_update_slice": (
        "fif",
        "f",
        INDEX + "{r}_u = stablehlo.slice {2} [0:2] : ({F}) -> tensor<2xf32>\n"
        "{r} = stablehlo.dynamic_update_slice {0}, {r}_u, {r}_j : ({F}, tensor<2xf32>, {J}) -> {F}",
    ),
    "gather": (
        "fi",
        "f",
        "{r}_v = stablehlo.reshape {1} : ({I}) -> {V}\n"
        '{r} = "stablehlo.gather"({0}, {r}_v) {{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], '
        "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}} : ({F}, {V}) -> {F}",
    ),
    "outer product": (
        "ff",
        "f",
        "{r}_m = stablehlo.dot_general {0}, {1}, contracting_dims = [] x [] : ({F}, {F}) -> {M}\n"
        "{r} = stablehlo.dot_general {r}_m, {0}, contracting_dims = [1] x [0] : ({M}, {F}) -> {F}",
    ),
    "inner product": (
        "ff",
        "f",
        "{r}_x = stablehlo.dot_general {0}, {1}, contracting_dims = [0] x [0] : ({F}, {F}) -> {G}\n"
        "{r} = stablehlo.broadcast_in_dim {r}_x, dims = [] : ({G}) -> {F}",
    ),
    "sort": (
        "f",
        "f",
        '{r} = "stablehlo.sort"({0}) ({{\n^bb0({r}_p: {G}, {r}_q: {G}):\n'
        "{r}_t = stablehlo.compare LT, {r}_p, {r}_q : ({G}, {G}) -> {T}\nstablehlo.return {r}_t : {T}\n}}) "
        "{{dimension = 0 : i64, is_stable = true}} : ({F}) -> {F}",
    ),
    "running sum": (
        "f",
        "f",
        '{r}_s = stablehlo.constant dense<0.0> : {G}\n{r} = "stablehlo.reduce_window"({0}, {r}_s) ({{\n'
        "^bb0({r}_p: {G}, {r}_q: {G}):\n{r}_t = stablehlo.add {r}_p, {r}_q : {G}\nstablehlo.return {r}_t : {G}\n}}) "
        "{{window_dimensions = array<i64: 4>, padding = dense<[[3, 0]]> : tensor<1x2xi64>}} : ({F}, {G}) -> {F}",
    ),
    "barrier": ("ff", "f", "{r}:2 = stablehlo.optimization_barrier {0}, {1} : {F}, {F}"),
    "no product of parts": (
        "ff",
        "f",
        "{r}_c = stablehlo.complex {0}, {1} : {C}\n{r}_d = stablehlo.multiply {r}_c, {r}_c : {C}\n"
        "{r} = stablehlo.real {r}_d : ({C}) -> {F}",
    ),
    "imag": ("ff", "f", "{r}_c = stablehlo.complex {0}, {1} : {C}\n{r} = stablehlo.imag {r}_c : ({C}) -> {F}"),
    "size": ("ff", "f", "{r}_c = stablehlo.complex {0}, {1} : {C}\n{r} = stablehlo.abs {r}_c : ({C}) -> {F}"),
    "bits": ("f", "i", "{r} = stablehlo.bitcast_convert {0} : ({F}) -> {I}"),
    "unknown call": ("f", "f", "{r} = stablehlo.custom_call @who_knows({0}) : ({F}) -> {F}"),
    "sums": ("if", "f", COUNTED.replace("BODY", "add {r}_s, {1}")),
    "products": ("if", "f", COUNTED.replace("BODY", "multiply {r}_s, {1}")),
    "exponentials": ("if", "f", COUNTED.replace("BODY", "cosine {r}_s")),
    "quotients": ("if", "f", COUNTED.replace("BODY", "divide {1}, {r}_s")),
    "branch": ("bff", "f", BRANCHED),
}
"""Several operations together."""

PIECES: dict[str, tuple[str, str, str]] = {
    **_unary(
        "negate abs exponential exponential_minus_one log log_plus_one sqrt rsqrt cbrt sine cosine tan tanh logistic "
        "sign floor ceil round_nearest_even round_nearest_afz",
        "f",
    ),
    **_unary("negate abs sign not popcnt", "i"),
    **_unary("not", "b"),
    **_binary("add subtract multiply divide maximum minimum power remainder atan2", "f"),
    **_binary(
        "add subtract multiply divide maximum minimum remainder and or xor shift_left shift_right_arithmetic power", "i"
    ),
    **_binary("and or xor", "b"),
    **dict(_reductions()),
    **dict(_scatters()),
    **MADE_OF_PARTS,
}
ON_DEVICES = {**PIECES, **dict(_collectives())}
OFTEN = "add f multiply f divide f subtract f maximum f select inner@product exponential f".replace(" f", "@f").split()


@dataclass(slots=True)
class Program:
    """A program that is written line by line; what it has, by kind."""

    random: random.Random
    devices: int
    lines: list[str] = field(default_factory=list)
    values: dict[str, list[str]] = field(default_factory=lambda: {"f": [], "i": [], "b": []})
    pieces: list[str] = field(default_factory=list)

    def operand(self, kind: str) -> str:
        """A value of that kind, rather a late one, or a constant."""
        found = self.values[kind]
        if found and self.random.random() < 0.85:
            return self.random.choice(found[-3:] if self.random.random() < 0.5 else found)
        if kind == "b":
            return self.added("compare f")
        name, literal = f"%c{len(self.lines)}", self.random.choice([*FLOATS, *MIXED] if kind == "f" else INTEGERS)
        self.lines.append(f"{name} = stablehlo.constant dense<{literal}> : {KINDS[kind]}")
        return name

    def added(self, piece: str) -> str:
        kinds, result, text = ON_DEVICES[piece]
        operands = [self.operand(kind) for kind in kinds]
        name = f"%r{len(self.lines)}"
        self.lines.append(text.format(*operands, r=name, **TYPES))
        if ":2 = " in self.lines[-1]:
            name += "#1"
        self.values[result].append(name)
        self.pieces.append(piece)
        return name


def edge_program(seed: str, devices: int = 1, length: int = 8) -> tuple[str, list[str]]:
    """The text of a program of four arguments, and what it is made of."""
    rng = random.Random(seed)
    program = Program(rng, devices)
    arguments = [("f", "%x"), ("f", "%y"), ("f", "%z"), ("i", "%n")]
    for kind, name in arguments:
        program.values[kind].append(name)
    families: dict[str, list[str]] = {}
    for piece in ON_DEVICES if devices > 1 else PIECES:
        families.setdefault(piece.partition(" ")[0], []).append(piece)
    for _ in range(length):
        often = rng.choice(OFTEN).replace("@", " ")
        program.added(often if rng.random() < 0.3 else rng.choice(families[rng.choice(list(families))]))
    takes = ", ".join(f"{name}: {KINDS[kind]}" for kind, name in arguments)
    gives = [(kind, value) for kind, values in program.values.items() for value in values[-3:]]
    body = "\n".join(program.lines)
    types = ", ".join(KINDS[kind] for kind, _ in gives)
    head = f"module @edges attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}}"
    names = ", ".join(value for _, value in gives)
    return (
        f"{head} {{\nfunc.func @main({takes}) -> ({types}) {{\n{body}\nreturn {names} : {types}\n}}\n}}",
        program.pieces,
    )
