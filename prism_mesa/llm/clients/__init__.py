"""Clients of language models with a common interface."""
