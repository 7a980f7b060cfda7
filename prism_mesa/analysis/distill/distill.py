"""Distilling: a small model of an LLM's choices is fitted to what it said in runs, and judged on what it never saw.

**Held out** are personas and posts at once: both are dealt into up to four folds, and the rows of a pair of folds are
predicted by a model that was fitted to the rows with neither these personas nor these posts. So every row is judged
once, and none by a model that knew whom it is about or what was read. What is kept is then fitted to all rows.

No LLM is asked, and the folders of the runs are only read.
"""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.analysis.distill.dataset import TrainingExample, TrainingSet, blocks_of, training_set_of
from prism_mesa.analysis.distill.fit import Kind, check_installed, fitted
from prism_mesa.analysis.distill.scores import (
    auc,
    calibration,
    calibration_error,
    js_divergence,
    js_of_totals,
    log_loss,
)
from prism_mesa.errors import DataError, one_line
from prism_mesa.params import shown
from prism_mesa.reasoner import DistilledModel, RuleReasoner
from prism_mesa.reasoner.distilled import FILE, FORMAT, OptionModel
from prism_mesa.reasoner.features import DECLARATION, NAMES, feature_columns
from prism_mesa.reasoner.rule import detailed_columns
from prism_mesa.runs.records.folder import new_folder
from prism_mesa.runs.run_files import folder_of
from prism_mesa.statechart import AgentState

type Floats = npt.NDArray[np.float64]

KINDS: Final[tuple[Kind, ...]] = ("logistic", "boosting")
REPORT: Final = "report.json"


@dataclass(frozen=True, repr=False)
class Distilled:
    """What came of distilling; `folder` holds the model's file and the report."""

    folder: Path
    model: DistilledModel

    @property
    def file(self) -> Path:
        """What `reasoner.distilled` is to name."""
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
    """Fit a model to what an LLM said in runs, and keep it with its report in ``out/distilled-<time>``.

    Args:
        runs: Results or folders of runs in which one LLM was asked; a single one as it is.
        kind: What is kept; both are judged.
        out: Parent folder; made if missing.
        on_round: Called after each round of the runs that was repeated.
        trust: As for `replay`.

    Raises:
        ConfigError: If scikit-learn is not installed.
        DataError: If the runs do not hold what is needed, or are not trusted.
    """
    check_installed()
    kept = next((known for known in KINDS if known == kind), None)
    if kept is None:
        raise DataError(f"--kind: {kind!r} is none of {', '.join(KINDS)}")
    model = model_of(training_set_of(_folders_of(runs), on_round, trust=trust), kept)
    folder = new_folder(Path(out), "distilled")
    (folder / FILE).write_bytes(model.text().encode())
    (folder / REPORT).write_text(json.dumps(model.report, indent=1) + "\n", encoding="utf-8")
    return Distilled(folder, model)


def _folders_of(runs: object) -> list[Path]:
    """Return the folders of the runs that a user gave: one, or several."""
    given = [runs] if isinstance(runs, str | os.PathLike) else runs
    folders = [folder_of(run) for run in given] if isinstance(given, Iterable) and not isinstance(given, bytes) else []
    if not folders:
        raise DataError(f"runs: give a RunResult or the folder of a run, or a list of at least one, not {shown(runs)}")
    return folders


def model_of(examples: TrainingSet, kind: Kind) -> DistilledModel:
    """Return the model fitted to all examples, with its report.

    Raises:
        DataError: If there are too few personas or posts to hold some out.
    """
    sets = sorted(examples.by_options.items(), key=lambda item: -len(item[1]))
    rule = RuleReasoner(examples.rule)
    judged = [_judged(options, rows, rule, kind, required=i == 0) for i, (options, rows) in enumerate(sets)]
    return DistilledModel(
        format=FORMAT,
        kind=kind,
        features=list(NAMES),
        declaration=DECLARATION,
        persona="archetype" if examples.persona == "archetype" else "individual",
        archetypes=examples.archetypes,
        choices=[_whole(options, rows, kind) for options, rows in sets],
        provenance=examples.provenance,
        report={"kind": kind, "choices": judged, "verdict": judged[0]["verdict"]},
    )


