"""Single runs: configuration, folder, records, replay and measures."""
