"""Compare runs pair by pair: measures and rounds, with intervals if there are several pairs."""
