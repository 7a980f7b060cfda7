"""A configuration held against what is known of real platforms: targets, runs, null models, and what came out."""
