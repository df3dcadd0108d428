"""What decides that a module is wrong shares nothing with what proves that it is right."""

from __future__ import annotations

import subprocess
import sys

PROVER = (
    "hlo_verify.index",
    "hlo_verify.terms",
    "hlo_verify.ops",
    "hlo_verify.equality",
    "hlo_verify.passes.prove.prove",
)


def test_searching_and_replaying_import_nothing_of_the_prover() -> None:
    program = (
        "import sys\n"
        "import hlo_verify.passes.refute.xla_replay, hlo_verify.passes.refute.search, hlo_verify.passes.refute.trial\n"
        "print(*(name for name in sys.modules if name.startswith('hlo_verify.')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "hlo_verify.evaluate.interpret" in loaded
    assert not [name for name in loaded if name.startswith(PROVER)]
