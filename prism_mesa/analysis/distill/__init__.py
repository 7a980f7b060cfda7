"""Small models of an LLM's choices: training set, fit, scores, and runs with a share of the LLM."""
