"""Z3's optimizer as a judge of small instances."""

from __future__ import annotations

from itertools import pairwise

import z3

from hlo_verify.passes.recheck.shape_reduction import LEAST, Requirements, smallest


def assert_smallest(required: Requirements) -> None:
    """Given the requirements as they stand, Z3's optimizer finds the sizes that `smallest` does."""
    optimizer = z3.Optimize()
    before = {(ruler, low): high // low for ruler, marks in required.marks.items() for low, high in pairwise(marks)}
    radix = {stretch: z3.Int(f"r{n}") for n, stretch in enumerate(before)}
    for stretch, most in before.items():
        wanted = LEAST + 2 * required.room.get(stretch, 0)
        optimizer.add(radix[stretch] <= most, radix[stretch] >= min(most, wanted))
    optimizer.add(*(radix[a] == radix[b] for a, b in required.same))
    optimizer.add(*(radix[stretch] == before[stretch] for stretch in required.fixed if stretch in before))
    optimizer.minimize(z3.Sum([z3.IntVal(0), *radix.values()]))
    assert optimizer.check() == z3.sat
    model, instance = optimizer.model(), smallest(required)
    for ruler, marks in required.marks.items():
        for low, (a, b) in zip(marks, pairwise(instance.small[ruler]), strict=False):
            assert model[radix[ruler, low]].as_long() == b // a
