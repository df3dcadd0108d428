"""convolution: the image in windows, contracted with the kernel."""

from __future__ import annotations

import numpy as np

from hlo_verify.evaluate.balls import zeros
from hlo_verify.evaluate.blocks import Blocks, with_map
from hlo_verify.evaluate.contraction import Pairing, contracted
from hlo_verify.evaluate.maps import rectangle
from hlo_verify.evaluate.movement import reshaped, transposed
from hlo_verify.evaluate.state import Place, Rule, Run
from hlo_verify.evaluate.windows import padded_by_one, read, slide
from hlo_verify.program.ir import Op


def _convolution(op: Op, args: list[Blocks], run: Run, place: Place) -> list[Blocks]:
    """The image in windows, contracted with the kernel; groups of features and of the batch are batch dimensions."""
    lhs, rhs = args
    numbers, attributes = op.attributes["dimension_numbers"], op.attributes
    groups, batches = attributes.get("feature_group_count", 1), attributes.get("batch_group_count", 1)
    spatial = len(numbers["input_spatial_dimensions"])
    image = transposed(
        lhs,
        [numbers["input_batch_dimension"], numbers["input_feature_dimension"], *numbers["input_spatial_dimensions"]],
    )
    kernel = transposed(
        rhs,
        [
            numbers["kernel_output_feature_dimension"],
            numbers["kernel_input_feature_dimension"],
            *numbers["kernel_spatial_dimensions"],
        ],
    )
    shape = op.types[0].shape
    split = max(groups, batches)
    n, c = image.shape[:2]
    parts = (batches, n // batches, groups, c // groups, *image.shape[2:])
    image = reshaped(image, parts, run)
    image = transposed(image, [0, 2, 1, 3, *range(4, 4 + spatial)])
    image = reshaped(image, (split, n // batches, c // groups, *image.shape[4:]), run)
    kernel = reshaped(kernel, (split, kernel.shape[0] // split, *kernel.shape[1:]), run)
    for k in range(spatial):
        image, kernel = _tapped(op, k, image, kernel, shape[numbers["output_spatial_dimensions"][k]], run)
    # image: groups, batch, features, then (outputs, taps) for each; kernel: groups, out features, features, taps.
    outs = [4 + 2 * k for k in range(spatial)]
    pairing = Pairing([(0, 0), (1, 1)], [(3, 3), *((out + 1, 4 + k) for k, out in enumerate(outs))])
    found = contracted(image, kernel, pairing, op.types[0].dtype, run)
    # devices, groups, batch, outputs, out features
    order = [0, 2 + spatial, 1, *range(2, 2 + spatial)]  # groups, features, batch, outputs
    found = transposed(found, order)
    found = reshaped(found, (split * found.shape[1], *found.shape[2:]), run)
    target = [0] * len(shape)
    target[numbers["output_feature_dimension"]] = 0
    target[numbers["output_batch_dimension"]] = 1
    for k, dim in enumerate(numbers["output_spatial_dimensions"]):
        target[dim] = 2 + k
    return [transposed(found, target)]


def _tapped(op: Op, k: int, image: Blocks, kernel: Blocks, out: int, run: Run) -> tuple[Blocks, Blocks]:
    """The image's spatial dimension k as outputs and taps, and the kernel's in the order of the taps.

    Outputs that read the same classes at every tap are one class, and so are taps that are read alike by all outputs.
    """
    attributes = op.attributes
    axis, tap = 4 + 2 * k, 4 + k
    size, width = image.shape[axis - 1], kernel.shape[tap - 1]
    low = int(attributes["padding"][k][0])
    source = slide(
        size,
        out,
        width,
        attributes["window_strides"][k],
        low,
        attributes["lhs_dilation"][k],
        attributes["rhs_dilation"][k],
    )
    if attributes["window_reversal"][k]:
        kernel = with_map(kernel, tap, kernel.classes[tap][::-1], run.maps)
    outputs, taps, table = rectangle(read(image.classes[axis], source))
    run.spend(image.values.size // image.values.shape[axis] * table.size)
    values = np.take(padded_by_one(image.values, axis, zeros((), image.values.dtype)), table, axis=axis)
    maps = run.maps.intern(outputs), run.maps.intern(taps)
    return Blocks((*image.classes[:axis], *maps, *image.classes[axis + 1 :]), values), kernel


RULES: dict[str, Rule] = {"convolution": _convolution}
