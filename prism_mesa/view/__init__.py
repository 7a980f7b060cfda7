"""What people look at: pictures, the browser page, summaries, and the talk in the terminal."""
