"""Casts that lose what is needed later: sums, updates of weights, and scales, in few digits."""
