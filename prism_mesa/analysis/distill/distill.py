"""Distill an LLM's choices in runs into a small model, and evaluate the model on new personas and posts.

Personas and posts are split into up to four folds each. Each block, a fold of personas with a fold of posts, is
predicted by a model fitted to the other personas and the other posts, so every row is evaluated once. The final model
is fitted to all rows. No LLM is asked, and the folders of the runs are only read.

Scores compare an LLM's probabilities (`observed`) with a model's (`predicted`). Both have shape (n, options), and each
row adds up to 1. The LLM itself is uncertain, so no model can have a better log loss or AUC than the LLM.
"""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from prism_mesa.analysis.distill.dataset import TrainingExample, TrainingSet, make_training_set, split_blocks
from prism_mesa.analysis.distill.fit import Kind, check_installed, fit_scores
from prism_mesa.arrays import Floats
from prism_mesa.domain import AgentState
from prism_mesa.errors import DataError, one_line
from prism_mesa.params import short_repr
from prism_mesa.reasoner import DistilledModel, RuleReasoner
from prism_mesa.reasoner.distilled import FORMAT, MODEL_FILE, OptionModel
from prism_mesa.reasoner.features import DECLARATION, NAMES, feature_columns
from prism_mesa.reasoner.rule import detailed_columns
from prism_mesa.runs.records.folder import new_folder
from prism_mesa.runs.run_files import run_folder

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
        return self.folder / MODEL_FILE

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
        runs: One or several results, or folders of runs, that used the same LLM.
        kind: The kind of model to write, `logistic` or `boosting`; both are evaluated.
        out: Parent folder; created if missing.
        on_round: Called after each repeated round.
        trust: As for `replay`.

    Raises:
        ConfigError: If scikit-learn is not installed.
        DataError: If the runs have too few answers, or are not trusted.
    """
    check_installed()
    if kind not in KINDS:
        raise DataError(f"--kind: {kind!r} is not one of {', '.join(KINDS)}")
    model = fit_model(make_training_set(_run_folders(runs), on_round, trust=trust), KINDS[KINDS.index(kind)])
    folder = new_folder(Path(out), "distilled")
    (folder / MODEL_FILE).write_bytes(model.text().encode())
    (folder / REPORT).write_text(json.dumps(model.report, indent=1) + "\n", encoding="utf-8")
    return Distilled(folder, model)


def _run_folders(runs: object) -> list[Path]:
    run_list = [runs] if isinstance(runs, str | os.PathLike) else runs
    run_list = run_list if isinstance(run_list, Iterable) and not isinstance(run_list, bytes) else []
    folders = list(map(run_folder, run_list))
    if not folders:
        wanted = "a RunResult or the folder of a run, or a list of at least one"
        raise DataError(f"runs: give {wanted}, not {short_repr(runs)}")
    return folders


def fit_model(examples: TrainingSet, kind: Kind) -> DistilledModel:
    """Return the model fitted to all examples, with its report; raise DataError for too few personas or posts."""
    choices = sorted(examples.by_options.items(), key=lambda item: -len(item[1]))
    rule = RuleReasoner(examples.rule)
    evaluations = [_evaluate(options, rows, rule, kind, required=i == 0) for i, (options, rows) in enumerate(choices)]
    return DistilledModel(
        format=FORMAT,
        kind=kind,
        features=list(NAMES),
        declaration=DECLARATION,
        persona="archetype" if examples.persona == "archetype" else "individual",
        archetypes=examples.archetypes,
        choices=[
            OptionModel(
                options=[option.value for option in options],
                scores=fit_scores(kind, *_features(options, rows)),
                rows=len(rows),
            )
            for options, rows in choices
        ],
        provenance=examples.provenance,
        report={"kind": kind, "choices": evaluations, "verdict": evaluations[0]["verdict"]},
    )


def _features(options: tuple[AgentState, ...], rows: list[TrainingExample]) -> tuple[Floats, Floats]:
    choices = detailed_columns(options, [example.ask for example in rows])
    return feature_columns(choices), np.array([example.probabilities for example in rows])


def _evaluate(
    options: tuple[AgentState, ...], rows: list[TrainingExample], rule: RuleReasoner, kind: Kind, *, required: bool
) -> dict[str, Any]:
    evaluation: dict[str, Any] = {
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
        return evaluation | {"verdict": "not evaluated: too few personas or posts to hold some out"}
    columns, observed = _features(options, rows)
    predicted = {name: np.zeros_like(observed) for name in (*KINDS, "majority")}
    for fit_rows, test_rows in blocks:
        for name in KINDS:
            fold_scores = fit_scores(name, columns[:, fit_rows], observed[fit_rows])
            model = OptionModel(options=[option.value for option in options], scores=fold_scores, rows=1)
            predicted[name][test_rows] = model.probabilities(columns[:, test_rows])
        predicted["majority"][test_rows] = observed[fit_rows].mean(axis=0)
    predicted["rule"] = rule.probabilities(detailed_columns(options, [example.ask for example in rows]))
    predicted["llm"] = observed
    scores = {name: _score_prediction(observed, probabilities) for name, probabilities in predicted.items()}
    scores["majority"]["auc"] = 0.5  # its prediction is the same for all rows of a fold
    gains = {name: _measure_gain(observed, predicted[kind], predicted[name], blocks) for name in ("rule", "majority")}
    evaluation |= {"blocks": len(blocks), "scores": scores, "better": gains}
    floor, ceiling = scores["llm"]["log_loss"], scores["majority"]["log_loss"]
    # the model's gain over the majority, as a share of the LLM's gain
    span = ceiling - floor
    evaluation["explained"] = (ceiling - scores[kind]["log_loss"]) / span if span > 1e-9 else None
    evaluation["calibration"] = {name: calibration(observed, predicted[name]) for name in (*KINDS, "rule")}
    return evaluation | {"verdict": _verdict(evaluation, kind)}


def _score_prediction(observed: Floats, predicted: Floats) -> dict[str, float]:
    return {
        "log_loss": log_loss(observed, predicted),
        "auc": auc(observed, predicted),
        "js": js_divergence(observed, predicted),
        "js_totals": js_totals(observed, predicted),
        "calibration_error": calibration_error(observed, predicted),
    }


def _measure_gain(observed: Floats, predicted: Floats, other: Floats, blocks: list[Any]) -> dict[str, float]:
    """Return by how much a prediction improves log loss over another, and the number of blocks that improve."""
    gains = [log_loss(observed[rows], other[rows]) - log_loss(observed[rows], predicted[rows]) for _, rows in blocks]
    loss, other_loss = log_loss(observed, predicted), log_loss(observed, other)
    share = 1 - loss / other_loss if other_loss else 0.0
    return {"by": other_loss - loss, "share": share, "blocks": sum(gain > 0 for gain in gains)}


def _verdict(facts: dict[str, Any], kind: str) -> str:
    gains, scores = facts["better"], facts["scores"]
    gains_text = " and ".join(
        f"the {name} by {gain['by']:+.3f} nats ({gain['share']:+.0%}; "
        f"better in {gain['blocks']} of {facts['blocks']} blocks)"
        for name, gain in gains.items()
    )
    if all(gain["by"] > 0 for gain in gains.values()):
        return f"beats {gains_text} in log loss, on personas and posts it has never seen"
    llm_gain = scores["majority"]["log_loss"] - scores["llm"]["log_loss"]
    reason = (
        "the LLM answers nearly the same in every row, so there is little to explain"
        if llm_gain < 0.01
        else f"these features do not generalise from {facts['personas']} personas and {facts['posts']} posts: "
        "give more runs, or more reasoner.archetypes and posts.circulating"
    )
    return f"does not beat both ({kind}: {gains_text}): {reason}"


MIN_PROBABILITY: Final = 1e-6  # floor for predicted probabilities in log loss


def log_loss(observed: Floats, predicted: Floats) -> float:
    """Return the mean of ``-sum(observed * ln(predicted))``, in nats: the entropy of `observed` if both are equal.

    >>> round(log_loss(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]])), 3)
    0.693
    """
    return float(-(observed * np.log(np.maximum(predicted, MIN_PROBABILITY))).sum(axis=1).mean())


def auc(observed: Floats, predicted: Floats) -> float:
    """Return the area under the ROC curve of the first option, for probabilities instead of outcomes.

    A row counts as positive with weight `observed[:, 0]`, and as negative with the remaining weight. The area is the
    probability that `predicted` is larger for a positive row than for a negative row; ties count half. With more than
    two options it is the mean over options, weighted by their probability. It is 0.5 if all rows are equal.
    """
    shares = observed.mean(axis=0)
    columns = range(1 if observed.shape[1] == 2 else observed.shape[1])
    areas = [(_auc(observed[:, k], predicted[:, k]), shares[k]) for k in columns]
    total = sum(share for _, share in areas)
    return float(sum(area * share for area, share in areas) / total) if total > 0 else 0.5


def _auc(chosen: Floats, score: Floats) -> float:
    _, rank = np.unique(score, return_inverse=True)
    positives, negatives = np.bincount(rank, chosen), np.bincount(rank, 1 - chosen)
    below = np.concatenate([[0.0], negatives.cumsum()[:-1]])
    pairs = positives.sum() * negatives.sum()
    return float((positives * (below + negatives / 2)).sum() / pairs) if pairs > 0 else 0.5


def js_divergence(observed: Floats, predicted: Floats) -> float:
    """Return the mean Jensen-Shannon divergence of the rows, in bits, from 0 (equal) to 1.

    Lin 1991, doi:10.1109/18.61115.
    """
    middle = (observed + predicted) / 2
    return float((_kl(observed, middle) + _kl(predicted, middle)).mean() / 2)


def _kl(p: Floats, q: Floats) -> Floats:
    ratio = np.where(p > 0, p, 1.0) / np.where(p > 0, q, 1.0)
    return np.asarray((p * np.log2(ratio)).sum(axis=1))


def js_totals(observed: Floats, predicted: Floats) -> float:
    """Return the Jensen-Shannon divergence of the mean probabilities over all rows, in bits."""
    return js_divergence(observed.mean(axis=0)[None], predicted.mean(axis=0)[None])


def calibration(observed: Floats, predicted: Floats, bins: int = 10) -> list[dict[str, float]]:
    """Return the mean probabilities of the first option in up to `bins` equal groups, ordered by `predicted`."""
    order = np.argsort(predicted[:, 0], kind="stable")
    groups = [group for group in np.array_split(order, bins) if len(group)]
    return [
        {"said": float(predicted[group, 0].mean()), "true": float(observed[group, 0].mean()), "n": len(group)}
        for group in groups
    ]


def calibration_error(observed: Floats, predicted: Floats) -> float:
    """Return the mean distance between prediction and observation over the groups of `calibration`, by size."""
    groups = calibration(observed, predicted)
    return sum(abs(row["said"] - row["true"]) * row["n"] for row in groups) / sum(row["n"] for row in groups)
