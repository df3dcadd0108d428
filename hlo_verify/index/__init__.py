"""Index notation's integers: affine expressions over digits of index variables."""
