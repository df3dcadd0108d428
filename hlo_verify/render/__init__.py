"""Renderers of a `report.Report`, one module a format. They know nothing of the prover."""
