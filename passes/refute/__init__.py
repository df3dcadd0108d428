"""Inputs for which two modules differ: searched for, made readable, replayed, and repairs of what they show."""
