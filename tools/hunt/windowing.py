"""Draw operations with windows: convolutions, and reductions of windows."""

from __future__ import annotations

from tools.hunt.maker import Maker, NoProgram


def convolution(m: Maker) -> int:
    rng = m.rng
    spatial = rng.choice((1, 1, 2))
    x = m.value((spatial + 2,))
    shape = m.shape(x)
    first = rng.random() < 0.25
    batch, features = shape[0], shape[1] if first else shape[-1]
    window = [rng.choice((1, 2, 3, 3, 4)) for _ in range(spatial)]
    groups, batch_groups = 1, 1
    way = rng.random()
    if way < 0.35:
        groups = rng.choice([k for k in range(1, features + 1) if features % k == 0])
        if features % 2 == 0 and rng.random() < 0.4:
            groups = 2  # fewer than devices, more often than not
    elif way < 0.5:
        batch_groups = rng.choice([k for k in range(1, batch + 1) if batch % k == 0])
    out = max(1, m.size() // (groups * batch_groups)) * groups * batch_groups
    if rng.random() < (0.3 if groups == 1 else 0.5):
        out = groups * batch_groups
    kernel = [out, features // groups, *window] if first else [*window, features // groups, out]
    w = m.argument(kernel)
    plain = rng.random() < 0.5
    strides = [1 if plain else rng.choice((1, 1, 2, 3)) for _ in window]
    dilation = [1 if plain else rng.choice((1, 1, 2)) for _ in window]
    inner = [1 if plain else rng.choice((1, 1, 1, 2)) for _ in window]
    edges = []
    for size, by in zip(window, dilation, strict=True):
        whole = (size - 1) * by
        same = (whole // 2, whole - whole // 2)
        any_ = (rng.randint(-1, 3), rng.randint(-1, 3))
        edges.append(rng.choice((same, same, (0, 0), any_)))
    return m.step(
        "convolution", [x, w],
        {
            "strides": strides, "edges": edges, "lhs_dilation": inner, "rhs_dilation": dilation,
            "feature_group_count": groups, "batch_group_count": batch_groups, "channels_first": int(first),
        },
    )  # fmt: skip


def windows(m: Maker) -> int:
    """Pooling, whose gradients are `select_and_scatter`s."""
    rng = m.rng
    x = m.value((1, 1, 2))
    shape = m.shape(x)
    rank = len(shape)
    chosen = set(rng.sample(range(rank), rng.randint(1, rank)))
    sizes = [rng.choice((1, 2, 2, 3, 3, 4)) if d in chosen else 1 for d in range(rank)]
    if all(size == 1 for size in sizes) and rng.random() < 0.8:
        raise NoProgram
    strides = [rng.choice((1, 1, 2, 3)) if d in chosen else 1 for d in range(rank)]
    plain = rng.random() < 0.6
    edges, base, dilation = [], [], []
    for d, size in enumerate(sizes):
        padded = d in chosen and rng.random() < 0.5
        edges.append((rng.randint(0, size), rng.randint(0, size)) if padded else (0, 0))
        base.append(rng.choice((1, 1, 2)) if d in chosen and not plain else 1)
        dilation.append(rng.choice((1, 1, 2)) if d in chosen and not plain else 1)
    function = rng.choice(("max", "max", "add", "min"))
    attributes = {
        "function": function,
        "sizes": sizes,
        "strides": strides,
        "edges": edges,
        "base": base,
        "dilation": dilation,
    }
    return m.step("windows", [x], attributes)
