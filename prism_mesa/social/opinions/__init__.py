"""Opinions: an attribute of agents that moves by what they read."""
