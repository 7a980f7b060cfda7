"""Estimators of what is known of real platforms: columns go in, numbers come out; the same for data and for runs."""
