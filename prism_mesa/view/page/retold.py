"""An agent's last round told once more: the round is run again from how it opened, with a trace over the agent's row.

Nobody is asked again: what an LLM answered is known, and what it wrote is taken from the model.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from prism_mesa.analysis.explain.report import round_lines
from prism_mesa.analysis.explain.trace import RoundOfAgent, Thought, TracedAgent
from prism_mesa.analysis.explain.why import Explanation
from prism_mesa.errors import told
from prism_mesa.llm import AskedRow
from prism_mesa.llm.answer_store import AnswerStore
from prism_mesa.llm.dispatcher import PendingQuestion
from prism_mesa.llm.request import RunPosition
from prism_mesa.reasoner import Answer, PlacedQuestion, Reasoner, asks_llm
from prism_mesa.social.model import SocialModel
from prism_mesa.view.page.live_model import PageModel, forget


@dataclass(frozen=True)
class ToldRound:
    """An agent's last round: `shown` is None where it did nothing that is traced, `note` says why nothing is told."""

    lines: tuple[str, ...] = ()
    shown: RoundOfAgent | None = None
    note: str = ""


@dataclass(frozen=True)
class _RecalledChoice:
    """The kind of question whose answer is known from the round that is told again (see `gateway.Questions`)."""

    answers: Mapping[tuple[int, int], Answer]

    def prepare(self, question: PlacedQuestion) -> PendingQuestion[PlacedQuestion, Answer]:
        place = RunPosition(int(question.round), int(question.agent), int(question.tick))
        answer = self.answers.get((place.tick, place.agent), Answer(None, "fallback", "unknown"))
        options = question.question.options
        return PendingQuestion(question, "", options, place, (0.0, 0, 0), done=True, answer=answer)


def _recalling(asked: Reasoner, model: PageModel) -> Reasoner:
    """Return a reasoner that answers as an LLM did in the round that is told again."""
    store = AnswerStore(shared=model.ledger)
    reasoner = Reasoner(asked.oracles, params=asked.params, store=store, rule=asked.rule, kind=asked.kind)
    reasoner.batch_reasoner = asked.batch_reasoner
    reasoner.questions = cast("Any", _RecalledChoice(model.kept.answers))
    return reasoner


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
        before.reasoner = _recalling(asked, model)
    before.writer = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model has said them
            return _told(model, twin, row)
    except Exception as error:  # a user's guard may raise anything; the page has to live on
        return ToldRound(note=f"It cannot be told why: {told(error)}.")
    finally:
        if before.reasoner is not asked and asks_llm(before.reasoner):
            before.reasoner.store.shared = None  # the ledger is the model's, which closes it
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
