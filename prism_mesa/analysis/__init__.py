"""Asking finished runs: why an agent acted, interviews, surveys, and models distilled from an LLM's answers."""
