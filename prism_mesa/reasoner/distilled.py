"""The distilled reasoner: a small model of an LLM's choices, read from a file of plain numbers.

A file holds one model for each set of options that its LLM was asked about. Log-odds are rounded to 1/256 and held
within -8..8, and everything is done row by row, so a row has the same chances alone, among a million, and on every
machine. Fitting is done elsewhere (`prism distill`) and needs scikit-learn; using a file does not.
"""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from prism_mesa.errors import ConfigError, DataError
from prism_mesa.kernels.trees import LEAF, add_trees
from prism_mesa.llm.params import Source
from prism_mesa.params import Params, validated
from prism_mesa.reasoner.batch import BatchReasoner
from prism_mesa.reasoner.features import DECLARATION, FEATURES, LINEAR_NAMES, NAMES, feature_columns, linear_sum
from prism_mesa.reasoner.question import DetailedChoices, PlacedQuestion
from prism_mesa.reasoner.rule import RuleReasoner, detailed_columns_of, rounded_table
from prism_mesa.statechart import AgentState

type Floats = npt.NDArray[np.float64]
type Ints = npt.NDArray[np.int64]

FILE: Final = "distilled.json"
"""What a model file is called, in the folder of `prism distill` and in that of a run that used one."""

FORMAT: Final = 1
MAX_LOG_ODDS: Final = 8
STEPS: Final = 256
_EXP: Final = rounded_table(math.exp(s / STEPS) for s in range(-MAX_LOG_ODDS * STEPS, MAX_LOG_ODDS * STEPS + 1))
_BLOCK: Final = 1 << 14
"""Rows that are worked on at a time; they fit into a processor's cache. The result does not depend on it."""
Weight = Annotated[float, Field(ge=-1e6, le=1e6)]
"""A number that is added up to log-odds."""


class Linear(Params):
    """The log-odds of one option against the last one: an intercept and the weights of `LINEAR_NAMES`."""

    intercept: Weight
    weights: list[Weight] = Field(min_length=len(LINEAR_NAMES), max_length=len(LINEAR_NAMES))

    def sums(self, columns: Floats) -> Floats:
        """Return the log-odds of each row of features."""
        return linear_sum(columns, self.intercept, self.weights)


class Trees(Params):
    """The score of one option as a sum over trees; `feature` is -1 at a leaf (see `kernels.trees`)."""

    base: Weight
    roots: list[int]
    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    value: list[Weight]

    @model_validator(mode="after")
    def _is_a_forest(self) -> Self:
        n = len(self.feature)
        if any(len(column) != n for column in (self.threshold, self.left, self.right, self.value)):
            raise ValueError("the columns of the trees have several lengths")
        if not all(0 <= root < n for root in self.roots) or not all(-1 <= f < len(FEATURES) for f in self.feature):
            raise ValueError("a tree points to a node or a feature that is not there")
        inner = [i for i, f in enumerate(self.feature) if f != LEAF]
        if not all(i < self.left[i] < n and i < self.right[i] < n for i in inner):
            raise ValueError("a tree does not end")
        return self

    @cached_property
    def _arrays(self) -> tuple[Ints, Ints, Floats, Ints, Ints, Floats]:
        roots, feature, left, right = (
            np.array(nodes, np.int64) for nodes in (self.roots, self.feature, self.left, self.right)
        )
        return roots, feature, np.array(self.threshold, np.float64), left, right, np.array(self.value, np.float64)

    def sums(self, columns: Floats) -> Floats:
        """Return the score of each row of features."""
        total = np.full(columns.shape[1], self.base)
        roots, feature, threshold, left, right, value = self._arrays
        add_trees(columns, roots, feature, threshold, left, right, value, total)
        return total


class OptionModel(Params):
    """The choice between some options.

    Attributes:
        scores: One for each option, or for each but the last, whose score is then 0.
        rows: Answers that it was fitted to.
    """

    options: list[AgentState] = Field(min_length=2)
    scores: list[Linear | Trees]
    rows: int = Field(ge=1)

    @model_validator(mode="after")
    def _has_scores(self) -> Self:
        if len(set(self.options)) < len(self.options):
            raise ValueError("an option stands twice")
        if not len(self.options) - 1 <= len(self.scores) <= len(self.options):
            raise ValueError(f"{len(self.scores)} scores for {len(self.options)} options")
        return self

    def probabilities(self, columns: Floats) -> Floats:
        """Return the probability of each option for each row of features, shape (n, options)."""
        sums = [score.sums(columns) for score in self.scores]
        if len(sums) == len(self.options):
            sums = [column - sums[-1] for column in sums[:-1]]
        steps = (np.rint(np.clip(column, -MAX_LOG_ODDS, MAX_LOG_ODDS) * STEPS).astype(np.int64) for column in sums)
        odds = [_EXP[step + MAX_LOG_ODDS * STEPS] for step in steps]
        total = np.ones(columns.shape[1])
        for column in odds:
            total = total + column
        return np.stack([column / total for column in (*odds, np.ones(len(total)))], axis=1)


