"""Random small programs and shardings through XLA's partitioner: what is computed, against what hlo-verify says of it.

In order: `case` says what a program is; `operations` how each of its operations is written; `source` the whole program
as Python, which is what runs and what is shown; `maker` and `placing` draw programs; `machine`, in a child process that
`children` watches, runs one and has it verified; `kinds` says what is surprising about that; `minimise` makes the
program smaller; `causes` sorts it; `campaign` runs many. docs/hunting.md says what it found.
"""
