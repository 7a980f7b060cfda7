"""What the runs of a study say: answers with intervals, comparisons, effects, sensitivity."""
