"""What agents write, and what an agent can look up and do while it thinks."""
