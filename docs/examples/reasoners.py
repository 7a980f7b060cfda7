"""A function of the prompt that decides open choices instead of an LLM."""

from prism_mesa import Reasoner


def sceptic(prompt: str) -> str:
    """Return a sceptic's choice: scroll past posts that have a label or end with an exclamation mark."""
    _, _, post = prompt.partition("The post in front of you:")
    return "scrolling" if "labelled: true" in post or "! >>>" in post else "composing"


def sceptics() -> Reasoner:
    """Return a reasoner that decides for all agents like a sceptic."""
    return Reasoner(sceptic)
