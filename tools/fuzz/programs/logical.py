"""Random programs for one device: what the verifier gets as the logical module, before it is partitioned."""

from __future__ import annotations

import random

from tools.fuzz.programs import further, regions, steps
from tools.fuzz.programs.maker import Family, Maker
from tools.fuzz.programs.program import Builder, Function, Kind, prune
from tools.fuzz.programs.steps import Step

STEPS: dict[str, Step] = {
    **{
        step.__name__: step
        for step in (
            *(steps.unary, steps.binary, steps.divide, steps.compare, steps.select, steps.clamp, steps.convert),
            *(steps.move, steps.reduce, steps.dot, steps.argmax, steps.sort),
            *(steps.gather, steps.scatter, steps.dynamic, steps.effect),
            *(regions.branch, regions.layers),
        )
    },
    "special": steps.pole,
    "gaps": further.gaps,
    "window": further.window,
    "shift": further.shift,
    "batch_dot": further.batch_dot,
    "complex": further.complex_numbers,
    "bits": further.random_bits,
    "real": further.real,
    "mask": further.mask,
    "while": regions.loop,
}


def make(family: Family, rng: random.Random) -> Function:
    """A program of one to three arguments, whose results are its last values."""
    function = Function()
    builder = Builder(function, function.body)
    base = tuple(rng.choice(family.sizes) for _ in range(rng.choice([1, 1, 2, 2])))
    base = (0, *base) if rng.random() < 0.01 else base
    maker = Maker(builder, rng, family, base, STEPS)
    for _ in range(rng.randrange(1, 4)):
        shape = base if rng.random() < 0.8 else base[::-1]
        maker.values.append(builder.argument(Kind(shape, rng.choice(family.dtypes))))
    for _ in range(rng.randrange(family.length[0], family.length[1] + 1)):
        maker.step()
    inner = [v for v in maker.values if v not in builder.block.arguments] or maker.values
    builder.block.results = tuple(dict.fromkeys([inner[-1], rng.choice(inner[-3:])]))
    prune(function)
    return function
