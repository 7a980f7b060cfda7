"""Nations whose policy is set in words: an economy that answers, typed policies, and a validator that computes."""
