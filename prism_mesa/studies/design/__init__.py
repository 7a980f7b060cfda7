"""Which conditions a study has: arms, grids, samples."""
