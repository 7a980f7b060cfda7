"""Statistics of a study's runs: means with intervals, comparisons, effects and sensitivity."""
