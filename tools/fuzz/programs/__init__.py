"""Random pairs of small programs, equal by rewriting or different by a mutation; what is true, evaluation tells.

In order: `program` and `text` say what a program is; `elementwise` and `machine` what it computes; `placing` and
`collectives` how tensors lie on a mesh and move; `maker`, `steps`, `regions`, `families` and `logical` make programs;
`partition`, `arithmetic`, `spellings`, `rewriting`, `mutation` and `pair` make pairs; `truth` and `verdict` judge them;
`campaign`, `shrink` and `command` run many.
"""

from tools.fuzz.programs.command import main

__all__ = ["main"]
