"""Feeds of a round: what they are made of, and ranking it."""
