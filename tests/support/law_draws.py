"""Of the laws of `terms.laws.TABLE`, where they hold of numbers, and what their letters stand for in terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hlo_verify.evaluate.balls import NAN
from hlo_verify.terms import clipping_laws, extremum_laws, machine


def _is_positive(x: Any) -> bool:
    return bool(x.is_finite() and x > 0)


def _is_root_beside_positive(at: Mapping[str, Any]) -> bool:
    return at["a"] is not NAN and at["a"] >= 0 and _is_positive(at["k"])


HOLDS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "equality known by name": lambda at: any(at[name] is NAN or at[name].is_finite() for name in "ab"),
    "order known by name": lambda at: at["a"].is_finite() and at["b"].is_finite(),
    "power of no number": lambda at: at["k"] != 0,
    "power by name of no number": lambda at: at["k"] != 0,
    "finite part of a number": lambda at: at["a"].is_finite(),
    "exponential of minus infinity": lambda at: at["a"] is NAN or at["a"].is_finite(),
    "exponential of a sum": lambda at: at["a"].is_finite() and at["b"].is_finite(),
    extremum_laws.INFINITE: lambda at: at["a"] is NAN or at["a"].is_finite(),
    "exponential of a logarithm": lambda at: _is_positive(at["b"]) and at["a"].is_finite(),
    "logarithm of a product": lambda at: _is_positive(at["a"]),
    "logarithm of an inverse": lambda at: _is_positive(at["a"]),
    "logarithm of a multiple": lambda at: _is_positive(at["k"]),
    "power by roots": lambda at: at["a"].is_finite() and not at["k"].is_integer(),
    "negative power": lambda at: at["a"].is_finite() and at["n"] < 0,
    "power by an inverse": lambda at: at["a"].is_finite() and at["k"] < 0,
    "power of a number": lambda at: at["a"].is_finite() and _is_positive(at["k"]),
    "a maximum is positive": lambda at: NAN not in (at["a"], at["b"]),
    "an absolute value is positive": lambda at: at["a"] is not NAN,
    "square root of a product": lambda at: _is_positive(at["a"]) and _is_positive(at["k"]),
    "square root of a maximum": lambda at: all(at[name] is not NAN and at[name] >= 0 for name in "ab"),
    "square root of a minimum": lambda at: all(at[name] is not NAN and at[name] >= 0 for name in "ab"),
    "absolute value of what is not negative": lambda at: at["a"] is NAN or at["a"] >= 0,
    "absolute value of a choice": lambda at: all(at[name] is not NAN and at[name] >= 0 for name in "ab"),
    "sign of what has one": lambda at: at["a"] is not NAN and at["a"] > 0,
    "zero of what is one, or none": lambda at: at["a"] is not NAN and at["a"] != 0,
    "positive factor of what is positive": lambda at: _is_positive(at["a"]),
    "positive factor of what is zero": lambda at: _is_positive(at["a"]),
    "positive factor of a sum that is positive": lambda at: _is_positive(at["a"]),
    "positive factor of a sum that is zero": lambda at: _is_positive(at["a"]),
    "a sum of quotients is positive": lambda at: _is_positive(at["c"]),
    "a sum of quotients is zero": lambda at: _is_positive(at["c"]),
    "inverse of a sum of quotients": lambda at: _is_positive(at["c"]),
    clipping_laws.LEAST_INVERSE: _is_root_beside_positive,
    clipping_laws.BEYOND_ROOT: _is_root_beside_positive,
    clipping_laws.WITHIN_ROOT: _is_root_beside_positive,
    clipping_laws.AT_ROOT: _is_root_beside_positive,
}
"""Conditions of numbers."""

USUAL = dict.fromkeys("abc", "real") | dict.fromkeys("km", "number") | {"n": "power", "p": "truth"}

DRAWN: dict[str, dict[str, str]] = {
    "exponential of a logarithm": {"b": "positive"},
    "logarithm of a product": {"a": "positive"},
    "logarithm of a multiple": {"k": "positive_number"},
    "logarithm of an inverse": {"a": "positive"},
    "square root of a product": {"a": "positive", "k": "positive_number"},
    "square root of a number": {"k": "square"},
    "square root of a maximum": {"a": "positive", "b": "positive"},
    "square root of a minimum": {"a": "positive", "b": "positive"},
    "power by roots": {"k": "half"},
    "power of a number": {"k": "positive_number"},
    "power by an inverse": {"k": "minus_thirds"},
    "negative power": {"n": "negative_power"},
    "even power": {"n": "high_power"},
    "odd power": {"n": "high_power"},
    "even function": {"a": "sum"},
    "absolute value of what is not negative": {"a": "positive"},
    "absolute value of a choice": {"a": "positive", "b": "positive"},
    "sign of what has one": {"a": "positive"},
    "zero of what is one, or none": {"a": "positive"},
    "positive factor of what is positive": {"a": "positive"},
    "positive factor of what is zero": {"a": "positive"},
    "positive factor of a sum that is positive": {"a": "positive"},
    "positive factor of a sum that is zero": {"a": "positive"},
    "a sum of quotients is positive": {"c": "positive"},
    "a sum of quotients is zero": {"c": "positive"},
    "inverse of a sum of quotients": {"c": "positive"},
    "exponential of minus infinity": {"a": "any"},
    "exponential of a sum": {"a": "number_or_none"},
    "exponential of a choice": {"a": "doubtful"},
    "exponential known by name": {"a": "infinity"},
    "exponential no more known by name": {"a": "any"},
    "inverse of a product": {"a": "any"},
    "inverse of a multiple": {"a": "sum"},
    "a multiple is positive": {"a": "any"},
    "a multiple is zero": {"a": "any"},
    "multiplication known by name": {"a": "any"},
    "0 times a number": {"a": "number_or_none"},
    "finite part of a number": {"a": "any"},
    extremum_laws.NESTED: {"a": "any"},
    extremum_laws.INTEGER: {"n": "byte", "m": "whole"},
    extremum_laws.INFINITE: {"a": "any"},
    extremum_laws.NEUTRAL: {"a": "any"},
    clipping_laws.LEAST_INVERSE: {"a": "positive", "k": "positive_number"},
    clipping_laws.BEYOND_ROOT: {"a": "positive", "k": "positive_number"},
    clipping_laws.WITHIN_ROOT: {"a": "positive", "k": "positive_number"},
    clipping_laws.AT_ROOT: {"a": "positive", "k": "positive_number"},
    machine.WRAPPED: {"k": "whole"},
    machine.FITS: {"n": "place"},
}
"""What the letters of a law stand for, where it is not the usual."""
