"""What a commit does with the events of a round, and lists of what was seen."""
