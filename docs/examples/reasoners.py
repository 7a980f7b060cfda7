"""Who decides what the chart leaves open: a function that is given the prompt, in the place of an LLM."""

from prism_mesa import Reasoner


def sceptic(prompt: str) -> str:
    """Return what a sceptic does next: nothing with a post that has a label or ends with an exclamation mark."""
    _, _, post = prompt.partition("The post in front of you:")
    return "scrolling" if "labelled: true" in post or "! >>>" in post else "composing"


def sceptics() -> Reasoner:
    """Return a reasoner that decides for all agents as a sceptic does."""
    return Reasoner(sceptic)
