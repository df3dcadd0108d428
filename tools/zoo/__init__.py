"""The bug zoo: real bugs of distributed training code, each beside its right twin.

`python -m tools.zoo [NAMES] [--run]` verifies the cases in `testdata/bugs/` and prints a table;
`testdata/bugs/README.md` says how a case is written. `case.py` reads and lowers one, `judge.py` verifies it,
`run.py` computes it.
"""
