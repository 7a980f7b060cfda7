"""The starting world of a model: users' files, networks, profiles and texts."""
