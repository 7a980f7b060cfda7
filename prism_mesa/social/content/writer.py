"""The words of replies, reshares and posts: none, sentences from templates, or texts by an LLM.

Words of replies and reshares go to the round's `Events`; words of posts go to the texts of `posts`.
"""

from typing import Final

import numpy as np

from prism_mesa.arrays import Rows
from prism_mesa.domain import ACTIONS, BIG_FIVE, TRAIT_MEANS
from prism_mesa.errors import ConfigError
from prism_mesa.llm.text import clean_text
from prism_mesa.reasoner import AnyReasoner
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform, Writer
from prism_mesa.social.round.engagements import new_engagements
from prism_mesa.social.state.events import TemplateTexts, engagement_keys
from prism_mesa.social.state.posts import WORDS_CAP

TEXTS_SHARE: Final = 0.5
"""Maximum share of the reasoner's remaining limits that texts may use while choices are still open in the round."""

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
"""Sentences about a topic for `content: template`, by action and tone."""

_ALL_SENTENCES: Final = [sentence for sentences in SENTENCES.values() for sentence in sentences]
_N_PER_KIND: Final = len(_ALL_SENTENCES) // len(SENTENCES)
_NO_TOPIC: Final = "this"
_AGREEABLE: Final = BIG_FIVE.index("agreeableness")


def choose_writer(params: SocialParams, reasoner: AnyReasoner) -> tuple[Writer, str]:
    """Return the LLM that writes (or None), and a note if a configured LLM is missing.

    Raises:
        ConfigError: If `content` is llm, and there is no LLM or the seconds of a turn are limited.
    """
    if params.content != "llm":
        return None, ""
    from prism_mesa.reasoner import make_writer

    deliberation = params.deliberation
    if deliberation.max_seconds is not None:
        raise ConfigError(
            "deliberation.max_seconds: not allowed with content: llm, because time limits are not repeatable; set "
            "deliberation.max_tokens instead, and max_seconds only for interviews of the run"
        )
    return make_writer(
        params.reasoner,
        reasoner,
        temperature=deliberation.temperature,
        max_answer_tokens=deliberation.max_answer_tokens,
    )


def write_words(platform: Platform) -> None:
    """Add words to the round's replies and reshares that have no words from a script."""
    if platform.params.content == "none":
        return
    wordless = platform.events.wordless(*new_engagements(platform))
    if platform.writer is None:
        platform.events.template_texts = _from_templates(platform, *wordless)
        return
    from prism_mesa.social.content.drafts import draft_texts

    with platform.writer.budget.limited_to(platform.round, TEXTS_SHARE, 1.0):  # all choices of the round have been made
        words = draft_texts(platform, platform.writer, *wordless)
    keys = zip(*(column.tolist() for column in wordless[1:]), strict=True)
    platform.events.texts |= {key: text for key, text in zip(keys, words, strict=True) if text}


def write_own_posts(platform: Platform, authors: Rows, texts: Rows) -> Rows:
    """Write the agents' own posts, and return the ids of their texts.

    The LLM writes about the drawn `texts` of the corpus. Without an LLM, or if it fails, agents post `texts`.
    """
    if platform.writer is None or not len(authors):
        return texts
    from prism_mesa.social.content.drafts import draft_posts

    with platform.writer.budget.limited_to(platform.round, TEXTS_SHARE, TEXTS_SHARE):
        words = draft_posts(platform, platform.writer, authors, texts)
    written_rows = np.flatnonzero(np.array([bool(text) for text in words]))
    text_ids = texts.astype(np.int64)
    if len(written_rows):
        new_texts = [words[i] for i in written_rows.tolist()]
        text_ids[written_rows] = platform.posts.add_texts(new_texts, texts[written_rows].tolist())
    return text_ids


def _from_templates(platform: Platform, tick: Rows, agent: Rows, post: Rows, action: Rows) -> TemplateTexts:
    agreeable = platform.population.traits[agent, _AGREEABLE] >= TRAIT_MEANS[_AGREEABLE]
    kind = (action == ACTIONS.index("reshare")) * 2 + agreeable
    draws = platform.streams.integers("template", agent, _N_PER_KIND, round_=platform.round, tick=tick)
    sentence = kind * _N_PER_KIND + draws
    names = [clean_text(name, WORDS_CAP) for name in platform.topics.names] + [_NO_TOPIC]
    codes, inverse = np.unique(sentence * len(names) + _nearest_topics(platform, post), return_inverse=True)
    pairs = [(_ALL_SENTENCES[i // len(names)], names[i % len(names)]) for i in codes.tolist()]
    texts = [clean_text(sentence.format(topic=name), WORDS_CAP) for sentence, name in pairs]
    keys = engagement_keys(agent, post, action)
    order = np.argsort(keys)
    return TemplateTexts(texts, keys[order], inverse[order].astype(np.int32))


def _nearest_topics(platform: Platform, post: Rows) -> Rows:
    """Return the index in `Topics.names` of the name nearest to each post; the number of names means no name."""
    texts, inverse = np.unique(platform.posts.text_id[post], return_inverse=True)
    nearest = platform.topics.nearest_name(platform.posts.text_vectors[texts]).astype(np.int64)
    return np.where(nearest < 0, len(platform.topics.names), nearest)[inverse]
