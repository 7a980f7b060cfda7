"""Checkpoints of a run: plain data in files, when they are made, and where a run goes on from."""
