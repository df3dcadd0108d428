"""The cases, in the order in which they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "docs" / "gallery"


@dataclass(frozen=True, slots=True)
class Case:
    """What is verified or linted, and what is told of it. `command` are the arguments of hlo-verify, from the root of
    the repository; `inputs` says what `program.py` is compiled to, if there is one. An `issue` is for that project;
    only pairs can be `exported`, and those that are small."""

    name: str
    title: str
    verdict: str
    about: str
    command: tuple[str, ...]
    inputs: str = ""
    issue: str = ""
    exported: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return GALLERY / self.name

    @property
    def is_lint(self) -> bool:
        return self.command[0] == "lint"


def _of(case: str, *files: str) -> tuple[str, ...]:
    return tuple(f"docs/gallery/{case}/{file}" for file in files)


_STEP = tuple(f"testdata/transformer_train_8/{side}.hlo.gz" for side in ("logical", "partitioned"))
_PAD = _of("dropped-pad", "logical.mlir", "partitioned.hlo")
_AXIS = _of("wrong-axis", "logical.mlir", "partitioned.mlir")
_LOOP = _of("uneven-loop", "module.txt", "module-buffer-assignment.txt", "module-buffer-assignment-values.txt")

CASES = (
    Case(
        "train-step",
        "A train step, proved",
        "PROVED",
        "Loss, gradients and Adam of a decoder-only transformer on eight devices (FSDP and tensor parallel, "
        "hidden size 4096), as XLA partitioned it: the new parameters, moments and metrics are those of the step "
        "on one device. Both modules are XLA's dumps, in `testdata/transformer_train_8`.",
        _STEP,
    ),
    Case(
        "dropped-pad",
        "A miscompile of XLA",
        "REFUTED",
        "Weights of tokens are moved by one place. What comes in is whole on each device and the result is split, "
        "and XLA's partitioner leaves the move out. It is [one of the "
        "families](../../findings/pad-of-whole-operand.md) that hunting found; the partitioned module is what "
        "jaxlib 0.10.2 made of the program.",
        _PAD,
        inputs="partitioned",
        issue="xla",
        exported=_PAD,
    ),
    Case(
        "wrong-axis",
        "A wrong shard_map",
        "REFUTED",
        "Megatron's MLP on 2 by 4 devices, whose last sum is over the axis of the batch. JAX's own check "
        "(`check_vma`) would see that; it is off, as it often is around kernels.",
        _AXIS,
        inputs="pair",
        exported=_AXIS,
    ),
    Case(
        "each-pass",
        "A chain: which pass is it?",
        "REFUTED",
        "A step of gradient descent on a depthwise convolution, data parallel on a mesh with a second axis, "
        "dumped after every pass of XLA's CPU compiler (jaxlib 0.10.2). The partitioner sums the gradient over "
        "all four devices ([the family](../../findings/convolution-several-axes.md)); all later passes keep what "
        "they were given.",
        ("--each-pass", "docs/gallery/each-pass/dump"),
        inputs="dump",
        issue="xla",
    ),
    Case(
        "uneven-loop",
        "A finding of lint",
        "1 error",
        "Steepest descent, where each device stops by its own residual while all of them gather in each turn: the "
        "first that is done leaves the others waiting. One final module of XLA is enough to see it, with no "
        "reference and nothing that runs.",
        ("lint", _LOOP[0], "--buffers", _LOOP[1], "--values", _LOOP[2]),
        inputs="final",
    ),
)
