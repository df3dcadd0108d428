"""What hlo-verify does with a damaged file."""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from hlo_verify import cli, defects, options
from hlo_verify.diagnostics.errors import InputError
from hlo_verify.passes.load.conversion import until
from hlo_verify.passes.load.load import load
from tools.fuzz.files.corruption import corrupted
from tools.fuzz.files.originals import FORMATS, contents, originals

STATUSES = {
    options.PROVED: "proved",
    options.REFUTED: "refuted",
    options.UNKNOWN: "unknown",
    options.INPUT_ERROR: "input error",
}
"""How the command line may end."""

SMALL = 12_000
"""Bytes of a compressed file; nineteen of twenty originals have at most so many."""
ANY = 1 << 30

READING = 60.0
"""Seconds that reading may take, as with `--time-limit 60`: jaxlib's parser goes on for ever with some damaged
bytecode, which is an input error where the time is up. What does not end even then is a hang."""

VERIFIED = 0.25
"""The part of what can be read though it is damaged that is verified too, with a low effort: it takes fifty times as
long."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A damaged file, by what it is made of."""

    seed: int
    number: int

    def make(self) -> tuple[str, bytes, Path, bool]:
        """Its format, its contents, the intact half that goes with it, and whether it is the logical one."""
        draw = random.Random(f"{self.seed} {self.number}")
        original = draw.choice(originals(SMALL if draw.random() < 0.95 else ANY))
        form = draw.choice(FORMATS)
        damaged = corrupted(form, contents(original.path, form), draw)
        if draw.random() < 0.05:
            damaged = gzip.compress(damaged)
        return form, damaged, original.other, original.is_logical


def attempt(trial: Trial) -> str:
    """How it ended: `input error`, `read`, `proved`, …; or what went wrong, which begins with `FAILED`."""
    _, damaged, other, is_logical = trial.make()
    try:
        with until(time.monotonic() + READING):
            load(damaged)
    except InputError:
        return "input error"
    except Exception as error:
        return f"FAILED to read: {defects.diagnose(error).message}"
    if random.Random(f"{trial.number} {trial.seed}").random() > VERIFIED:
        return "read"
    with tempfile.TemporaryDirectory(prefix="hlo-verify-fuzz-") as folder:
        path = Path(folder) / "damaged"
        path.write_bytes(damaged)
        pair = (path, other) if is_logical else (other, path)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main(
                [*map(str, pair), "--no-refute", "--effort", "low", "--output", str(Path(folder) / "report")]
            )
    return STATUSES.get(status) or f"FAILED with status {status}: {err.getvalue()[:600]}"
