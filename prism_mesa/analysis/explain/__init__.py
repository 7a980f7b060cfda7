"""Explains why an agent or a nation did what it did, from a repeated run or its records."""
