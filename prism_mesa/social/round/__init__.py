"""The steps of a round."""
