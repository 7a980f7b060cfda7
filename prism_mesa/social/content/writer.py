"""Words of replies, reshares and posts: none, sentences from a table, or texts by an LLM.

Words of replies and reshares go to the round's `Events`; those of posts become texts of `posts`.
"""

from typing import Final

import numpy as np

from prism_mesa.domain import ACTIONS, BIG_FIVE, TRAIT_MEANS
from prism_mesa.errors import ConfigError
from prism_mesa.llm.text import plain
from prism_mesa.reasoner import AnyReasoner
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform, Writer
from prism_mesa.social.round.engagements import counted_engagements
from prism_mesa.social.state.events import TemplateTexts, engagement_keys
from prism_mesa.social.state.population import Rows
from prism_mesa.social.state.posts import WORDS_CAP

TEXTS_SHARE: Final = 0.5
"""Share of what is left of the reasoner's limits that texts may use before the choices of a round."""

SENTENCES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("reply", "doubting"): (
        "I doubt that, {topic} is not that simple.",
        "Where did you read this about {topic}?",
        "That is not my experience with {topic} at all.",
        "There is more to {topic} than that.",
    ),
    ("reply", "friendly"): (
        "I feel the same about {topic}.",
        "Well said, {topic} matters to me too.",
        "Thank you, I needed to hear that about {topic}.",
        "Good point about {topic}, tell us more.",
    ),
    ("reshare", "doubting"): (
        "Look what people say about {topic} now.",
        "I am not so sure that this is right about {topic}.",
        "Judge for yourselves whether {topic} is like that.",
        "Is this really where {topic} is going?",
    ),
    ("reshare", "friendly"): (
        "Worth reading if you care about {topic}.",
        "This is what I like about {topic}.",
        "More of this about {topic}, please.",
        "Passing this on to everyone who likes {topic}.",
    ),
}
"""Sentences of `content: template` about a topic, by action and tone."""

_ALL: Final = [sentence for sentences in SENTENCES.values() for sentence in sentences]
_N_EACH: Final = len(_ALL) // len(SENTENCES)
_NO_TOPIC: Final = "this"
_AGREEABLE: Final = BIG_FIVE.index("agreeableness")


def choose_writer(params: SocialParams, reasoner: AnyReasoner) -> tuple[Writer, str]:
    """Return the LLM that writes, or None, and why a configured one is missing.

    Raises:
        ConfigError: If `content` is llm, and there is no LLM or a turn's seconds are limited.
    """
    if params.content != "llm":
        return None, ""
    from prism_mesa.reasoner import make_writer

    deliberation = params.deliberation
    if deliberation.max_seconds is not None:
        raise ConfigError(
            "deliberation.max_seconds: not allowed with content: llm, since clocks are not repeatable; set "
            "deliberation.max_tokens, and seconds only for interviews of the run"
        )
    return make_writer(
        params.reasoner,
        reasoner,
        temperature=deliberation.temperature,
        max_answer_tokens=deliberation.max_answer_tokens,
    )


def write(platform: Platform) -> None:
    """Add words to the replies and reshares of the round that have none from a script."""
    if platform.params.content == "none":
        return
    unwritten = platform.events.unwritten(*counted_engagements(platform))
    if platform.writer is None:
        platform.events.template_texts = _from_templates(platform, *unwritten)
        return
    from prism_mesa.social.content.drafts import draft_texts

    with platform.writer.budget.limited_to(platform.round, TEXTS_SHARE, 1.0):  # all choices of the round have been made
        words = draft_texts(platform, platform.writer, *unwritten)
    keys = zip(*(column.tolist() for column in unwritten[1:]), strict=True)
    platform.events.texts |= {key: text for key, text in zip(keys, words, strict=True) if text}


def own_posts(platform: Platform, authors: Rows, texts: Rows) -> Rows:
    """Return the ids of the texts of agents' own posts.

    They are the LLM's texts about the drawn `texts` of the corpus. Without an LLM, or if it fails, they are `texts`.
    """
    if platform.writer is None or not len(authors):
        return texts
    from prism_mesa.social.content.drafts import draft_posts

    with platform.writer.budget.limited_to(platform.round, TEXTS_SHARE, TEXTS_SHARE):
        words = draft_posts(platform, platform.writer, authors, texts)
    written = np.flatnonzero(np.array([bool(text) for text in words]))
    text_ids = texts.astype(np.int64)
    if len(written):
        text_ids[written] = platform.posts.add_texts([words[i] for i in written.tolist()], texts[written].tolist())
    return text_ids


def _from_templates(platform: Platform, tick: Rows, agent: Rows, post: Rows, action: Rows) -> TemplateTexts:
    """Draw a sentence for each engagement, by agent and tick, about the topic nearest to the post."""
    agreeable = platform.population.traits[agent, _AGREEABLE] >= TRAIT_MEANS[_AGREEABLE]
    kind = (action == ACTIONS.index("reshare")) * 2 + agreeable
    sentence = kind * _N_EACH + platform.streams.integers("template", agent, _N_EACH, round_=platform.round, tick=tick)
    names = [plain(name, WORDS_CAP) for name in platform.topics.names] + [_NO_TOPIC]
    codes, inverse = np.unique(sentence * len(names) + _nearest_topics(platform, post), return_inverse=True)
    texts = [plain(_ALL[i // len(names)].format(topic=names[i % len(names)]), WORDS_CAP) for i in codes.tolist()]
    keys = engagement_keys(agent, post, action)
    order = np.argsort(keys)
    return TemplateTexts(texts, keys[order], inverse[order].astype(np.int32))


def _nearest_topics(platform: Platform, post: Rows) -> Rows:
    """Return the index in `Topics.names` of the name nearest to each post, or the number of names for none."""
    texts, inverse = np.unique(platform.posts.text_id[post], return_inverse=True)
    nearest = platform.topics.nearest_name(platform.posts.text_vectors[texts]).astype(np.int64)
    return np.where(nearest < 0, len(platform.topics.names), nearest)[inverse]
