"""Compare two finished runs: settings, the first divergence, and its reasons."""
