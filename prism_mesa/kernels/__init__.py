"""Compiled loops over plain arrays, for the work that a round repeats a million times.

Kernels receive everything they decide by (tables, programs of guards, weights), made from its single declaration. Where
a rule is repeated here for speed (a score, the effects of entering a state), tests check it against equivalent plain
Python.
"""
