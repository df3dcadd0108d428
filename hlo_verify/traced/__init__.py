"""What JAX, flax and equinox give for a function: how it is traced and lowered, what it takes and what it returns."""
