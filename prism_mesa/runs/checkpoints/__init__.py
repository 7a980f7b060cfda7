"""Checkpoints of a run: files, schedule, and restoring."""
