"""Runs and studies packed for the supplement of a paper, as a Process Run Crate; and such an archive checked."""
