"""Compiled loops over plain arrays, for the work that a round repeats a million times.

Kernels receive tables, programs of guards and weights, each made from the one place that declares it. Some rules are
repeated here for speed (a score, the effects of entering a state). Tests compare these with plain Python.
"""
