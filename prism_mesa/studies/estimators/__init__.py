"""Estimators for data and runs alike: columns in, numbers out."""
