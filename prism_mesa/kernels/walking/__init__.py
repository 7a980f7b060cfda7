"""Agents that do their ticks: what they are given, the steps that they take, and what comes of it."""
