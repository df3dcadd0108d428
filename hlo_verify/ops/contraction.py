"""Contractions: dot_general and convolution, as sums of products."""

from __future__ import annotations

from hlo_verify.index import expr
from hlo_verify.index.expr import Index
from hlo_verify.ir import Op
from hlo_verify.ops.values import Context, Rule, Value, factor, lighten, position, positions
from hlo_verify.terms import algebra, guards
from hlo_verify.terms.sums import reduce_sum
from hlo_verify.terms.term import ONE


def _dot_general(op: Op, args: list[Value], context: Context) -> list[Value]:
    """StableHLO dot_general: result dimensions are batch, lhs free, rhs free."""
    (result,) = op.types
    numbers = op.attributes["dot_dimension_numbers"]
    lhs, rhs = args
    left: dict[int, Index] = {}
    right: dict[int, Index] = {}
    bound = []
    for i, j in zip(numbers["lhs_contracting_dimensions"], numbers["rhs_contracting_dimensions"], strict=True):
        v = expr.fresh("f", lhs.shape[i])
        bound.append(v)
        left[i] = right[j] = expr.of_var(v)
    where = list(positions(result.shape))
    n = 0
    for i, j in zip(numbers["lhs_batching_dimensions"], numbers["rhs_batching_dimensions"], strict=True):
        left[i] = right[j] = where[n]
        n += 1
    for side, value in ((left, lhs), (right, rhs)):
        for i in range(len(value.shape)):
            if i not in side:
                side[i] = where[n]
                n += 1
    dtype = result.dtype
    a = Value(lhs.type, factor(lhs.term, dtype)).at([left[i] for i in range(len(lhs.shape))])
    b = Value(rhs.type, factor(rhs.term, dtype)).at([right[j] for j in range(len(rhs.shape))])
    return [Value(result, lighten(reduce_sum(bound, algebra.multiply(a, b)), dtype))]


def _convolution(op: Op, args: list[Value], context: Context) -> list[Value]:
    """StableHLO convolution, with padding, dilations, reversal and groups."""
    (result,) = op.types
    lhs, rhs = args
    numbers = op.attributes["dimension_numbers"]
    spatial = len(numbers["input_spatial_dimensions"])
    groups, batch_groups = op.attributes.get("feature_group_count", 1), op.attributes.get("batch_group_count", 1)
    strides = op.attributes.get("window_strides") or (1,) * spatial
    padding = op.attributes.get("padding")
    input_dilation = op.attributes.get("lhs_dilation") or (1,) * spatial
    kernel_dilation = op.attributes.get("rhs_dilation") or (1,) * spatial
    reversal = op.attributes.get("window_reversal") or (False,) * spatial
    left: list[Index] = [expr.constant(0)] * len(lhs.shape)
    right: list[Index] = [expr.constant(0)] * len(rhs.shape)
    out_batch, out_feature = numbers["output_batch_dimension"], numbers["output_feature_dimension"]
    batch, feature = position(out_batch, result.shape[out_batch]), position(out_feature, result.shape[out_feature])
    in_feature = rhs.shape[numbers["kernel_input_feature_dimension"]]
    channel = expr.fresh("f", in_feature)
    bound = [channel]
    inside = ONE
    for k in range(spatial):
        size = rhs.shape[numbers["kernel_spatial_dimensions"][k]]
        window = expr.fresh("f", size)
        bound.append(window)
        w = expr.of_var(window)
        dim = numbers["output_spatial_dimensions"][k]
        low = int(padding[k][0]) if padding is not None else 0
        e = expr.shift(
            expr.add(expr.scale(position(dim, result.shape[dim]), strides[k]), expr.scale(w, kernel_dilation[k])), -low
        )
        q, r = expr.floor_divmod(e, input_dilation[k])
        in_dim = numbers["input_spatial_dimensions"][k]
        inside = algebra.multiply(inside, guards.interval(q, 0, lhs.shape[in_dim] - 1))
        inside = algebra.multiply(inside, guards.interval(r, 0, 0))
        left[in_dim] = q
        tap = expr.shift(expr.scale(w, -1), size - 1) if reversal[k] else w
        right[numbers["kernel_spatial_dimensions"][k]] = tap
    out_features = result.shape[out_feature]
    group = expr.floor_div(feature, out_features // groups)
    left[numbers["input_feature_dimension"]] = expr.add(expr.of_var(channel), expr.scale(group, in_feature))
    batch_group = expr.floor_div(feature, out_features // batch_groups)
    per_group = lhs.shape[numbers["input_batch_dimension"]] // batch_groups
    left[numbers["input_batch_dimension"]] = expr.add(batch, expr.scale(batch_group, per_group))
    right[numbers["kernel_input_feature_dimension"]] = expr.of_var(channel)
    right[numbers["kernel_output_feature_dimension"]] = feature
    dtype = result.dtype
    a = Value(lhs.type, factor(lhs.term, dtype)).at(left)
    b = Value(rhs.type, factor(rhs.term, dtype)).at(right)
    body = algebra.multiply(inside, algebra.multiply(a, b))
    return [Value(result, lighten(reduce_sum(bound, body), dtype))]


RULES: dict[str, Rule] = {"dot_general": _dot_general, "convolution": _convolution}
