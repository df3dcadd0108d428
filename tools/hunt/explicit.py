"""Draw programs on a mesh with explicit axes: products that are left in addends (`unreduced`), and where these go."""

from __future__ import annotations

import random

from tools.hunt.case import Argument, Case, Spec, Step
from tools.hunt.maker import NoProgram, is_program
from tools.hunt.placing import draw_spec

MESHES = ((2,), (4,), (2, 2), (2, 4), (4, 2))


def draw_explicit(rng: random.Random) -> Case:
    mesh = rng.choice(MESHES)
    axes = dict(zip("xyz", mesh, strict=False))
    over = rng.choice(list(axes))
    others = [name for name in axes if name != over]
    sizes = {letter: rng.choice((4, 8, 8, 16)) for letter in "ijk"}

    def place(letters: str) -> Spec:
        """The contracted dimension lies over the axis, and others may be split by another one."""
        free = [c for c in letters if c != "j"]
        split = dict.fromkeys(letters, ())
        split["j"] = (over,)
        for name in others:
            if name in used:
                split[used[name]] = (name,) if used[name] in letters else ()
            elif rng.random() < 0.5:
                used[name] = rng.choice(free)
                split[used[name]] = (name,)
        return tuple(split[c] for c in letters)

    used: dict[str, str] = {}
    left, right = place("ij"), place("jk")
    out = tuple(tuple(name for name in others if used.get(name) == c) for c in "ik")
    arguments = [
        Argument("float32", (sizes["i"], sizes["j"]), left),
        Argument("float32", (sizes["j"], sizes["k"]), right),
    ]
    product = {"formula": "ij,jk->ik", "spec": out, "over": over}
    steps = [Step("unreduced", (0, 1), product)]
    shape = (sizes["i"], sizes["k"])
    if rng.random() < 0.3:  # a sum of addends
        arguments += arguments[:2]
        steps = [Step("unreduced", (0, 1), product), Step("unreduced", (2, 3), product)]
        steps.append(Step("binary", (4, 5), {"function": "jnp.add"}))
    last = len(arguments) + len(steps) - 1
    place_at = draw_spec(shape, axes, rng, often=0.7)
    steps.append(Step("unary", (last,), {"function": "jnp.asarray"}, place_at))
    if rng.random() < 0.4:
        steps.append(Step("unary", (last + 1,), {"function": rng.choice(("jnp.square", "jnp.tanh"))}))
    case = Case(mesh, tuple(arguments), tuple(steps), len(arguments) + len(steps) - 1, None, None, explicit=True)
    if not is_program(case):
        raise NoProgram
    return case
