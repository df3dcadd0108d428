"""A file, text or JAX function as a `Module`: reading, then canonicalizing; graphs of ranks as one program."""
