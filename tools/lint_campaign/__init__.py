"""Mutants of scheduled modules, and what the linter says of their buffers, against bytes that are written and read."""
