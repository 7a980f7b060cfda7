"""Named functions of a finished run, each with its unit, range and source."""
