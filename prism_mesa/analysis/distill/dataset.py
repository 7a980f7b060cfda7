"""Training examples: an LLM's answers in runs, which are repeated from their ledgers."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from prism_mesa.arrays import Ints
from prism_mesa.domain import AgentState
from prism_mesa.errors import DataError
from prism_mesa.reasoner import Answer, PlacedQuestion, Question, Reasoner
from prism_mesa.runs.manifest import Manifest, read_run
from prism_mesa.runs.recorded import recorded_config
from prism_mesa.runs.rounds import without_repeated_warnings
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.posts import NO_PARENT
from prism_mesa.streams import digest64

MAX_FOLDS: Final = 4


@dataclass(frozen=True)
class TrainingExample:
    """An answer of the LLM; `persona` and `text` decide in which folds it is held out.

    Attributes:
        probabilities: The probability of each option; 0 or 1 for a plain choice.
        persona: The interests in the prompt, or the name without interests.
        text: The first text in the post's thread.
    """

    ask: PlacedQuestion
    probabilities: tuple[float, ...]
    key: str
    persona: str
    text: str


@dataclass(frozen=True)
class TrainingSet:
    """All answers of the LLM in some runs.

    Attributes:
        by_options: The examples by their options, one for each decision of an agent.
        persona: `individual` or `archetype`; `archetypes` is the number of archetypes.
        provenance: The runs, the LLM, and counts of decisions, answers, personas and posts.
        rule: The weights of the rule, for comparison.
    """

    by_options: dict[tuple[AgentState, ...], list[TrainingExample]]
    persona: str
    archetypes: int
    provenance: dict[str, Any]
    rule: Any


def completed_rounds(run_dir: Path) -> int:
    """Return the number of completed rounds of a run; raise DataError if this is unknown or the run has no LLM."""
    run = read_run(run_dir)
    manifest = run.manifest
    if manifest.is_economy:
        raise DataError(f"{run_dir} is a run of nations, which has no choices to learn")
    if manifest.llm is None:
        remedy = "give a run with an LLM (prism run reasoner.kind=embedded)"
        raise DataError(f"{run_dir}: decided by {manifest.decided_by}: {remedy}")
    if not manifest.summary.rounds:
        raise DataError(f"{run_dir}: no round is known to be complete (status {run.state}){run.advice}")
    return manifest.summary.rounds


def make_training_set(
    run_dirs: Sequence[str | Path], on_round: Callable[[], object] = lambda: None, *, trust: bool = False
) -> TrainingSet:
    """Repeat runs from their ledgers, and return the answers of their common LLM.

    Raises DataError if the runs differ in their LLM, or if a run has no LLM or no answers, or is not trusted, and
    OracleError if a ledger lacks an answer.
    """
    folders = [Path(run_dir) for run_dir in run_dirs]
    manifests = [read_run(folder).manifest for folder in folders if completed_rounds(folder)]
    llm_facts = {key: _common_value(folders, manifests, key) for key in ("name", "digest", "answer", "persona")}
    examples = [example for folder in folders for example in _read_examples(folder, on_round, trust=trust)]
    if not examples:
        raise DataError(f"{folders[0]}: no LLM answered an open choice, so there is nothing to learn")
    by_options: dict[tuple[AgentState, ...], list[TrainingExample]] = {}
    for example in examples:
        by_options.setdefault(example.ask.question.options, []).append(example)
    config = recorded_config(folders[0], trust=trust)
    provenance = {
        "llm": llm_facts["name"],
        "llm_digest": llm_facts["digest"],
        "answer": llm_facts["answer"],
        "runs": [_run_provenance(folder, manifest) for folder, manifest in zip(folders, manifests, strict=True)],
        "decisions": len(examples),
        "answers": len({example.key for example in examples}),
        "personas": len({example.persona for example in examples}),
        "posts": len({example.text for example in examples}),
    }
    return TrainingSet(by_options, llm_facts["persona"], config.reasoner.archetypes, provenance, config.reasoner.rule)


def _common_value(folders: list[Path], manifests: list[Manifest], key: str) -> Any:
    first, *_ = values = [getattr(manifest.llm, key) for manifest in manifests]
    for folder, value in zip(folders, values, strict=True):
        if value != first:
            fault = f"the LLM's {key} is {value}, but {first} in {folders[0]}"
            raise DataError(f"{folder}: {fault}: distill the runs separately")
    return first


def _run_provenance(folder: Path, manifest: Manifest) -> dict[str, Any]:
    config = {name: value for name, value in (manifest.config or {}).items() if name != "name"}
    digest = f"{digest64(repr(sorted(config.items(), key=lambda item: item[0]))):016x}"
    return {"run": folder.resolve().name, "seed": manifest.seed, "config": digest}


@without_repeated_warnings()
def _read_examples(folder: Path, on_round: Callable[[], object], *, trust: bool) -> list[TrainingExample]:
    examples: list[TrainingExample] = []

    def add_example(ask: PlacedQuestion, answer: Answer) -> None:
        if answer.probabilities and len(ask.question.options) > 1:
            persona = "; ".join(sorted(ask.question.persona.interests)) or ask.question.persona.name
            text = _first_text(model, ask.question)
            examples.append(TrainingExample(ask, answer.probabilities, answer.key, persona, text))

    model = SocialModel(recorded_config(folder, trust=trust))
    with closing(model):
        if isinstance(model.reasoner, Reasoner):
            model.reasoner.on_answer = add_example
        for _ in range(completed_rounds(folder)):
            model.step()
            on_round()
    return sorted(examples, key=lambda example: (example.ask.round, example.ask.tick, example.ask.agent))


def _first_text(model: SocialModel, question: Question) -> str:
    """Return the first text in a post's thread, whose subject replies and comments share."""
    if question.post is None:
        return ""
    posts, post = model.posts, question.post.post_id
    if not 0 <= post < len(posts):
        return question.post.text
    while posts.parent[post] != NO_PARENT:
        post = int(posts.parent[post])
    return posts.texts[int(posts.text_id[post])]


