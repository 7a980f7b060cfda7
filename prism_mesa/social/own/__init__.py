"""What a user names in a configuration as `module:object`: loading it, and feeds of a user's own."""
