"""What is drawn, and how often; and a case by its number."""

from __future__ import annotations

import random
from collections.abc import Callable

from tools.hunt import drawing, indexing, windowing
from tools.hunt.case import Case, live, pruned
from tools.hunt.explicit import draw_explicit
from tools.hunt.maker import Maker, NoProgram, is_program
from tools.hunt.placing import draw_mesh, draw_spec

FAMILIES: dict[str, tuple[Callable[[Maker], int], float]] = {
    "elementwise": (drawing.elementwise, 2),
    "reshape": (drawing.reshape, 3),
    "movement": (drawing.movement, 3),
    "pad": (drawing.pad, 4),
    "concatenate": (drawing.concatenate, 2),
    "reduction": (drawing.reduction, 2),
    "cumulative": (drawing.cumulative, 1.5),
    "order": (drawing.order, 1.5),
    "product": (drawing.product, 2.5),
    "fourier": (drawing.fourier, 0.4),
    "convolution": (windowing.convolution, 6),
    "windows": (windowing.windows, 4),
    "dynamic": (indexing.dynamic, 2.5),
    "gather": (indexing.gather, 3),
    "scatter": (indexing.scatter, 3),
}
"""How a family's last operation is drawn, and how often."""

EXPLICIT = "explicit"
EXPLICIT_OFTEN = 0.03
"""The share of programs on meshes with explicit axes."""

GRADIENTS, GRADIENTS_OF_WINDOWS = 0.3, 0.6
"""The share of programs that are a gradient: of all, and of those that end with a convolution or a window."""

ATTEMPTS = 200


def make(seed: int, number: int, only: str = "") -> tuple[str, Case]:
    """The case of that number, and its family. All that is drawn depends on these alone."""
    for attempt in range(ATTEMPTS):
        rng = random.Random(f"{seed} {number} {attempt}")
        try:
            if only == EXPLICIT or (not only and rng.random() < EXPLICIT_OFTEN):
                return EXPLICIT, draw_explicit(rng)
            return _make(rng, only)
        except NoProgram:
            continue
    raise RuntimeError(f"no program in {ATTEMPTS} attempts at number {number}")


def _choose(rng: random.Random) -> str:
    return rng.choices(list(FAMILIES), [weight for _, weight in FAMILIES.values()])[0]


def _make(rng: random.Random, only: str) -> tuple[str, Case]:
    family = only or _choose(rng)
    maker = Maker(rng, draw_mesh(rng))
    others = rng.choices((0, 1, 2, 3), (5, 4, 2, 1))[0]
    names = [_choose(rng) for _ in range(others)]
    names.insert(rng.randint(0, others), family)
    for name in names:
        FAMILIES[name][0](maker)
    value = len(maker.steps) - 1
    used = live(maker.case(value, None, None))
    floats = [v for v in maker.types if v < 0 and maker.types[v][0] == "float32" and -v - 1 in used]
    pulled = None
    often = GRADIENTS_OF_WINDOWS if maker.steps[-1].op in ("convolution", "windows") else GRADIENTS
    if maker.types[value][0] == "float32" and floats and rng.random() < often:
        pulled = rng.choice(floats), rng.choice(("ones", "value"))
    shape = maker.shape(value if pulled is None else pulled[0])
    result = None if rng.random() < 0.15 else draw_spec(shape, maker.axes, rng, often=0.7)
    case = pruned(maker.case(value, result, pulled))
    if not is_program(case):
        raise NoProgram
    return family, case