def assign_folds(groups: Sequence[str]) -> Ints:
    """Return the fold of each row's group, from 0 to `MAX_FOLDS` - 1; folds have similar numbers of rows.

    Each group goes to the smallest fold so far, largest group first. The order of rows does not matter.
    """
    names, inverse, sizes = np.unique(np.array(groups, dtype=object), return_inverse=True, return_counts=True)
    folds = np.zeros(len(names), np.int64)
    fold_sizes = [0] * min(MAX_FOLDS, len(names))
    for i in sorted(range(len(names)), key=lambda i: (-sizes[i], digest64(str(names[i])))):
        folds[i] = fold_sizes.index(min(fold_sizes))
        fold_sizes[folds[i]] += int(sizes[i])
    return np.asarray(folds[inverse])


def split_blocks(examples: Sequence[TrainingExample]) -> list[tuple[Ints, Ints]]:
    """Return pairs of rows to fit and rows to test, which share no persona and no post; each row is tested once.

    Raises DataError if there are too few personas or posts.
    """
    personas, texts = (assign_folds([getattr(example, name) for example in examples]) for name in ("persona", "text"))
    blocks = []
    for persona_fold in range(int(personas.max()) + 1):
        for text_fold in range(int(texts.max()) + 1):
            test_rows = np.flatnonzero((personas == persona_fold) & (texts == text_fold))
            fit_rows = np.flatnonzero((personas != persona_fold) & (texts != text_fold))
            if len(test_rows) and not len(fit_rows):
                counts = f"personas ({len(set(personas.tolist()))}) or posts ({len(set(texts.tolist()))})"
                raise DataError(f"the ledgers have too few {counts} to hold some out: give more runs or rounds")
            if len(test_rows):
                blocks.append((fit_rows, test_rows))
    return blocks
