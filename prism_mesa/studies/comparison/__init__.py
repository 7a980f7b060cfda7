"""Runs compared pair by pair: measures and rounds, with intervals where there are several pairs."""
