"""Small models of an LLM's choices: the training set, the fit, its scores, and runs that share out between both."""
