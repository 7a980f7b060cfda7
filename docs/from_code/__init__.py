"""The parts of pages that `docs/write_tables.py` writes from the code."""
