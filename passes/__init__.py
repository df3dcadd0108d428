"""The passes, in the order the data flows: load, canonicalize, lineage, stages, prove."""
