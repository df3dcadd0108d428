"""Bytes to MLIR: text, bytecode and HLO protos, with what jaxlib's conversion would lose put back first."""
