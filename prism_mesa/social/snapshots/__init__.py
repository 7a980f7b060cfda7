"""What a snapshot of a model holds beside its platform, and what must hold of one that is brought back."""
