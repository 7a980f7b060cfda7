"""Walks: agents take their ticks in one loop. Inputs, steps and outputs."""
