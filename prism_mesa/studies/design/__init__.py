"""The conditions of a study: arms, points of a design and seeds, and the identity of runs."""
