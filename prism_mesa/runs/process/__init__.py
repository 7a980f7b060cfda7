"""The process of a run: its lock on the folder, whether it is still there, signals to it, and its machine."""
