"""Measures: named functions of a finished run, with unit, range and source."""
