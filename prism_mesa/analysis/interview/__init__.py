"""Interviews with agents of a finished run."""
