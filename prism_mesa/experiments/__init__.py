"""Running models as experiments: configurations, runs, their records, and what is measured on them."""
