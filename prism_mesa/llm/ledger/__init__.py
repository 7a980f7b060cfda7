"""What a language model was asked and what it answered, in SQLite."""
