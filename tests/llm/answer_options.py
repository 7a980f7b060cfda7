"""Options to choose among."""

TEA = ("tea", "coffee", "water")
