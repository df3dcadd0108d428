"""What a hunt came to, as Markdown."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

Record = dict[str, Any]
COLUMNS = (
    ("equal", "PROVED"), ("equal", "UNKNOWN"), ("equal", "REFUTED"),
    ("differs", "REFUTED"), ("differs", "UNKNOWN"), ("differs", "PROVED"), ("refused", ""), ("abort", ""),
)  # fmt: skip


def table(records: Sequence[Record]) -> str:
    """Programs by family, truth and verdict; then findings by cause; then what is not proved, by code."""
    valid = [each for each in records if each["truth"] not in ("invalid", "none")]
    lines = [f"{len(valid)} programs ({len(records) - len(valid)} more were none)", ""]
    lines.append(
        "| family | programs | " + " | ".join(", ".join(filter(None, each)) for each in COLUMNS) + " | other |"
    )
    lines.append("|---" * (len(COLUMNS) + 3) + "|")
    families = sorted({each["family"] for each in valid})
    for family in [*families, "all"]:
        mine = [each for each in valid if family in (each["family"], "all")]
        counted = collections.Counter((each["truth"], each["verdict"]) for each in mine)
        cells = [counted[each] for each in COLUMNS]
        row = [family, len(mine), *cells, len(mine) - sum(cells)]
        lines.append("| " + " | ".join(str(each or "") for each in row) + " |")
    causes = collections.Counter((each["kind"], each["cause"]) for each in records if "kind" in each)
    lines += ["", "| what | cause | programs |", "|---|---|---|"]
    lines += [f"| {what} | {cause.replace('|', '/')} | {n} |" for (what, cause), n in sorted(causes.items())]
    open_ = [each for each in valid if each["verdict"] == "UNKNOWN" and each["truth"] == "equal"]
    codes = collections.Counter((each["family"], ", ".join(each.get("codes", ()))) for each in open_)
    lines += ["", "| right, and not proved | code | programs |", "|---|---|---|"]
    lines += [f"| {family} | {code} | {n} |" for (family, code), n in sorted(codes.items())]
    return "\n".join(lines) + "\n"
