"""Lineage, stages and verdicts: the proof, by construction and by cases."""
