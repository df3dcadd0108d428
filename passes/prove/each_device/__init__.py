"""Devices one by one: a module's values worked out on every device by itself, where one walk for all of them fails."""
