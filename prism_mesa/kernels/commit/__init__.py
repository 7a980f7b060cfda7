"""Kernels for committing the events of a round, and for lists of what agents have seen."""
