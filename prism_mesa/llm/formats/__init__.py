"""Forms of an answer, and what is read from the text that comes."""
