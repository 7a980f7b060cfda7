"""A comparison of runs: lines for a terminal, a page of Markdown, a figure."""
