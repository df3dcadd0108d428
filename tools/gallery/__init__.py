"""The gallery of docs/gallery: real cases, each in every format that a report has.

`python -m tools.gallery` makes what is out of date, `--check` says what is, `CASE --inputs` compiles a case's program
anew.
"""
