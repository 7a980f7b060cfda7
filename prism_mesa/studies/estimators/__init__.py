"""Estimators for data and runs: they take columns and return numbers."""
