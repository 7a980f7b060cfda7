"""Sending requests to a language model: order, retries, limits, and where answers are stored."""
