"""Which texts of HloShardings jaxlib can be handed.

Its parser ends the whole process where a text is well formed but makes no sense: tiles and devices whose numbers
differ, an axis that the mesh does not have. `leaves` refuses those, and whatever is no sharding at all, with a message.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from hlo_verify.diagnostics import Annotation, Input
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.program.mesh import LIMIT, AxisReference, Mesh

_NUMBERS = r"\d{1,18}(?:, ?\d{1,18})*+"
_IOTA = rf"\[(?P<shape>{_NUMBERS})\](?: ?T\((?P<transposed>{_NUMBERS})\))?"
_AXES = r"\{(?:(?:'[^']*'(?::\(\d{1,18}\)\d{1,18})?|\?)(?:, ?)?)*+\}"
_KINDS = "replicated|manual|unreduced"

_WHOLE = re.compile(rf"\{{(?:{_KINDS}|unknown)\}}")
_MAXIMAL = re.compile(r"\{(?:maximal device=(\d{1,18})|maximal_mesh\[device_id=(\d{1,18})\])\}")
_TILED = re.compile(
    rf"\{{devices=\[(?P<tiles>{_NUMBERS})\] ?(?:<={_IOTA}|(?P<ids>{_NUMBERS}))"
    rf"(?: last_tile_dim_replicate| last_tile_dims=\{{(?:{_KINDS})(?:, ?(?:{_KINDS}))*+\}})?\}}"
)
_NAMED = re.compile(
    rf"\{{mesh\[(?P<axes>(?:'[^']*'=\d{{1,18}}(?:, ?)?)*+)\](?:, ?device_ids=\((?:{_IOTA}|(?P<ids>{_NUMBERS}))\))?"
    rf"(?:, ?(?P<dimensions>\[(?:{_AXES}(?:p\d{{1,9}})?(?:, ?)?)*+\]|{_KINDS}))?"
    rf"(?P<others>(?:, ?(?:{_KINDS})={_AXES})*+)\}}"
)
_STRING = r'"(?:[^"\\]|\\.)*"'
_PLACES_NOTHING = re.compile(
    rf"/\*.*?\*/|,?\s*metadata=\{{(?:[^{{}}\"]|{_STRING}|\{{(?:[^{{}}\"]|{_STRING})*\}})*\}}|,?\s*shard_(?:as|like)\s+\d+",
    re.DOTALL,
)


@functools.lru_cache(4096)
def leaves(text: str) -> tuple[str, ...]:
    """The text of each element of a tuple's sharding, or of a sharding that is no tuple's, fit for jaxlib.

    What places nothing is left out: comments, metadata, and `shard_as` and `shard_like`, which tie the propagation of
    shardings. Raises `InputError` for what is no sharding.
    """
    plain = re.sub(r"\s+", " ", _PLACES_NOTHING.sub("", text)).strip()
    elements = _elements(plain[1:-1]) if is_tuple(text) and plain.endswith("}") else [plain]
    try:
        for element in elements:
            _check(element)
    except InputError as error:
        raise InputError(f"not a sharding: {text!r} ({error})", error.code) from error
    return tuple(elements)


def of_what_is_kept(attributes: Mapping[str, Any], count: int, kept: Collection[int]) -> Mapping[str, Any]:
    """The attributes of an operation of so many results that makes no more than some of them: its sharding says of
    these alone, and is left out in another spelling than a tuple's, where it is but a hint."""
    sharding = attributes.get("sharding")
    if sharding is None or len(kept) == count:
        return attributes
    elements = leaves(sharding) if isinstance(sharding, str) and is_tuple(sharding) else ()
    some = {} if len(elements) != count else {"sharding": f"{{{', '.join(elements[k] for k in sorted(kept))}}}"}
    return {name: value for name, value in attributes.items() if name != "sharding"} | some


_BRACES = r"\{[^{}]*+\}"
for _ in range(3):
    _BRACES = rf"\{{(?:[^{{}}\"]|{_STRING}|{_BRACES})*+\}}"
