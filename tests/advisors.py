"""LLMs that advise nations in tests: they depend on the prompt and on nothing else."""

import hashlib
import json

SAID = (
    "Raise the policy rate by 0.5 percentage points",
    "Lower interest rates by 0.25% to stimulate borrowing",
    "Increase government spending by 1% of GDP",
    "Cut taxes by 300%",
    "Annex the moon with the tax revenue",
    "Impose a 10% tariff on imports from Canada and Sweden",
    "Keep interest rates unchanged",
    "Borrow 2% of GDP",
)
LLM = {"economy": {"policy": "llm"}}


def advisor(prompt):
    """An LLM that depends on the question and on nothing else."""
    number = int(hashlib.sha256(prompt.encode()).hexdigest(), 16)
    if "turn one sentence" in prompt:
        return '{"understood": false}'
    said = {"action": SAID[number % len(SAID)], "reasoning": f"Reason {number % 97}.", "confidence": 0.5}
    return json.dumps(said)


def served(body):
    """The same for a stand-in for Ollama."""
    return advisor(body["messages"][0]["content"])


def failing_from(quarter):
    def llm(prompt):
        return "no JSON at all" if f"it is {quarter}" in prompt and "advise Canada" in prompt else advisor(prompt)

    return llm
