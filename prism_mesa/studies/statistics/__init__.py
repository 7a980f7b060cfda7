"""Statistics of a study's runs: answers with intervals, comparisons, effects, sensitivity."""