_IN_TEXT = re.compile(rf"\bsharding=({_BRACES})")
_IN_HLO = re.compile(rf"{_STRING}|\bsharding=({_BRACES})", re.DOTALL)


def check_all(hlo: str) -> None:
    """Check every sharding in the text of an HLO module. Raises `InputError` for the first that is none."""
    texts = set(_IN_TEXT.findall(hlo))
    if any(not _makes_sense(text) for text in texts):  # one of them may lie in a string: look again, and slowly
        texts = {found[1] for found in _IN_HLO.finditer(hlo) if found[1]}
    for text in texts:
        leaves(text)


def _makes_sense(text: str) -> bool:
    try:
        leaves(text)
    except InputError:
        return False
    return True


def is_tuple(text: str) -> bool:
    """Whether a sharding's text is a tuple's."""
    return re.match(r"\s*\{\s*(\{|\})", text) is not None


def _elements(inside: str) -> list[str]:
    """The elements between a tuple's braces, each with its own; what is between them is no element."""
    parts, depth, start = [], 0, 0
    for k, char in enumerate(inside):
        if char == "," and depth == 0:
            parts.append(inside[start:k].strip())
            start = k + 1
        depth += (char == "{") - (char == "}")
    last = inside[start:].strip()
    return [*parts, last] if parts or last else []


def _check(text: str) -> None:
    if found := _TILED.fullmatch(text):
        count = math.prod(_numbers(found["tiles"]))
        _check_count(count, min(_numbers(found["tiles"])))
        _order(found, count)
    elif found := _NAMED.fullmatch(text):
        _check_named(found)
    elif found := _MAXIMAL.fullmatch(text):
        _check_count(int(found[1] or found[2]) + 1)
    elif not _WHOLE.fullmatch(text):
        raise InputError(f"cannot be read: {text}" if text else "an element is missing", Annotation.NOT_A_SHARDING)


def _check_named(found: re.Match[str]) -> None:
    axes = tuple((name, int(size)) for name, size in re.findall(r"'([^']*)'=(\d+)", found["axes"]))
    names = [name for name, _ in axes]
    if len(set(names)) < len(names) or "" in names:
        raise InputError("the axes of a mesh have names of their own", Annotation.NOT_A_SHARDING)
    mesh = Mesh(axes)
    _check_count(mesh.size, *(size for _, size in axes))
    _order(found, mesh.size)
    used = re.findall(r"'([^']*)'(?::\((\d+)\)(\d+))?", (found["dimensions"] or "") + found["others"])
    references = [
        AxisReference(names[int(name)] if name not in names and name.isdecimal() and int(name) < len(names) else name)
        if not size
        else AxisReference(name, int(before), int(size))
        for name, before, size in used
    ]
    mesh.check(references)
    for r in references:
        if r.size is not None and not 1 < r.size < dict(axes)[r.name]:
            raise InputError(
                f"{r.name!r}:({r.before}){r.size} is no proper part of the axis", Annotation.NOT_A_SHARDING
            )


def _order(found: re.Match[str], count: int) -> None:
    """The order of devices: each of them once."""
    if found["ids"]:
        if sorted(_numbers(found["ids"])) != list(range(count)):
            raise InputError(f"it must name each of its {count} devices once", Annotation.NOT_A_SHARDING)
    elif found["shape"]:
        shape = _numbers(found["shape"])
        if math.prod(shape) != count:
            raise InputError(f"it is for {count} devices and names {math.prod(shape)}", Annotation.NOT_A_SHARDING)
        if found["transposed"] and sorted(_numbers(found["transposed"])) != list(range(len(shape))):
            raise InputError(
                f"T({found['transposed']}) is no permutation of {len(shape)} dimensions", Annotation.NOT_A_SHARDING
            )


def _check_count(devices: int, *sizes: int) -> None:
    if min((devices, *sizes)) < 1:
        raise InputError("a size of 0", Annotation.NOT_A_SHARDING)
    if devices > LIMIT:
        raise InputError(f"{devices} devices; {LIMIT} at most are understood", Input.TOO_MANY_DEVICES)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]
