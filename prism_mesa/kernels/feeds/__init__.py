"""Which posts each reader is shown: candidates, scores, and the best of them."""
