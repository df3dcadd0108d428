"""A numerical evaluator of whole modules at full size, that shares no code with the prover.

Inputs are block-constant: along each dimension the indices fall into few classes, and an element depends only on the
classes of its indices. Every operation works on the maps of classes and on the small array of values, exactly but for
rounding, for all devices at once.
"""

from __future__ import annotations

from hlo_verify.evaluate.arguments import Dimension, allows, default_scale, nearest, random_argument
from hlo_verify.evaluate.blocks import Blocks, dense, of_dense
from hlo_verify.evaluate.interpret import Evaluation, evaluate
from hlo_verify.evaluate.placement import Difference, difference, numbers_alone, shards
from hlo_verify.evaluate.state import Limits
from hlo_verify.evaluate.unknown import UnknownError
from hlo_verify.evaluate.uses import index_limits, index_places, ordered_sizes, positive_arguments, reaches
from hlo_verify.evaluate.zeros import Zeros

__all__ = [
    "Blocks",
    "Difference",
    "Dimension",
    "Evaluation",
    "Limits",
    "UnknownError",
    "Zeros",
    "allows",
    "default_scale",
    "dense",
    "difference",
    "evaluate",
    "index_limits",
    "index_places",
    "nearest",
    "numbers_alone",
    "of_dense",
    "ordered_sizes",
    "positive_arguments",
    "random_argument",
    "reaches",
    "shards",
]
