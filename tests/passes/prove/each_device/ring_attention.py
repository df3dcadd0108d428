"""Attention in rings of devices, written in several ways, and in ways that are nearly right."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.passes.prove.each_device.programs import Function, on, turned

LARGE = -1e30
INFINITE = -np.inf


@jax.custom_jvp
def greater(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.maximum(a, b)


@greater.defjvp
def _of_greater(at: tuple[jax.Array, ...], along: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
    """With as much of each as it is the greater one, and half of both where they are equal, as jaxlib 0.12 has it."""
    a, b = at
    parts = [jnp.where(x > y, 1.0, jnp.where(x == y, 0.5, 0.0)) for x, y in ((a, b), (b, a))]
    return jnp.maximum(a, b), parts[0] * along[0] + parts[1] * along[1]


@dataclass(frozen=True)
class Ring:
    """Keys and values go round a ring; each device has the queries of its block, and keeps a running maximum."""

    devices: int = 3
    block: int = 2
    mask: str = "compared"
    """How queries after a key are found: not at all, by comparing positions, or in a table."""
    masked: float = LARGE
    selects: bool = False
    """Whether the exponentials are masked in the place of the scores."""
    zigzag: bool = False
    """Whether a device has a block of the first half, and its counterpart of the second."""
    start: float = LARGE
    loop: str = "python"
    scale: float = 0.5
    gradient: bool = False
    """Whether it is the gradient of a loss."""
    by: tuple[int, ...] = (0, 1, 2)
    """The arguments that it is the gradient by."""
    sines: bool = False
    """Whether the loss is the sum of sines, in the place of squares."""
    held: bool = True
    """Whether maxima are taken for constants in gradients."""
    told_apart: bool = field(default=False, repr=False)
    """Whether the gradient of a maximum is told by `>` and `==`, as jaxlib 0.12 has it on every version."""
    wrong: str = ""

    @property
    def order(self) -> np.ndarray:
        """The position of each row, as rows are placed."""
        half, last = self.block // 2, 2 * self.devices - 1
        if not self.zigzag:
            return np.arange(self.devices * self.block)
        parts = [[half * i + np.arange(half), half * (last - i) + np.arange(half)] for i in range(self.devices)]
        return np.concatenate([each for pair in parts for each in pair])

    def pair(self) -> tuple[str, str]:
        rows = self.devices * self.block
        placed = on({"i": self.devices}, (P("i"),) * 3, P("i"), *[(rows, 2)] * 3)
        if not self.gradient:
            return placed.pair(self.whole, self.local)
        return placed.lowered(self.slope(self.whole)), placed.lowered(self.slope(placed.mapped(self.local)))

    def slope(self, function: Function) -> Function:
        def loss(*arrays: jax.Array) -> jax.Array:
            out = function(*arrays)
            return jnp.sum(jnp.sin(out) if self.sines else out**2)

        return jax.grad(loss, argnums=self.by)

    def whole(self, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        scores = q @ k.T * self.scale
        if self.mask == "compared" and not self.zigzag:
            rows = jnp.arange(len(self.order))
            seen = rows[:, None] >= rows[None]
        else:
            seen = jnp.asarray(self.order[:, None] >= self.order[None])
        if self.mask and self.selects:
            weights = jnp.where(seen, jnp.exp(scores), 0)
            return (weights / weights.sum(1, keepdims=True)) @ v
        if self.mask:
            scores = jnp.where(seen, scores, self.masked)
        return jax.nn.softmax(scores) @ v

    def local(self, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        me, n = lax.axis_index("i"), self.devices
        carry = jnp.full((self.block,), self.start), jnp.zeros(self.block), jnp.zeros((self.block, 2)), k, v
        turns = n - 1 if self.wrong == "short" else n
        if self.wrong == "late":
            carry = (*carry[:3], *(lax.ppermute(x, "i", turned(n, 1)) for x in (k, v)))

        def turn(t: jax.Array | int, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            most, total, out, k, v = carry
            owner = (me + t if self.wrong == "owner" else me - t - (self.wrong == "late")) % n
            scores = q @ k.T * self.scale
            seen = self.seen(self.rows(me), self.rows(owner))
            if self.mask and not self.selects:
                scores = jnp.where(seen, scores, self.masked)
            greatest = (greater if self.told_apart else jnp.maximum)(most, scores.max(1))
            held = lax.stop_gradient(greatest)
            greatest = held if self.gradient and self.held else greatest
            weights = jnp.exp(scores - (held if self.wrong == "held_once" else greatest)[:, None])
            if self.mask and self.selects:
                weights = jnp.where(seen, weights, 0)
            rescaled = jnp.exp(most - greatest)
            again = jnp.ones_like(rescaled) if self.wrong == "no_rescaling" else rescaled
            total = total * again + weights.sum(1)
            out = out * rescaled[:, None] + weights @ v
            k, v = (lax.ppermute(x, "i", turned(n, 1)) for x in (k, v))
            return greatest, total, out, k, v

        if self.loop == "python":
            for t in range(turns):
                carry = turn(t, carry)
        elif self.loop == "scan":
            carry, _ = lax.scan(lambda carry, t: (turn(t, carry), None), carry, jnp.arange(turns))
        else:
            carry = lax.fori_loop(0, turns, turn, carry)
        return carry[2] / carry[1][:, None]

    def rows(self, device: jax.Array) -> jax.Array:
        half, last = self.block // 2, 2 * self.devices - 1
        if not self.zigzag:
            return self.block * device + jnp.arange(self.block)
        return jnp.concatenate([half * device + jnp.arange(half), half * (last - device) + jnp.arange(half)])

    def seen(self, queries: jax.Array, keys: jax.Array) -> jax.Array:
        if self.wrong == "strict":
            return queries[:, None] > keys[None]
        return queries[:, None] >= keys[None]


PYTHON = Ring()
RINGS = {
    "python": PYTHON,
    "scan": replace(PYTHON, loop="scan"),
    "fori": replace(PYTHON, loop="fori", start=INFINITE),
    "two_devices": replace(PYTHON, devices=2, block=4),
    "eight_devices": replace(PYTHON, devices=8, loop="scan"),
    "table": replace(PYTHON, mask="table"),
    "zigzag": replace(PYTHON, zigzag=True),
    "zigzag_fori": replace(PYTHON, zigzag=True, loop="fori", start=INFINITE),
    "selected": replace(PYTHON, selects=True),
    "selected_scan": replace(PYTHON, selects=True, loop="scan"),
    "all_seen": replace(PYTHON, mask=""),
    "infinite": replace(PYTHON, devices=4, masked=INFINITE),
    "infinite_table": replace(PYTHON, mask="table", masked=INFINITE, start=INFINITE),
    "infinite_zigzag": replace(PYTHON, devices=4, block=4, zigzag=True, masked=INFINITE),
    "infinite_zigzag_fori": replace(PYTHON, block=4, zigzag=True, masked=INFINITE, loop="fori", start=INFINITE),
    "gradient": replace(PYTHON, devices=2, mask="", gradient=True, loop="fori", start=INFINITE),
    "gradient_masked": replace(PYTHON, devices=2, gradient=True),
    "gradient_by_values": replace(PYTHON, devices=2, mask="", gradient=True, by=(2,), sines=True),
    "gradient_on_four": replace(PYTHON, devices=4, masked=INFINITE, gradient=True, by=(0,)),
    "gradient_by_values_on_four": replace(PYTHON, devices=4, masked=INFINITE, gradient=True, by=(2,)),
    "gradient_through_maxima_on_four": replace(PYTHON, devices=4, mask="", gradient=True, by=(0,), held=False),
    "gradient_by_keys_through_maxima": replace(PYTHON, devices=4, mask="", gradient=True, by=(1,), held=False),
    "gradient_through_maxima": replace(PYTHON, devices=2, mask="", gradient=True, by=(0,), held=False),
}

WRONG = [
    *(replace(PYTHON, wrong=wrong) for wrong in ("owner", "strict", "no_rescaling", "short")),
    replace(RINGS["fori"], wrong="short"),
    replace(RINGS["zigzag"], wrong="owner"),
    replace(RINGS["zigzag"], wrong="strict"),
    replace(RINGS["selected"], wrong="no_rescaling"),
    *(replace(RINGS["infinite_zigzag"], wrong=wrong) for wrong in ("owner", "strict", "no_rescaling", "short")),
    replace(RINGS["infinite_table"], wrong="strict"),
    replace(RINGS["infinite_zigzag_fori"], wrong="owner"),
    replace(RINGS["selected_scan"], wrong="strict"),
    replace(RINGS["gradient"], wrong="short"),
    replace(RINGS["gradient_through_maxima"], wrong="held_once"),
    replace(RINGS["gradient_by_values"], wrong="no_rescaling"),
    replace(RINGS["gradient_on_four"], wrong="strict"),
    replace(RINGS["gradient_by_values_on_four"], wrong="owner"),
    replace(RINGS["gradient_through_maxima_on_four"], wrong="held_once"),
    replace(RINGS["gradient_by_keys_through_maxima"], wrong="short"),
]
