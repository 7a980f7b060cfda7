"""Fit parameters to targets by simulation, and report how well the data identify them."""
