"""Reports of a validation: lines for the terminal, a page of Markdown, figures."""
