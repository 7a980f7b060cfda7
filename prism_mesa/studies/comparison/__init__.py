"""Compare runs in pairs: measures and rounds, with intervals for several pairs."""
