"""Questionnaires put to agents of a run before and after it."""
