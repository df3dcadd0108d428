"""Graphs of modules for other tools, with what was found about their operations."""
