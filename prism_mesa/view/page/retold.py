"""An agent's last round told once more: the round is run again from how it opened, with a trace over the agent's row.

Nobody is asked again: what an LLM answered is known, and what it wrote is taken from the model.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np

from prism_mesa.analysis.explain.report import round_lines
from prism_mesa.analysis.explain.trace import RoundOfAgent, Thought, TracedAgent
from prism_mesa.analysis.explain.why import Explanation
from prism_mesa.errors import told
from prism_mesa.llm import AskedRow
from prism_mesa.llm.dispatch.pending import PendingQuestion
from prism_mesa.llm.formats.request import RunPosition
from prism_mesa.llm.ledger.answers import AnswerStore
from prism_mesa.reasoner import Answer, PlacedQuestion, Reasoner, asks_llm
from prism_mesa.social.model import SocialModel
from prism_mesa.view.page.live_model import PageModel, forget


@dataclass(frozen=True)
class ToldRound:
    """An agent's last round: `shown` is None where it did nothing that is traced, `note` says why nothing is told."""

    lines: tuple[str, ...] = ()
    shown: RoundOfAgent | None = None
    note: str = ""


class _Recalled(Reasoner):
    """Answers as an LLM did in the round that is told again."""

    def __init__(self, asked: Reasoner, model: PageModel) -> None:
        store = AnswerStore(shared=model.ledger)
        super().__init__(asked.oracles, params=asked.params, store=store, rule=asked.rule, kind=asked.kind)
        self.batch_reasoner = asked.batch_reasoner
        self._answers = model.kept.answers

    def _prepare(self, question: PlacedQuestion) -> PendingQuestion[PlacedQuestion, Answer]:
        place = RunPosition(int(question.round), int(question.agent), int(question.tick))
        answer = self._answers.get((place.tick, place.agent), Answer(None, "fallback", "unknown"))
        options = question.question.options
        return PendingQuestion(question, "", options, place, (0.0, 0, 0), done=True, answer=answer)

    def close(self) -> None:
        """End the thread; the ledger is the model's."""
        self._stop()


def tell_round(model: PageModel, row: int) -> ToldRound:
    """Return what an agent did in the last round of a model, and why. The model is not changed."""
    try:
        twin = model.as_the_round_opened()
    except Exception as error:  # a user's model may hold what cannot be copied
        return ToldRound(note=f"It cannot be told why: {told(error)}.")
    if twin is None:
        return ToldRound(note=why_untold(model))
    asked, before = model.reasoner, twin.platform
    if asks_llm(asked):
        before.reasoner = _Recalled(asked, model)
    before.writer = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model has said them
            return _told(model, twin, row)
    except Exception as error:  # a user's guard may raise anything; the page has to live on
        return ToldRound(note=f"It cannot be told why: {told(error)}.")
    finally:
        twin.close()
        forget(before)


def _told(model: PageModel, twin: SocialModel, row: int) -> ToldRound:
    """Run the round of the twin of a model, and tell of an agent."""
    traced = TracedAgent(twin, row)
    SocialModel.step(twin)
    twin.platform.posts = model.posts  # with what was written in the round
    traced.hear_itself()
    if not traced.rounds:
        return ToldRound(note="It was not on the platform in this round.")
    shown = traced.rounds[-1]
    shown.thoughts = _thoughts(model, row)
    for move in shown.moves:
        if move.post is not None and (post := model.post(move.post.post_id, row)) is not None:
            move.post = replace(move.post, text=post.text, words=post.words)
    keys = {move.stored.key for move in shown.moves if move.stored is not None}
    explanation = Explanation(traced, model.reasoner.label, traced.rounds, shown, _askers(model, keys))
    return ToldRound(tuple(round_lines(explanation, shown)), shown)


def why_untold(model: PageModel) -> str:
    """Return why the last round of a model cannot be told; empty if it can."""
    if model.can_be_told:
        return ""
    if model.round < 0:
        return "No round has been run yet: press play (▶), or Step."
    if model.fault:
        return "The round failed; it cannot be told why."
    if model.uncopied:
        return f"It cannot be told why: the state before the round could not be kept ({model.uncopied})."
    return f"With {len(model.population):,} agents the state before each round is not kept: run it, and ask prism why."


def _thoughts(model: PageModel, row: int) -> list[Thought]:
    columns = model.kept.rows.get("thoughts")
    if columns is None:
        return []
    own = np.flatnonzero(columns["agent"] == row)
    said = (columns[name][own].tolist() for name in ("tick", "action", "event", "text"))
    return [Thought(*one) for one in zip(*said, strict=True)]


def _askers(model: PageModel, keys: set[str]) -> dict[str, list[AskedRow]]:
    """Return who got each of some answers so far."""
    found: dict[str, list[AskedRow]] = {key: [] for key in keys}
    for row in model.ledger.asked() if model.ledger is not None and keys else ():
        if row.key in found:
            found[row.key].append(row)
    return found
