"""Everything that users look at: figures, the browser page, reports, summaries, and interviews in a terminal."""
