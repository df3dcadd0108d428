"""Signs of eigenvectors, and of pairs of singular vectors, which are anybody's choice.

Choice 0 is that of the evaluator. What is the same for some others as well hangs on none of these signs: any two
vectors have opposite signs in one of them, as a bit of their numbers differs, and of a product of more vectors that
its own signs do not cancel in, every choice that is drawn shows that with a probability of one half.
"""

from __future__ import annotations

from random import Random

DRAWN = range(2, 6)


def other_choices(vectors: int) -> range:
    """The choices that are tried for so many vectors: all opposites, four that are drawn, those with a bit in their
    number."""
    return range(1, DRAWN.stop + max(0, vectors - 1).bit_length())


def is_opposite(number: int, choice: int) -> bool:
    """Whether the vector of that number has the opposite sign, by a choice."""
    if choice < DRAWN.start:
        return choice == 1
    bits = Random(number).getrandbits(len(DRAWN)) << DRAWN.start | number << DRAWN.stop
    return bool(bits >> choice & 1)
