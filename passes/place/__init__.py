"""Where arguments and results lie where nobody says it."""
