"""The mutation campaign: random edits of partitioned modules, and whether verdicts on them agree with their values.

`python -m tools.mutate --help`; the edits are the table in `tools.mutate.operators`.
"""
