"""Modules as XLA prints them: what StableHLO does not say of a schedule, of layouts, aliases and buffers."""