def _features_of(options: tuple[AgentState, ...], rows: list[TrainingExample]) -> tuple[Floats, Floats]:
    choices = detailed_columns(options, [example.ask for example in rows])
    return feature_columns(choices), np.array([example.probabilities for example in rows])


def _whole(options: tuple[AgentState, ...], rows: list[TrainingExample], kind: Kind) -> OptionModel:
    return OptionModel(options=list(options), scores=fitted(kind, *_features_of(options, rows)), rows=len(rows))


def _judged(
    options: tuple[AgentState, ...], rows: list[TrainingExample], rule: RuleReasoner, kind: Kind, *, required: bool
) -> dict[str, Any]:
    """Return how well models of one choice do on rows that were held out."""
    about: dict[str, Any] = {"options": [option.value for option in options], "rows": len(rows)}
    about |= {"answers": len({r.key for r in rows}), "personas": len({r.persona for r in rows})}
    about |= {"posts": len({r.text for r in rows})}
    try:
        blocks = blocks_of(rows)
    except DataError:
        if required:
            raise
        return about | {"verdict": "not judged: too few personas or posts to hold some out"}
    columns, true = _features_of(options, rows)
    said = {name: np.zeros_like(true) for name in (*KINDS, "majority")}
    for known, tried in blocks:
        for name in KINDS:
            model = OptionModel(options=list(options), scores=fitted(name, columns[:, known], true[known]), rows=1)
            said[name][tried] = model.probabilities(columns[:, tried])
        said["majority"][tried] = true[known].mean(axis=0)
    said["rule"] = rule.probabilities(detailed_columns(options, [example.ask for example in rows]))
    said["llm"] = true
    scores = {name: _scores(true, given) for name, given in said.items()}
    scores["majority"]["auc"] = 0.5  # it says the same of all; what differs between folds is no knowledge
    better = {name: _better(true, said[kind], said[name], blocks) for name in ("rule", "majority")}
    about |= {"blocks": len(blocks), "scores": scores, "better": better}
    about["explained"] = _explained(scores, kind)
    about["calibration"] = {name: calibration(true, said[name]) for name in (*KINDS, "rule")}
    return about | {"verdict": _verdict(about, kind)}


def _scores(true: Floats, said: Floats) -> dict[str, float]:
    return {
        "log_loss": log_loss(true, said),
        "auc": auc(true, said),
        "js": js_divergence(true, said),
        "js_totals": js_of_totals(true, said),
        "calibration_error": calibration_error(true, said),
    }


def _better(true: Floats, said: Floats, other: Floats, blocks: list[Any]) -> dict[str, float]:
    """Return by how much log loss is lower than that of `other`, and in how many blocks it is."""
    gains = [log_loss(true[rows], other[rows]) - log_loss(true[rows], said[rows]) for _, rows in blocks]
    own, others = log_loss(true, said), log_loss(true, other)
    return {"by": others - own, "share": 1 - own / others if others else 0.0, "blocks": sum(g > 0 for g in gains)}


def _explained(scores: dict[str, dict[str, float]], kind: str) -> float | None:
    """Return how much of what the LLM makes of a row, beyond the shares of its answers, the model says too."""
    floor, top = scores["llm"]["log_loss"], scores["majority"]["log_loss"]
    return (top - scores[kind]["log_loss"]) / (top - floor) if top - floor > 1e-9 else None


def _verdict(about: dict[str, Any], kind: str) -> str:
    """Return in one sentence whether the model beats the rule and the majority, by how much, or why not."""
    better, scores = about["better"], about["scores"]
    told = " and ".join(
        f"the {name} by {b['by']:+.3f} nats ({b['share']:+.0%}; better in {b['blocks']} of {about['blocks']} blocks)"
        for name, b in better.items()
    )
    if all(b["by"] > 0 for b in better.values()):
        return f"beats {told} in log loss, on personas and posts it has never seen"
    span = scores["majority"]["log_loss"] - scores["llm"]["log_loss"]
    why = (
        "the LLM says nearly the same of every row, so there is next to nothing to explain"
        if span < 0.01
        else f"what the LLM makes of {about['personas']} personas and {about['posts']} posts does not carry over to "
        "others by these features: give more runs, or more reasoner.archetypes and posts.circulating"
    )
    return f"does not beat both ({kind}: {told}): {why}"
