"""Engines that run the runs of a study, one process each, on this machine or a cluster."""
