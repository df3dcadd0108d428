"""A compiler's passes one by one: each dump against the one before."""
