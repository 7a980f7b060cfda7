"""Talks with agents of a finished run."""
