"""Analysis of finished runs: explanations, interviews, surveys, and distilled models."""
