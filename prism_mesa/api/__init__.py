"""Functions for users: run, open, explain, study. Runs are drawn only here."""
