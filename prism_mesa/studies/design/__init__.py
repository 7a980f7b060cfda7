"""The conditions of a study: arms, points of a design, seeds, and what makes a run the same run."""
