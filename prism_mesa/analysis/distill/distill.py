"""Distill an LLM's choices in runs into a small model, and evaluate the model on new personas and posts.

Personas and posts are dealt into up to four folds each. A model that was fitted to other personas and other posts
predicts the rows of each pair of folds, so every row is evaluated once. The final model is fitted to all rows. No LLM
is asked, and the folders of the runs are only read.
"""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.analysis.distill.dataset import TrainingExample, TrainingSet, make_training_set, split_blocks
from prism_mesa.analysis.distill.fit import Kind, check_installed, fit_scores
from prism_mesa.analysis.distill.scores import (
    auc,
    calibration,
    calibration_error,
    js_divergence,
    js_totals,
    log_loss,
)
from prism_mesa.errors import DataError, one_line
from prism_mesa.params import shown
from prism_mesa.reasoner import DistilledModel, RuleReasoner
from prism_mesa.reasoner.distilled import FILE, FORMAT, OptionModel
from prism_mesa.reasoner.features import DECLARATION, NAMES, feature_columns
from prism_mesa.reasoner.rule import detailed_columns
from prism_mesa.runs.records.folder import new_folder
from prism_mesa.runs.run_files import run_folder
from prism_mesa.statechart import AgentState

type Floats = npt.NDArray[np.float64]

KINDS: Final[tuple[Kind, ...]] = ("logistic", "boosting")
REPORT: Final = "report.json"


@dataclass(frozen=True, repr=False)
class Distilled:
    """A distilled model; `folder` holds the model's file and the report."""

    folder: Path
    model: DistilledModel

    @property
    def file(self) -> Path:
        """The file for `reasoner.distilled`."""
        return self.folder / FILE

    @one_line
    def __repr__(self) -> str:
        return f"<Distilled {self.model.kind}: {self.model.report['verdict']}, {self.file}>"


def distill(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    kind: str = "logistic",
    out: str | Path = "results",
    on_round: Callable[[], object] = lambda: None,
    trust: bool = False,
) -> Distilled:
    """Fit a model to an LLM's answers in runs, and write the model and a report to ``out/distilled-<time>``.

    Args:
        runs: One or several results, or folders of runs, with the same LLM.
        kind: The kind of model to keep, `logistic` or `boosting`; both are evaluated.
        out: Parent folder; made if missing.
        on_round: Called after each repeated round.
        trust: As for `replay`.

    Raises:
        ConfigError: If scikit-learn is not installed.
        DataError: If the runs lack the answers, or are not trusted.
    """
    check_installed()
    if kind not in KINDS:
        raise DataError(f"--kind: {kind!r} is not one of {', '.join(KINDS)}")
    model = fit_model(make_training_set(_run_folders(runs), on_round, trust=trust), KINDS[KINDS.index(kind)])
    folder = new_folder(Path(out), "distilled")
    (folder / FILE).write_bytes(model.text().encode())
    (folder / REPORT).write_text(json.dumps(model.report, indent=1) + "\n", encoding="utf-8")
    return Distilled(folder, model)


def _run_folders(runs: object) -> list[Path]:
    several = [runs] if isinstance(runs, str | os.PathLike) else runs
    several = several if isinstance(several, Iterable) and not isinstance(several, bytes) else []
    folders = list(map(run_folder, several))
    if not folders:
        raise DataError(f"runs: give a RunResult or the folder of a run, or a list of at least one, not {shown(runs)}")
    return folders


def fit_model(examples: TrainingSet, kind: Kind) -> DistilledModel:
    """Return the model fitted to all examples, with its report; raises DataError for too few personas or posts."""
    sets = sorted(examples.by_options.items(), key=lambda item: -len(item[1]))
    rule = RuleReasoner(examples.rule)
    evaluated = [_evaluate(options, rows, rule, kind, required=i == 0) for i, (options, rows) in enumerate(sets)]
    return DistilledModel(
        format=FORMAT,
        kind=kind,
        features=list(NAMES),
        declaration=DECLARATION,
        persona="archetype" if examples.persona == "archetype" else "individual",
        archetypes=examples.archetypes,
        choices=[
            OptionModel(options=list(options), scores=fit_scores(kind, *_features(options, rows)), rows=len(rows))
            for options, rows in sets
        ],
        provenance=examples.provenance,
        report={"kind": kind, "choices": evaluated, "verdict": evaluated[0]["verdict"]},
    )


