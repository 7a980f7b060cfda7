"""The distilled reasoner: a small model of an LLM's choices, stored as plain numbers.

A file has one model for each set of options. Log-odds are rounded to multiples of 1/256 and limited to -8..8, so the
probabilities in a row depend neither on other rows nor on the machine. `prism distill` fits the models with
scikit-learn.
"""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from prism_mesa.arrays import Floats, Ints
from prism_mesa.domain import AgentState
from prism_mesa.errors import ConfigError, DataError
from prism_mesa.kernels.trees import LEAF, add_trees
from prism_mesa.llm.params import Source
from prism_mesa.params import Params, validate_params
from prism_mesa.reasoner.batch import BatchReasoner
from prism_mesa.reasoner.features import DECLARATION, FEATURES, LINEAR_NAMES, NAMES, feature_columns, linear_sum
from prism_mesa.reasoner.question import DetailedChoices, PlacedQuestion
from prism_mesa.reasoner.rule import RuleReasoner, detailed_columns, rounded_table

MODEL_FILE: Final = "distilled.json"
"""Name of a model file in the output folder of `prism distill`, and in the folder of a run with this model."""
FORMAT: Final = 1
MAX_LOG_ODDS: Final = 8
STEPS: Final = 256
_EXP: Final = rounded_table(math.exp(s / STEPS) for s in range(-MAX_LOG_ODDS * STEPS, MAX_LOG_ODDS * STEPS + 1))
_BLOCK: Final = 1 << 14
"""Rows per step, a number that fits into a processor's cache. It does not change results."""
_MAX_BYTES: Final = 100_000_000
"""Maximum size of a model file; `prism distill` writes about 10,000 bytes."""
Weight = Annotated[float, Field(ge=-1e6, le=1e6)]
"""A term of log-odds."""


class LinearScore(Params):
    """The log-odds of an option relative to the last option: an intercept, and the weights of `LINEAR_NAMES`."""

    intercept: Weight
    weights: list[Weight] = Field(min_length=len(LINEAR_NAMES), max_length=len(LINEAR_NAMES))

    def compute(self, columns: Floats) -> Floats:
        """Return the log-odds of each row of features."""
        return linear_sum(columns, self.intercept, self.weights)


class TreeScore(Params):
    """The score of an option as a sum over trees. At a leaf, `feature` is -1 (see `kernels.trees`)."""

    base: Weight
    roots: list[int]
    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    value: list[Weight]

    @model_validator(mode="after")
    def _check_trees(self) -> Self:
        n = len(self.feature)
        if any(len(column) != n for column in (self.threshold, self.left, self.right, self.value)):
            raise ValueError("the columns of the trees differ in length")
        if not all(0 <= root < n for root in self.roots) or not all(-1 <= f < len(FEATURES) for f in self.feature):
            raise ValueError("a tree points to a missing node or feature")
        inner_nodes = [i for i, f in enumerate(self.feature) if f != LEAF]
        if not all(i < self.left[i] < n and i < self.right[i] < n for i in inner_nodes):
            raise ValueError("a tree does not end")
        return self

    @cached_property
    def _arrays(self) -> tuple[Ints, Ints, Floats, Ints, Ints, Floats]:
        ints = (np.array(nodes, np.int64) for nodes in (self.roots, self.feature, self.left, self.right))
        roots, feature, left, right = ints
        return roots, feature, np.array(self.threshold, np.float64), left, right, np.array(self.value, np.float64)

    def compute(self, columns: Floats) -> Floats:
        """Return the score of each row of features."""
        total = np.full(columns.shape[1], self.base)
        roots, feature, threshold, left, right, value = self._arrays
        add_trees(columns, roots, feature, threshold, left, right, value, total)
        return total


class OptionModel(Params):
    """A model of the choice between options, fitted to `rows` answers. If the last score is missing, it is 0."""

    options: list[str] = Field(min_length=2)
    scores: list[LinearScore | TreeScore]
    rows: int = Field(ge=1)

    @model_validator(mode="after")
    def _check_scores(self) -> Self:
        if len(set(self.options)) < len(self.options):
            raise ValueError("an option appears twice")
        if not len(self.options) - 1 <= len(self.scores) <= len(self.options):
            raise ValueError(f"{len(self.scores)} scores for {len(self.options)} options")
        return self

    def probabilities(self, columns: Floats) -> Floats:
        """Return the probability of each option for each row of features, shape (n, options)."""
        scores = [score.compute(columns) for score in self.scores]
        if len(scores) == len(self.options):
            scores = [column - scores[-1] for column in scores[:-1]]
        steps = (np.rint(np.clip(column, -MAX_LOG_ODDS, MAX_LOG_ODDS) * STEPS).astype(np.int64) for column in scores)
        odds = [_EXP[step + MAX_LOG_ODDS * STEPS] for step in steps]
        total = np.ones(columns.shape[1])
        for column in odds:
            total = total + column
        return np.stack([column / total for column in (*odds, np.ones(len(total)))], axis=1)


