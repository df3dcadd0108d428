"""Mistakes that newcomers make, each as a tiny program, and what they are told.

Each is a function of an empty folder. What it prints, returns or raises is in `golden/`, a file each: the message is
what a person sees. `python -m tests.mistakes` writes these files anew.
"""
