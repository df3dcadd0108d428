"""The second check of a proof: another transcription of every operation, shapes reduced, and Z3."""
