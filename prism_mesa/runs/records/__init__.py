"""The records of a run: rows, tables, and the folder that holds them."""
