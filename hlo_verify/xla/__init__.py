"""Child processes that run XLA: it partitions one module, or executes two."""
