"""Verdicts that were reached before, on disk, by the content of what was asked (docs/decisions/decorator.md)."""
