"""Who words what agents publish: nobody, sentences from a table, or an LLM.

The words of replies and reshares are noted in the round's `Events`, for the commit; those of agents' own posts are
texts of the table of posts.
"""

from typing import Final

import numpy as np

from prism_mesa.domain import ACTIONS, BIG_FIVE, TRAIT_MEANS
from prism_mesa.errors import ConfigError
from prism_mesa.llm.text import plain
from prism_mesa.reasoner import AnyReasoner
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform, Writer
from prism_mesa.social.round.engagements import counted
from prism_mesa.social.state.engagements import engagement_keys
from prism_mesa.social.state.events import TemplateTexts
from prism_mesa.social.state.population import Rows
from prism_mesa.social.state.posts import WORDS_CAP

TEXTS_SHARE: Final = 0.5
"""Share of what the reasoner's limits have left that texts may take while choices are still to be made."""

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
"""What `content: template` lets agents say about a topic, by action and by how agreeable they are."""

_TABLE: Final = [sentence for sentences in SENTENCES.values() for sentence in sentences]
_EACH: Final = len(_TABLE) // len(SENTENCES)
_NO_TOPIC: Final = "this"
_AGREEABLE: Final = BIG_FIVE.index("agreeableness")


def choose_writer(params: SocialParams, reasoner: AnyReasoner) -> tuple[Writer, str]:
    """Return the LLM that writes, if one is to, and why it is not there although one was asked for, in words.

    Raises:
        ConfigError: If `content` is llm and the parameters name no LLM, or limit a turn's seconds.
    """
    if params.content != "llm":
        return None, ""
    from prism_mesa.reasoner import make_writer

    own = params.deliberation
    if own.max_seconds is not None:
        raise ConfigError(
            "deliberation.max_seconds: a run with content: llm is to repeat, which clocks do not; set "
            "deliberation.max_tokens, and seconds for an interview of the run"
        )
    temperature, most = own.temperature, own.max_answer_tokens
    return make_writer(params.reasoner, reasoner, temperature=temperature, max_answer_tokens=most)


def write(platform: Platform) -> None:
    """Give words to the replies and reshares of the round; what a script has worded itself stays as it is."""
    if platform.params.content == "none":
        return
    left = platform.events.unwritten(*counted(platform))
    if platform.writer is None:
        platform.events.template_texts = _from_templates(platform, *left)
        return
    from prism_mesa.social.content.drafts import draft_texts

    with platform.writer.budget.limited_to(platform.round, TEXTS_SHARE, 1.0):  # the round's choices have been made
        words = draft_texts(platform, platform.writer, *left)
    keys = zip(*(column.tolist() for column in left[1:]), strict=True)
    platform.events.texts |= {key: text for key, text in zip(keys, words, strict=True) if text}


def own_posts(platform: Platform, authors: Rows, texts: Rows) -> Rows:
    """Return what agents post of themselves, as ids of texts: with an LLM its words, where it finds some.

    Args:
        platform: The platform.
        authors: Who posts.
        texts: The text of the corpus that each has drawn: what it would post, and what it writes about.
    """
    if platform.writer is None or not len(authors):
        return texts
    from prism_mesa.social.content.drafts import draft_posts

    with platform.writer.budget.limited_to(platform.round, TEXTS_SHARE, TEXTS_SHARE):
        words = draft_posts(platform, platform.writer, authors, texts)
    some = np.flatnonzero(np.array([bool(text) for text in words]))
    own = texts.astype(np.int64)
    if len(some):
        own[some] = platform.posts.add_texts([words[i] for i in some.tolist()], texts[some].tolist())
    return own


def _from_templates(platform: Platform, tick: Rows, agent: Rows, post: Rows, action: Rows) -> TemplateTexts:
    """Return a sentence for each engagement, by a draw of its agent and tick, about the topic nearest to the post."""
    agreeable = platform.population.traits[agent, _AGREEABLE] >= TRAIT_MEANS[_AGREEABLE]
    kind = (action == ACTIONS.index("reshare")) * 2 + agreeable
    sentence = kind * _EACH + platform.streams.integers("template", agent, _EACH, round_=platform.round, tick=tick)
    names = [plain(name, WORDS_CAP) for name in platform.topics.names] + [_NO_TOPIC]
    code, place = np.unique(sentence * len(names) + _topics_of(platform, post), return_inverse=True)
    texts = [plain(_TABLE[i // len(names)].format(topic=names[i % len(names)]), WORDS_CAP) for i in code.tolist()]
    keys = engagement_keys(agent, post, action)
    order = np.argsort(keys)
    return TemplateTexts(texts, keys[order], place[order].astype(np.int32))


def _topics_of(platform: Platform, post: Rows) -> Rows:
    """Return the name nearest to what each post says, as a place in `Topics.names`; their number where none is near."""
    texts, place = np.unique(platform.posts.text_id[post], return_inverse=True)
    nearest = platform.topics.nearest_name(platform.posts.text_vectors[texts]).astype(np.int64)
    return np.where(nearest < 0, len(platform.topics.names), nearest)[place]
