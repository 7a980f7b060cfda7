"""Studies: many runs of one question. Designs, engines, measures, statistics; yields tables, draws nothing."""
