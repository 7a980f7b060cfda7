"""What a run records: rows as they come, tables as they are written, and the folder that holds them."""
