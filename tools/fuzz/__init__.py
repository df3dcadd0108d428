"""Inputs that nobody wrote: damaged files, and random programs whose truth is known."""
