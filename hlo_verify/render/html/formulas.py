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

ALIKE = 0.5
"""Two factors with at least this part of their words in common are told apart word by word."""

_SIGNS = {"*", "/", "+", "-", "."}
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


Span = tuple[int, int]
"""The words from one number on, up to another one."""


def _apart(one: Sequence[str], other: Sequence[str]) -> tuple[set[int], set[int]]:
    """The numbers of words that only the one sequence has, and of those that only the other has.

    Factors are compared as wholes first, so that a bracket of one is not matched with that of another; then the words
    of two that stand in each other's place and are alike.
    """
    factors = _factors(one), _factors(other)
    texts = ["".join(one[a:b]) for a, b in factors[0]], ["".join(other[a:b]) for a, b in factors[1]]
    only: tuple[set[int], set[int]] = (set(), set())
    if not {text for text in texts[0] if len(text) > 1} & set(texts[1]):  # none in common: one may stand in brackets
        _apart_within(one, (0, len(one)), other, (0, len(other)), only)
        return only
    for kind, a, b, c, d in _opcodes(*texts):
        if kind == "equal":
            continue
        if b - a == d - c:
            for left, right in zip(factors[0][a:b], factors[1][c:d], strict=True):
                _apart_within(one, left, other, right, only)
        else:
            for number, spans in enumerate((factors[0][a:b], factors[1][c:d])):
                only[number].update(n for span in spans for n in range(*span))
    return only


def _apart_within(
    one: Sequence[str], left: Span, other: Sequence[str], right: Span, only: tuple[set[int], set[int]]
) -> None:
    """The same of two factors; where they have little in common, all of both."""
    opcodes = _opcodes(one[slice(*left)], other[slice(*right)])
    shared = sum(b - a for kind, a, b, _, _ in opcodes if kind == "equal")
    if 2 * shared < ALIKE * (left[1] - left[0] + right[1] - right[0]):
        opcodes = [("replace", 0, left[1] - left[0], 0, right[1] - right[0])]
    for kind, a, b, c, d in opcodes:
        if kind != "equal":
            only[0].update(range(left[0] + a, left[0] + b))
            only[1].update(range(right[0] + c, right[0] + d))


def _factors(words: Sequence[str]) -> list[Span]:
    """The factors of a term, and each sign and space between them by itself."""
    found: list[Span] = []
    depth, first = 0, 0
    for number, word in enumerate(words):
        if not depth and (word in _SIGNS or word.isspace()):
            found += [(first, number)] if number > first else []
            found.append((number, number + 1))
            first = number + 1
        depth += (word in "([{") - (word in ")]}") if len(word) == 1 else 0
    return found + ([(first, len(words))] if first < len(words) else [])


def _opcodes(one: Sequence[str], other: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """How one sequence becomes the other, as `difflib` has it; at once, where it would take too many steps."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    middles = one[start : len(one) - end], other[start : len(other) - end]
    found: list[tuple[str, int, int, int, int]] = [("equal", 0, start, 0, start)]
    counts = tuple(map(Counter, middles))
    if sum(times * counts[1][word] for word, times in counts[0].items()) > COMPARED:
        found.append(("replace", start, start + len(middles[0]), start, start + len(middles[1])))
    else:
        steps = SequenceMatcher(None, *middles, autojunk=False).get_opcodes()
        found += [(kind, start + a, start + b, start + c, start + d) for kind, a, b, c, d in steps]
    return [*found, ("equal", len(one) - end, len(one), len(other) - end, len(other))]


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
