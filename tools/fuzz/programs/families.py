"""What the programs of each family are made of."""

from __future__ import annotations

from tools.fuzz.programs.maker import Family

_PLAIN = {"unary": 1, "binary": 4, "convert": 1, "move": 3, "reduce": 3}

FAMILIES = {
    "integers": Family(
        ("i32", "i8", "ui8", "i64", "ui32"),
        {**_PLAIN, "divide": 3, "compare": 1, "select": 1, "dot": 1, "clamp": 1},
    ),
    "scalars": Family(
        ("i8", "ui8", "i16", "i32", "ui32", "i1"),
        {"unary": 3, "binary": 5, "divide": 4, "compare": 2, "select": 2, "clamp": 1, "convert": 3},
        (2, 5),
    ),
    "floats": Family(("f32",), {**_PLAIN, "dot": 3, "compare": 1, "select": 1, "argmax": 1}),
    "truth": Family(
        ("i1", "i8", "i32"), {"binary": 3, "compare": 3, "select": 3, "convert": 1, "move": 2, "reduce": 3}
    ),
    "index": Family(
        ("i32", "f32", "i8", "ui8"),
        {"binary": 2, "convert": 1, "move": 1, "gather": 3, "scatter": 3, "dynamic": 4, "reduce": 1},
    ),
    "order": Family(
        ("i32", "f32", "i8"), {"binary": 2, "compare": 1, "clamp": 2, "argmax": 3, "sort": 3, "reduce": 2, "move": 1}
    ),
    "loops": Family(
        ("i32", "f32", "i8"), {"while": 4, "binary": 2, "move": 1, "reduce": 2, "dynamic": 1, "unary": 1}, (1, 3)
    ),
    "branches": Family(("i32", "f32", "i1"), {"branch": 4, "binary": 2, "compare": 1, "reduce": 2, "while": 1}, (1, 3)),
    "effects": Family(
        ("i32", "f32"), {"effect": 3, "binary": 4, "while": 2, "branch": 1, "reduce": 1, "select": 1}, (2, 4)
    ),
    "layers": Family(
        ("f32", "i32"), {"layers": 4, "binary": 4, "unary": 2, "move": 1, "reduce": 2, "dot": 1, "select": 1}, (1, 2)
    ),
    "special": Family(("f32",), {"special": 2, "binary": 4, "select": 2, "compare": 2, "reduce": 2, "move": 1}),
    "poles": Family(
        ("f32",),
        {"unary": 4, "binary": 3, "mask": 3, "select": 1, "reduce": 1, "move": 1},
        beside_poles=True,
    ),
    "windows": Family(
        ("i32", "f32", "i8"),
        {"gaps": 3, "window": 4, "shift": 4, "batch_dot": 2, "binary": 2, "reduce": 1, "move": 1},
        (1, 4),
    ),
    "devices": Family(
        ("i32", "f32", "i1"),
        {"binary": 3, "reduce": 3, "move": 1, "shift": 3, "dot": 1, "compare": 1, "select": 1, "while": 1},
        (2, 4),
        by_device=1.0,
    ),
    "narrow": Family(
        ("bf16", "f16", "f32", "f64"),
        {**_PLAIN, "convert": 3, "dot": 2, "compare": 1, "select": 1, "window": 1, "real": 2},
    ),
    "complex": Family(("f32",), {"complex": 4, "binary": 2, "reduce": 1, "move": 1, "unary": 1, "real": 1}, (1, 3)),
    "small": Family(
        ("i32", "f32", "i1"),
        {**_PLAIN, "window": 1, "gaps": 1, "sort": 1, "dot": 1, "scatter": 1, "dynamic": 1, "while": 1, "shift": 1},
        sizes=(0, 1, 1, 2, 3),
    ),
    "state": Family(("i32", "ui32"), {"bits": 3, "binary": 3, "while": 2, "branch": 1, "reduce": 1}, (2, 4)),
    "calls": Family(
        ("i32", "f32"), {**_PLAIN, "while": 2, "branch": 1, "effect": 1, "layers": 1, "bits": 1}, (2, 4), called=1.0
    ),
}
