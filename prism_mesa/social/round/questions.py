"""Open choices written out as questions, one for each agent."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from prism_mesa.domain import Post
from prism_mesa.reasoner import Persona, Question
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns, PostColumns
from prism_mesa.social.state.attributes import in_words
from prism_mesa.social.state.population import NO_POST, Rows, unpacked_move
from prism_mesa.social.world.profiles import personality
from prism_mesa.statechart import STATES, AgentState

MOST_HISTORY: Final = 5


def questions(
    agents: AgentColumns, posts: PostColumns, triggers: Sequence[str], options: Sequence[tuple[AgentState, ...]]
) -> list[Question]:
    """Return what each of `agents` has to decide; all arguments have one length.

    It is what `reasoner.question_of` reads from each `SocialAgent`, from columns: some twenty times faster. Where
    `reasoner.persona` is `archetype` the persona is that of the agent's kind, with the agent's own numbers.
    """
    platform = agents.platform
    states = [STATES[code] for code in platform.population.state[agents.rows].tolist()]
    archetypes_of_rows = _archetypes_of(platform, agents.rows)
    whole = archetypes_of_rows is None
    histories = _histories(platform, agents.rows) if whole else [()] * len(states)
    matches = platform.prompt_interests.matches(agents.rows, posts.posts).tolist()
    columns = (
        _personas(agents, archetypes_of_rows),
        states,
        triggers,
        options,
        _posts(posts, whole=whole),
        histories,
        matches,
    )
    return [Question(*row) for row in zip(*columns, strict=True)]


def as_archetype(question: Question, agents: AgentColumns) -> Question:
    """Return a question of one agent (`agents` of length 1) as its kind puts it, where kinds are what is asked."""
    told = agents.platform.prompt_interests
    archetypes_of_rows = _archetypes_of(agents.platform, agents.rows)
    if archetypes_of_rows is None:
        return replace(question, match=told.match(question))
    [persona] = _personas(agents, archetypes_of_rows)
    own = question.persona
    numbers = {name: getattr(own, name) for name in ("traits", "propensities", "low", "high")}
    posts, post = agents.platform.posts, question.post
    if post is not None and 0 <= post.post_id < len(posts):  # kinds are asked about a text once, in whatever words
        [shown], text = posts.shown([post.post_id]), posts.texts[posts.text_id[post.post_id]]
        post = replace(post, text=post.text.replace(shown, text))
    question = replace(question, persona=replace(persona, **numbers), history=(), post=post)
    return replace(question, match=told.match(question))


def _archetypes_of(platform: Platform, rows: Rows) -> list[int] | None:
    if platform.archetypes is None:
        return None
    archetypes_of_rows: list[int] = platform.archetypes.of(platform.population, rows).tolist()
    return archetypes_of_rows


def _personas(agents: AgentColumns, archetypes_of_rows: list[int] | None) -> list[Persona]:
    platform, rows = agents.platform, agents.rows
    population = platform.population
    traits = population.traits[rows]
    columns = (
        map(tuple, traits.tolist()),
        map(tuple, population.propensities[rows].tolist()),
        agents.column("low_threshold").tolist(),
        agents.column("high_threshold").tolist(),
    )
    if archetypes_of_rows is not None and platform.archetypes is not None:
        own = platform.archetypes
        words = [own.interests[kind] for kind in archetypes_of_rows]
        characters = [own.personality[kind] for kind in archetypes_of_rows]
        names = [f"a user of kind {kind}" for kind in archetypes_of_rows]
    else:
        words = platform.topics.words_of(population.interests[rows])
        characters = personalities(platform, rows)
        names = [population.names[row] for row in rows.tolist()]
        archetypes_of_rows = [-1] * len(rows)
    return [Persona(*row) for row in zip(names, words, characters, *columns, archetypes_of_rows, strict=True)]


def personalities(platform: Platform, rows: Rows) -> list[str]:
    """Return what prompts tell of agents: their personality, and those of their attributes that are told."""
    people = platform.population
    told = in_words(platform.attributes.known.agents, people.attributes[rows])
    return ["; ".join(filter(None, (personality(t), own))) for t, own in zip(people.traits[rows], told, strict=True)]


def _posts(posts: PostColumns, *, whole: bool) -> list[Post | None]:
    """Return the posts as their readers see them; without the words around a reply's text unless `whole`."""
    platform = posts.platform
    found: list[Post | None] = [None] * len(posts.posts)
    there = np.flatnonzero(posts.posts != NO_POST)
    at_hand = posts.take(there)
    if not len(there):
        return found
    views = platform.views(at_hand.readers, at_hand.posts)
    texts = None if whole else [platform.posts.texts[i] for i in platform.posts.text_id[at_hand.posts].tolist()]
    for place, (i, view) in enumerate(zip(there.tolist(), views, strict=True)):
        found[i] = view if texts is None else replace(view, text=texts[place])
    return found


def _histories(platform: Platform, rows: Rows) -> list[tuple[str, ...]]:
    told: dict[int, str] = {}
    histories = []
    for row in rows.tolist():
        moves = platform.history.last_moves(row, MOST_HISTORY)
        for move in moves:
            if move not in told:
                trigger, source, target = unpacked_move(move)
                told[move] = f"{source.value} -> {target.value} ({platform.chart.triggers[trigger]})"
        histories.append(tuple(told[move] for move in moves))
    return histories
