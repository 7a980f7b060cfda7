"""Engines: execute the runs of a study, each in its own process, on this machine or a cluster."""
