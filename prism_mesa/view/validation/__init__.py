"""What a validation came to: lines for a terminal, a page of Markdown, figures."""
