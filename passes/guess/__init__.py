"""Guesses from numbers: what values of a program seem to be, for a proof to try."""
