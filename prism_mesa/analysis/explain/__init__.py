"""Why an agent or a nation did what it did, told from a repeated run or from its records."""
