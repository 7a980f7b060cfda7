"""What a snapshot of a model holds beside its platform."""
