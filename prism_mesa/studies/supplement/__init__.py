"""Packs runs and studies for a paper's supplement as a Process Run Crate, and checks archives."""
