"""Where values lie: what each device's value surely depends on, what is one addend of a sum, and what that makes of the
results."""