class DistilledModel(Params):
    """What a model file holds.

    Attributes:
        kind: What was fitted.
        features: Names of the features; `declaration` is the digest of their meanings.
        persona: Who asked in the runs that it learned from; with `archetype` there were `archetypes` kinds.
        choices: A model for each set of options.
        provenance: Where it comes from: runs, LLM, rows.
        report: How well it does on what it was not fitted to.
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
    def _fits(self) -> Self:
        if len(self.by_options) < len(self.choices):
            raise ValueError("a set of options stands twice")
        own, known = set(self.features), set(NAMES)
        if tuple(self.features) != NAMES:
            more, less = (", ".join(sorted(names)[:3]) for names in (own - known, known - own))
            raise ValueError(
                "its features are not those of this version "
                f"(it has {more or 'no others'}; it lacks {less or 'none'}): distill again"
            )
        if self.declaration != DECLARATION:
            raise ValueError("its features have another meaning in this version: distill again")
        return self

    @cached_property
    def by_options(self) -> Mapping[tuple[AgentState, ...], OptionModel]:
        """The models by what they choose from."""
        return {tuple(model.options): model for model in self.choices}

    def text(self) -> str:
        """Return what stands in its file; the same model has the same text."""
        return json.dumps(self.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"


_MOST_BYTES: Final = 100_000_000
"""Of a model file; those that `prism distill` writes take some 10,000."""


def read_distilled(path: str | Path) -> tuple[DistilledModel, str]:
    """Return the model of a file, and the file's text.

    Raises:
        DataError: If there is no such file, it is none of a model, or its features do not fit this version.
    """
    file = Path(path)
    if file.is_dir():
        file = file / FILE
    if not file.is_file():
        raise DataError(f"reasoner.distilled: {file}: no such file; prism distill RUN makes one")
    if file.stat().st_size > _MOST_BYTES:
        raise DataError(f"reasoner.distilled: {file}: is larger than {_MOST_BYTES:,} bytes: that is no model file")
    try:
        text = file.read_text(encoding="utf-8")
        values = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"reasoner.distilled: {file}: cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise DataError(f"reasoner.distilled: {file}: is no model file; prism distill RUN makes one")
    try:
        return validated(DistilledModel, values, f"reasoner.distilled: {file}"), text
    except ConfigError as error:
        raise DataError(str(error).replace(": : ", ": ")) from None  # the fault of the whole has no key


class DistilledReasoner(BatchReasoner[DetailedChoices]):
    """Answers open choices as its LLM would, at once and for whole columns.

    A set of options that its LLM was never asked about is answered by the rule, and counted as `rule`.

    Args:
        model: What decides.
        rule: Who decides what the model knows nothing of.
        text: What stands in the file of the model; by default what `model` itself says.

    Attributes:
        kind: What of `ReasonerParams.kind` it is.
        label: What a summary calls it.
        text: The model file; `digest` is its SHA-256.
    """

    kind = "distilled"

    def __init__(self, model: DistilledModel, rule: RuleReasoner | None = None, text: str = "") -> None:
        self.model = model
        self.rule = rule or RuleReasoner()
        self.text = text or model.text()
        self.digest = sha256(self.text.encode()).hexdigest()
        self.n_archetypes = model.archetypes if model.persona == "archetype" else 0
        self.label = f"model distilled from {model.provenance.get('llm', 'an LLM')}"

    def source_of(self, options: tuple[AgentState, ...]) -> Source:
        """Return who answers to a set of options are counted for."""
        return "distilled" if options in self.model.by_options else "rule"

    def columns(self, options: tuple[AgentState, ...], asks: Sequence[PlacedQuestion]) -> DetailedChoices:
        """Return questions as columns (see `detailed_columns_of`)."""
        return detailed_columns_of(options, asks)

    def probabilities(self, choices: DetailedChoices) -> Floats:
        """Return the probability of each option, shape ``(n, len(options))``; a row adds up to 1."""
        found = self.model.by_options.get(choices.options)
        if found is None:
            return self.rule.probabilities(choices)
        n = len(choices.draws)
        result = np.empty((n, len(choices.options)))
        for first in range(0, n, _BLOCK):
            block = slice(first, first + _BLOCK)
            result[block] = found.probabilities(feature_columns(_part(choices, block)))
        return result


def _part(choices: DetailedChoices, rows: slice) -> DetailedChoices:
    columns = {name: column[rows] for name, column in vars(choices).items() if name != "options"}
    return DetailedChoices(options=choices.options, **columns)


def distilled_record(reasoner: Any) -> dict[str, str] | None:
    """Return what a manifest says of the distilled model that a reasoner uses; None if it uses none."""
    used = reasoner.batch_reasoner
    return {"file": FILE, "digest": used.digest, "model": used.label} if isinstance(used, DistilledReasoner) else None


def keep_copy(reasoner: Any, folder: Path) -> None:
    """Write the model file that a reasoner uses, if any, into a run's folder: what the run is repeated with."""
    used = reasoner.batch_reasoner
    if isinstance(used, DistilledReasoner):
        (folder / FILE).write_bytes(used.text.encode())


def kept_copy(folder: Path, digest: str) -> Path:
    """Return the model file in a run's folder.

    Args:
        folder: The run's folder; the file has one name in all of them.
        digest: The SHA-256 of the file that the run used.

    Raises:
        DataError: If it is missing, cannot be read, or is not the one that the run used.
    """
    file = folder / FILE
    if not file.is_file():
        raise DataError(f"{folder}: {FILE} is missing: without its distilled model this run cannot be repeated")
    try:
        found = sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from None
    if found != digest:
        raise DataError(f"{folder}: {FILE} has changed since the run: it cannot be repeated with another model")
    return file
