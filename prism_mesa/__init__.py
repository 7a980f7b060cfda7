"""PRISM on Mesa."""
