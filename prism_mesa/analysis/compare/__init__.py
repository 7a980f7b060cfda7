"""Two finished runs beside each other: their settings, and what diverged first and why."""
