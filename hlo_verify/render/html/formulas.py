"""Terms as marked text: names, numbers and signs told apart, and where two terms differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from markupsafe import Markup, escape

LONGEST = 3_000
"""Characters of a term; a longer one is shortened in its middle. Nobody reads more, and a page stays small."""

COMPARED = 10_000
"""Pairs of equal words in two terms, between what both begin and end with. With more of them the terms are marked as a
whole: a comparison takes so many steps for each place where they differ."""

WIDE = 88
"""Characters of a term that stands in one line. A longer one has a line for each of its summands."""

_WORD = re.compile(r"\s+|'[^']*'|[^\W\d][\w.@:/-]*(?<![.:/-])|\d+(?:\.\d+)?(?:e[+-]?\d+)?|<=|>=|\(…\)|.", re.DOTALL)
_FUNCTIONS = {"sum", "max", "min", "product", "and", "or", "any", "all"}


def formula(text: str) -> Markup:
    """A term by itself."""
    return _marked(list(_words(text)), (), "")


def difference(found: str, expected: str) -> tuple[Markup, Markup]:
    """Two terms, each with what it has and the other has not: of the one that was found as deleted, of the one that was
    expected as inserted."""
    one, other = list(_words(found)), list(_words(expected))
    only_one, only_other = _apart(one, other)
    return _marked(one, only_one, "del"), _marked(other, only_other, "ins")


def shortened(text: str, most: int = LONGEST) -> str:
    """A text without its middle where it is too long."""
    half = (most - 5) // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


def _words(text: str) -> Iterator[str]:
    """The words of a term, with a line's end before each summand of a long one."""
    text = shortened(text.strip())
    is_wide, depth, before = len(text) > WIDE and "\n" not in text, 0, ""
    for word in _WORD.findall(text):
        depth += (word in "([{") - (word in ")]}") if len(word) == 1 else 0
        starts = word in ("+", "-") and before.isspace() and not depth
        if is_wide and starts:
            yield "\n"
        yield word
        before = word


def _apart(one: Sequence[str], other: Sequence[str]) -> tuple[set[int], set[int]]:
    """The numbers of words that only the one sequence has, and of those that only the other has."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    middles = one[start : len(one) - end], other[start : len(other) - end]
    counts = tuple(map(Counter, middles))
    if sum(times * counts[1][word] for word, times in counts[0].items()) > COMPARED:
        return set(range(start, len(one) - end)), set(range(start, len(other) - end))
    only: tuple[set[int], set[int]] = (set(), set())
    for kind, a, b, c, d in SequenceMatcher(None, *middles, autojunk=False).get_opcodes():
        if kind != "equal":
            only[0].update(range(start + a, start + b))
            only[1].update(range(start + c, start + d))
    return only


def _marked(words: Sequence[str], apart: Sequence[int] | set[int], tag: str) -> Markup:
    pieces: list[str] = []
    inside = False
    for number, word in enumerate(words):
        # Space between two words that are marked is marked too; at the edge of them it is not.
        is_apart = number in apart and not (word.isspace() and not (inside and number + 1 in apart))
        if is_apart != inside:
            pieces.append(f"<{tag}>" if is_apart else f"</{tag}>")
            inside = is_apart
        pieces.append(_colored(word))
    return Markup("".join(pieces) + (f"</{tag}>" if inside else ""))  # all pieces are escaped


def _colored(word: str) -> str:
    said = word if word.isalnum() or word == " " else str(escape(word))
    if word in _FUNCTIONS:
        return f"<b>{said}</b>"
    if word == "d":
        return f"<var>{said}</var>"
    if word[0].isdigit():
        return f"<i>{said}</i>"
    return said
