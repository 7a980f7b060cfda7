"""The report of a study as HTML and as Markdown, its figures, and the ODD protocol of its model."""
