"""The process of a run: its lock on the folder, its state, signals, and its machine."""
