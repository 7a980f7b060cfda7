"""Calibrations as pictures, as a report, and as lines that the command prints."""
