"""Why and where a result is not proved. Nothing here may influence a verdict."""
