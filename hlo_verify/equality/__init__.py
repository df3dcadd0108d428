"""Deciding what the normal form alone does not: equality of guarded terms at full size, with Z3's integers."""
