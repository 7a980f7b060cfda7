"""The report of a study: a page, the same as Markdown, its figures, and the ODD protocol of its model."""
