"""The tally of a campaign, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tools.mutate.campaign import Record, identity, surprise
from tools.mutate.operators import OPERATORS

NOT_REFUTED = "not PROVED"
"""Of mutants that were only tried to be proved."""

_COLUMNS = (
    ("differs", "REFUTED"),
    ("differs", "UNKNOWN"),
    ("differs", NOT_REFUTED),
    ("differs", "PROVED"),
    ("equal", "PROVED"),
    ("equal", "UNKNOWN"),
    ("equal", "REFUTED"),
)
_TITLES = {"differs": "differs", "equal": "equal"}


def distinct(records: Iterable[Record]) -> list[Record]:
    """Each mutant once: different numbers may make the same one."""
    found = {identity(record): record for record in records if "digest" in record and "again" not in record}
    return list(found.values())


def render(records: Sequence[Record]) -> str:
    """Tables by operator and by fixture, and what they come to."""
    kept = distinct(records)
    judged = [record for record in kept if record["truth"] in _TITLES]
    operators = [operator.name for operator in OPERATORS]
    fixtures = sorted({record["fixture"] for record in judged})
    parts = [
        _summary(records, kept, judged),
        _table("operator", operators, "operator", judged),
        _table("fixture", fixtures, "fixture", judged),
        _documentation(),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(records: Sequence[Record], kept: Sequence[Record], judged: Sequence[Record]) -> str:
    differing = [record for record in judged if record["truth"] == "differs"]
    tried = [record for record in differing if record.get("refute", True)]
    refuted = [record for record in tried if record["verdict"] == "REFUTED"]
    right = [record for record in refuted if record["named"] in ("own", "near")]
    unclear = sum(record["truth"] == "unclear" for record in kept)
    invalid = sum(record["truth"] == "invalid" for record in kept)
    kinds = Counter(kind for record in judged if (kind := surprise(record)))
    whole = sum(record.get("effort", "normal") == "normal" for record in differing)
    seconds = [sum(record["seconds"].values()) for record in kept]
    lines = [
        f"{len(kept)} different mutants of {len({r['fixture'] for r in kept})} fixtures ({len(records)} made): "
        f"{len(differing)} differ, {len(judged) - len(differing)} are equal, {unclear} are too near the noise to tell, "
        f"{invalid} do not run. {sum(seconds) / max(len(seconds), 1):.2f} s a mutant.",
        "",
        f"- PROVED though it differs: {kinds['false-proved']} ({whole} of those that differ were tried with all that a "
        "verification may take, the others with a twentieth)",
        f"- REFUTED though it is equal: {kinds['false-refuted']}",
        f"- differs, tried to be refuted, and REFUTED: {_share(len(refuted), len(tried))}; "
        f"naming the edited operation's line or one next to it: {_share(len(right), len(tried))}",
        f"- errors {kinds['error']}, crashes {kinds['crash']}, timeouts {kinds['timeout']}",
    ]
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / max(whole, 1):.1f} %)"


def _table(title: str, rows: Sequence[str], key: str, judged: Sequence[Record]) -> str:
    heads = [f"{truth}, {verdict}" for truth, verdict in _COLUMNS]
    lines = [f"| {title} | {' | '.join(heads)} | other | own line | next to it |", f"|---|{'---:|' * (len(heads) + 3)}"]
    for row in rows:
        mine = [record for record in judged if record[key] == row]
        if not mine:
            continue
        counts = Counter(map(_column, mine))
        cells = [counts[column] for column in _COLUMNS]
        refuted = [r for r in mine if r["truth"] == "differs" and r["verdict"] == "REFUTED"]
        named = Counter(record["named"] for record in refuted)
        numbers = [*cells, len(mine) - sum(cells), named["own"], named["near"]]
        lines.append(f"| {row} | {' | '.join(str(number or '') for number in numbers)} |")
    return "\n".join(lines)


def _column(record: Record) -> tuple[str, str]:
    is_tried = record.get("refute", True) or record["verdict"] != "UNKNOWN"
    return record["truth"], record["verdict"] if is_tried else NOT_REFUTED


def _documentation() -> str:
    lines = ["| operator | what it does |", "|---|---|"]
    lines += [f"| {operator.name} | {operator.summary} |" for operator in OPERATORS]
    return "\n".join(lines)
