"""Compiled loops over plain arrays: what a round does a million times. They know numbers only, no agent and no chart.

Rules are not written here. What a kernel decides by (tables, programs of guards, weights) is handed to it, made from
the one place where the rule is declared; the tests hold each kernel equal to the slow way of saying the same.
"""
