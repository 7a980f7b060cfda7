"""Kernels that commit the events of a round, and update the lists of seen roots."""
