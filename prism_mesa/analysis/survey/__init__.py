"""Surveys of agents before and after a run."""
