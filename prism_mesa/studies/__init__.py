"""Studies: many runs that answer one question. Designs, engines, measures and statistics; results are tables."""