def _features(options: tuple[AgentState, ...], rows: list[TrainingExample]) -> tuple[Floats, Floats]:
    choices = detailed_columns(options, [example.ask for example in rows])
    return feature_columns(choices), np.array([example.probabilities for example in rows])


def _evaluate(
    options: tuple[AgentState, ...], rows: list[TrainingExample], rule: RuleReasoner, kind: Kind, *, required: bool
) -> dict[str, Any]:
    about: dict[str, Any] = {
        "options": [option.value for option in options],
        "rows": len(rows),
        "answers": len({row.key for row in rows}),
        "personas": len({row.persona for row in rows}),
        "posts": len({row.text for row in rows}),
    }
    try:
        blocks = split_blocks(rows)
    except DataError:
        if required:
            raise
        return about | {"verdict": "not evaluated: too few personas or posts to hold some out"}
    columns, true = _features(options, rows)
    predicted = {name: np.zeros_like(true) for name in (*KINDS, "majority")}
    for known, tried in blocks:
        for name in KINDS:
            model = OptionModel(options=list(options), scores=fit_scores(name, columns[:, known], true[known]), rows=1)
            predicted[name][tried] = model.probabilities(columns[:, tried])
        predicted["majority"][tried] = true[known].mean(axis=0)
    predicted["rule"] = rule.probabilities(detailed_columns(options, [example.ask for example in rows]))
    predicted["llm"] = true
    scores = {name: _scores(true, probabilities) for name, probabilities in predicted.items()}
    scores["majority"]["auc"] = 0.5  # within a fold it predicts the same for all rows
    better = {name: _measure_gain(true, predicted[kind], predicted[name], blocks) for name in ("rule", "majority")}
    about |= {"blocks": len(blocks), "scores": scores, "better": better}
    floor, top = scores["llm"]["log_loss"], scores["majority"]["log_loss"]
    # the share of the LLM's dependence on rows, beyond the shares of its answers, that the model has too
    about["explained"] = (top - scores[kind]["log_loss"]) / (top - floor) if top - floor > 1e-9 else None
    about["calibration"] = {name: calibration(true, predicted[name]) for name in (*KINDS, "rule")}
    return about | {"verdict": _verdict(about, kind)}


def _scores(true: Floats, predicted: Floats) -> dict[str, float]:
    return {
        "log_loss": log_loss(true, predicted),
        "auc": auc(true, predicted),
        "js": js_divergence(true, predicted),
        "js_totals": js_totals(true, predicted),
        "calibration_error": calibration_error(true, predicted),
    }


def _measure_gain(true: Floats, predicted: Floats, other: Floats, blocks: list[Any]) -> dict[str, float]:
    """Return the gain in log loss over another prediction, and the number of blocks with a gain."""
    gains = [log_loss(true[rows], other[rows]) - log_loss(true[rows], predicted[rows]) for _, rows in blocks]
    loss, other_loss = log_loss(true, predicted), log_loss(true, other)
    return {
        "by": other_loss - loss,
        "share": 1 - loss / other_loss if other_loss else 0.0,
        "blocks": sum(g > 0 for g in gains),
    }


def _verdict(about: dict[str, Any], kind: str) -> str:
    better, scores = about["better"], about["scores"]
    gains = " and ".join(
        f"the {name} by {b['by']:+.3f} nats ({b['share']:+.0%}; better in {b['blocks']} of {about['blocks']} blocks)"
        for name, b in better.items()
    )
    if all(b["by"] > 0 for b in better.values()):
        return f"beats {gains} in log loss, on personas and posts it has never seen"
    span = scores["majority"]["log_loss"] - scores["llm"]["log_loss"]
    why = (
        "the LLM answers nearly the same in every row, so there is little to explain"
        if span < 0.01
        else f"these features do not generalise from {about['personas']} personas and {about['posts']} posts: give "
        "more runs, or more reasoner.archetypes and posts.circulating"
    )
    return f"does not beat both ({kind}: {gains}): {why}"
