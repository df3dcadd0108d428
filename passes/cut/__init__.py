"""Declared approximations: what a user calls a value is found in both modules, and an argument is put in its place."""
