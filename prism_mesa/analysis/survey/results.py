"""Answers of a survey, and their means over agents with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.analysis.survey.questionnaire import SurveyQuestion
from prism_mesa.arrays import Floats, Ints, Mask
from prism_mesa.tables import Column, index_tables, make_schema

MIN_AGENTS: Final = 10
"""Smallest sample with an interval; the mean of a smaller sample is too far from normal."""
WAVES: Final = ("before", "after")

_QUESTION = Column("question", "text", "id of the question")
ANSWERS: Final = make_schema(
    "answers",
    "an agent's answer to an open question, or its probability of one option of a closed question",
    _QUESTION,
    Column("wave", "text", "state of the agent when asked: before or after the run", one_of=WAVES),
    Column("agent", "int", "row of the agent in `agents` of the run"),
    Column("option", "text", "the option, for a closed question", blank=True),
    Column("probability", "float64", "the agent's probability of the option", "probability", blank=True),
    Column("text", "text", "the answer to an open question", blank=True),
)
MEANS: Final = make_schema(
    "table",
    "an option of a closed question in one wave: its mean probability over agents, with an interval",
    _QUESTION,
    Column("option", "text", "the option"),
    Column("wave", "text", "change: after minus before, if answered both times", one_of=(*WAVES, "change")),
    Column("n", "int", "number of agents that answered"),
    Column("failed", "int", "number of agents in the sample without an answer"),
    Column("mean", "float64", "mean probability over agents", "probability", finite=False),
    Column(
        "low",
        "float64",
        f"lower end of the 95 % interval; missing for fewer than {MIN_AGENTS} agents",
        "probability",
        finite=False,
    ),
    Column("high", "float64", "upper end of the interval", "probability", finite=False),
)
SURVEY_TABLES: Final = index_tables(ANSWERS, MEANS)


def mean_interval(values: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Return the mean of each column of `values` over agents, and the ends of its 95 % interval (Student's t).

    The interval covers other samples of agents, not other LLMs or wordings. `values` has shape (agents, columns).
    Without agents the means are NaN; with fewer than `MIN_AGENTS` the ends are NaN.
    """
    from scipy.stats import t  # importing it takes as long as a small run

    rows = np.asarray(values, np.float64)
    n, k = rows.shape
    mean = rows.mean(axis=0) if n else np.full(k, np.nan)
    half_width = t.ppf(0.975, n - 1) * rows.std(axis=0, ddof=1) / np.sqrt(n) if n >= MIN_AGENTS else np.full(k, np.nan)
    return mean, mean - half_width, mean + half_width


@dataclass
class Replies:
    """The answers of a sample to one question, before and after.

    Attributes:
        n: The number of agents.
        first_options: For each agent, the index of the option with the letter A; None without letters.
        probabilities: Shape (2, agents, options); NaN for missing answers. Open questions have no options.
        texts: The answers to an open question by wave; None for missing answers.
        failures: The reasons for missing answers, by wave and index of the agent.
    """

    question: SurveyQuestion
    n: int
    first_options: Ints | None = None
    probabilities: Floats = field(init=False)
    texts: tuple[list[str | None], list[str | None]] = field(init=False)
    failures: dict[tuple[int, int], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.probabilities = np.full((2, self.n, len(self.question.options)), np.nan)
        self.texts = ([None] * self.n, [None] * self.n)

    def store_answer(self, wave: int, agent_index: int, answer: Any) -> None:
        """Store an answer: a string, or the probabilities of the options."""
        if self.question.options:
            self.probabilities[wave, agent_index] = answer
        else:
            self.texts[wave][agent_index] = str(answer)

    def answered_mask(self, wave: int) -> Mask:
        """Return which agents answered, shape (agents,)."""
        if self.question.options:
            return ~np.isnan(self.probabilities[wave, :, 0])
        return np.array([text is not None for text in self.texts[wave]], bool)

    def letter_probabilities(self) -> dict[str, float]:
        """Return the mean probability of each letter; the means are about equal if the LLM reads the options."""
        k = len(self.question.options)
        if self.first_options is None or not any(self.answered_mask(wave).any() for wave in (0, 1)):
            return {}
        order = (np.arange(k)[None, :] + self.first_options[:, None]) % k
        letters = np.concatenate([np.take_along_axis(self.probabilities[wave], order, axis=1) for wave in (0, 1)])
        return {chr(ord("A") + place): float(mean) for place, mean in enumerate(np.nanmean(letters, axis=0))}


def means_table(replies: Sequence[Replies]) -> pd.DataFrame:
    """Return the means over agents of all closed questions, with the columns of `MEANS`."""
    rows = []
    for reply in replies:
        question, values = reply.question, reply.probabilities
        if not question.options:
            continue
        answered_both = reply.answered_mask(0) & reply.answered_mask(1)
        waves = [(name, values[wave][reply.answered_mask(wave)]) for wave, name in enumerate(WAVES)]
        for wave, answers in (*waves, ("change", (values[1] - values[0])[answered_both])):
            interval = mean_interval(answers)
            for option, mean, low, high in zip(question.options, *(part.tolist() for part in interval), strict=True):
                failed = len(values[0]) - len(answers)
                rows.append((question.id, option, wave, len(answers), failed, mean, low, high))
    types = {"n": int, "failed": int, "mean": float, "low": float, "high": float}
    return pd.DataFrame(rows, columns=MEANS.names).astype(types)


def answer_columns(replies: Sequence[Replies], agents: Ints) -> dict[str, list[Any]]:
    """Return all answers as the columns of `ANSWERS`."""
    columns: dict[str, list[Any]] = {name: [] for name in ANSWERS.names}
    for reply in replies:
        for wave, name in enumerate(WAVES):
            for index in np.flatnonzero(reply.answered_mask(wave)).tolist():
                options = reply.question.options
                shares = reply.probabilities[wave, index].tolist()
                pairs: list[tuple[str | None, float | None]] = [*zip(options, shares, strict=True)] or [(None, None)]
                for option, share in pairs:
                    row = (reply.question.id, name, int(agents[index]), option, share, reply.texts[wave][index])
                    for column, value in zip(columns.values(), row, strict=True):
                        column.append(value)
    return columns
