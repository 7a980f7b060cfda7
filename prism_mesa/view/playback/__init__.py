"""Finished runs played back from their tables, two of them side by side, and the page of nations."""
