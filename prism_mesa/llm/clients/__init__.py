"""Clients of language models, each with the same few methods."""
