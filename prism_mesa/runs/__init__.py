"""One run: its configuration, its folder, its records, its replay, and its measures."""
