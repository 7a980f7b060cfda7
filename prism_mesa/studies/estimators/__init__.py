"""Estimators for data and runs: functions of columns that return numbers."""
