"""Agents' ticks: inputs, steps and outputs of the walk."""
