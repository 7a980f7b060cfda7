"""Figures of what LLMs answered: in runs, in surveys, and to models that were distilled from them."""
