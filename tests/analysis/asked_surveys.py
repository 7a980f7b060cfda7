"""Questions for a survey, and who answers them."""

import json

from prism_mesa.analysis.survey.questionnaire import make_questionnaire
from prism_mesa.llm import FunctionClient

CLOSED = {"id": "drink", "ask": "What do you drink?", "options": ["tea", "coffee", "water"]}


OPEN = {"id": "why", "ask": "Why is that?"}


FILE = """
intro: Be honest.
questions:
  - id: drink
    ask: What do you drink?
    options: [tea, coffee, water]
  - id: why
    ask: Why is that?
"""


TABLES = ("answers.parquet", "table.parquet", "table.csv")


def of(*questions, **more):
    return make_questionnaire({"questions": list(questions), **more})


def toy(function):
    return FunctionClient(function, "toy")


def content(prompt):
    """An LLM that looks at texts, not at letters, and at what the agent remembers."""
    if "Respond with one letter" not in prompt:
        return "Because I remember." if "What you remember" in prompt else "No idea."
    remembers = "What you remember" in prompt
    return json.dumps(
        {"tea": 0.7, "coffee": 0.2, "water": 0.1} if remembers else {"tea": 0.2, "coffee": 0.5, "water": 0.3}
    )


def letter_a(prompt):
    return "A"


def bytes_of(folder):
    return [(folder / name).read_bytes() for name in TABLES]