class DistilledModel(Params):
    """The content of a model file.

    Attributes:
        features: Names of the features; `declaration` is a digest of their names and meanings.
        persona: The setting `reasoner.persona` of the runs in the data; `archetypes` is `reasoner.archetypes`.
        choices: A model for each set of options.
        provenance: The runs, the LLM and the number of rows.
        report: The fit to held-out rows.
    """

    format: Literal[1]
    kind: Literal["logistic", "boosting"]
    features: list[str]
    declaration: str
    persona: Literal["individual", "archetype"]
    archetypes: int = Field(ge=1)
    choices: list[OptionModel] = Field(min_length=1)
    provenance: dict[str, Any]
    report: dict[str, Any]

    @model_validator(mode="after")
    def _check_features(self) -> Self:
        if len(self.by_options) < len(self.choices):
            raise ValueError("a set of options appears twice")
        if (tuple(self.features), self.declaration) != (NAMES, DECLARATION):
            raise ValueError("its features differ from this version's: distill again")
        return self

    @cached_property
    def by_options(self) -> Mapping[tuple[str, ...], OptionModel]:
        """The models by the values of their options."""
        return {tuple(model.options): model for model in self.choices}

    def find(self, options: tuple[AgentState, ...]) -> OptionModel | None:
        """Return the model of the choice between states; None if it has learned none."""
        return self.by_options.get(tuple(option.value for option in options))

    def text(self) -> str:
        """Return the text of the model file. Equal models have equal texts."""
        return json.dumps(self.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"


def read_distilled(path: str | Path) -> tuple[DistilledModel, str]:
    """Return the model in a file, and the file's text. Raises DataError if the file is missing or does not fit."""
    file = Path(path) / MODEL_FILE if Path(path).is_dir() else Path(path)
    location = f"reasoner.distilled: {file}"
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise ValueError("it is too large for a model file")
        text = file.read_text(encoding="utf-8")
        values = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        fault = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        raise DataError(f"{location}: {fault}; prism distill RUN makes one") from None
    if not isinstance(values, dict):
        raise DataError(f"{location} is not a model file; prism distill RUN makes one")
    try:
        return validate_params(DistilledModel, values, location), text
    except ConfigError as error:
        raise DataError(str(error).replace(": : ", ": ")) from None  # a fault of the whole model names no key


class DistilledReasoner(BatchReasoner[DetailedChoices]):
    """Answers columns of open choices with a distilled model.

    The rule answers choices between options for which the file has no model; these answers have the source `rule`.

    Attributes:
        kind: The value of `ReasonerParams.kind`; `label` is the name in summaries.
        text: The text of the model file; `digest` is its SHA-256.
    """

    kind = "distilled"

    def __init__(self, model: DistilledModel, rule: RuleReasoner | None = None, text: str = "") -> None:
        self.model = model
        self.rule = rule or RuleReasoner()
        self.text = text or model.text()
        self.digest = sha256(self.text.encode()).hexdigest()
        self.n_archetypes = model.archetypes if model.persona == "archetype" else 0
        self.label = f"model distilled from {model.provenance.get('llm', 'an LLM')}"

    def source_for(self, options: tuple[AgentState, ...]) -> Source:
        """Return the source of answers to a set of options."""
        return "rule" if self.model.find(options) is None else "distilled"

    def columns(self, options: tuple[AgentState, ...], questions: Sequence[PlacedQuestion]) -> DetailedChoices:
        """Return questions as columns."""
        return detailed_columns(options, questions)

    def probabilities(self, choices: DetailedChoices) -> Floats:
        """Return the probability of each option, shape ``(n, len(options))``; rows sum to 1."""
        model = self.model.find(choices.options)
        if model is None:
            return self.rule.probabilities(choices)
        n = len(choices.draws)
        result = np.empty((n, len(choices.options)))
        for first in range(0, n, _BLOCK):
            block = slice(first, first + _BLOCK)
            columns = {name: column[block] for name, column in vars(choices).items() if name != "options"}
            result[block] = model.probabilities(feature_columns(DetailedChoices(options=choices.options, **columns)))
        return result


def distilled_record(reasoner: Any) -> dict[str, str] | None:
    """Return the entry of a reasoner's distilled model for a manifest; None without a distilled model."""
    batch = reasoner.batch_reasoner
    if not isinstance(batch, DistilledReasoner):
        return None
    return {"file": MODEL_FILE, "digest": batch.digest, "model": batch.label}


def write_copy(reasoner: Any, folder: Path) -> None:
    """Write a reasoner's distilled model, if any, to the folder of a run, so that the run can be repeated."""
    batch = reasoner.batch_reasoner
    if isinstance(batch, DistilledReasoner):
        (folder / MODEL_FILE).write_bytes(batch.text.encode())


def find_copy(folder: Path, digest: str) -> Path:
    """Return the model file in a run's folder. Raises DataError if its SHA-256 is not `digest`."""
    file = folder / MODEL_FILE
    try:
        if sha256(file.read_bytes()).hexdigest() == digest:
            return file
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}: the run cannot be repeated without it") from None
    raise DataError(f"{folder}: {MODEL_FILE} has changed since the run: it cannot be repeated with another model")
