"""The command line: `hlo-verify MODULE`, `hlo-verify LOGICAL PARTITIONED ...`, `hlo-verify DUMP_DIR`.

Nothing is imported before it is needed: `--version` answers at once, `--help` once the options are known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hlo_verify.version import told

if TYPE_CHECKING:
    from hlo_verify.report import Report

Verify = Callable[..., "Report"]


def main(argv: Sequence[str] | None = None, *, verify: Verify | None = None) -> int:
    """Run the command line and return the exit status. `verify` stands in for `hlo_verify.verify`."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given == ["--version"]:
        print(told())
        return 0
    from hlo_verify.diagnostics.errors import InputError
    from hlo_verify.options import INPUT_ERROR, INTERNAL_ERROR, INTERRUPTED, complain
    from hlo_verify.own_process import settle
    from hlo_verify.render.output import never_fails

    settle()
    never_fails()
    try:
        return _run(given, verify)
    except InputError as error:
        return complain(error.diagnostic, INPUT_ERROR)
    except KeyboardInterrupt:
        print("hlo-verify: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if "--traceback" in given:
            raise
        from hlo_verify import defects

        return complain(defects.diagnose(error), INTERNAL_ERROR)


def _run(given: Sequence[str], verify: Verify | None) -> int:
    if given[:1] == ["cache"]:
        from hlo_verify.cache import cli as cache

        return cache.main(given[1:])
    if given[:1] == ["lint"]:
        from hlo_verify.linter import cli as linter
        from hlo_verify.sources.project import read_lint

        return linter.main(given[1:], read_lint(Path.cwd()))
    from hlo_verify import comparing

    return comparing.export(given[1:], verify) if given[:1] == ["export"] else comparing.compare(given, verify)


if __name__ == "__main__":
    sys.exit(main())
