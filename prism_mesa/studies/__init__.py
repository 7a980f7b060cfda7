"""Studies: many runs of one question. Still empty; designs, statistics and validation come here."""
