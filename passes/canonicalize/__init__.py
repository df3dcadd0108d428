"""MLIR to `Module`: calls inlined, tuples flattened, StableHLO's defaults put back."""
