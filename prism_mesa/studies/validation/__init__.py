"""Compare a configuration with real platforms: targets, runs, null models and results."""
