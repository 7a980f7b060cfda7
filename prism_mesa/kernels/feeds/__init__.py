"""Rank feeds: candidates, scores, and the best for each reader."""
