"""What a model starts with: users' files, networks, profiles, and texts."""
