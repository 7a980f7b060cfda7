"""What posts and histories are to who reads them; nothing here changes a platform."""
