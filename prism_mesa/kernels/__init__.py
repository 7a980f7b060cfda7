"""Compiled loops over plain arrays: what a round does a million times.

What a kernel decides by (tables, programs of guards, weights) is handed to it, made from the one place where it is
declared. Where a rule is written out here for speed (how a score is made up, what entering a state entails), the tests
hold it equal to plain Python that says the same.
"""
