"""What enters the table of posts, and when: the first and the fifth step of a round."""

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import ACTIONS
from prism_mesa.kernels.posts import nearest_texts, roots_counted
from prism_mesa.social.content.notes import keep_notes
from prism_mesa.social.content.writer import own_posts
from prism_mesa.social.round.collect import COUNTERS, record_engagements, record_impressions
from prism_mesa.social.round.engagements import taken
from prism_mesa.social.state.events import Events
from prism_mesa.social.state.population import Rows
from prism_mesa.social.state.posts import NO_PARENT, POST, REPLY, RESHARE

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel

N_TEXTS_CONSIDERED: Final = 4
_KIND_OF_ACTION: Final[npt.NDArray[np.int64]] = np.array(
    [{"reply": REPLY, "reshare": RESHARE}.get(action, POST) for action in ACTIONS]
)


def publish(model: "SocialModel") -> None:
    """Add the posts that agents write of themselves and those that are scheduled for this round.

    Agents' own posts get their ids in a keyed order: the newest post comes first in a feed, and no agent
    should always be the newest. Scheduled ones lie among them in the order of their file.
    """
    population, model.first_of_round = model.population, len(model.posts)
    will = model.streams.happens("posts", population.post_rate, round_=model.round)
    own = np.flatnonzero(will & population.present)
    author, text = model.schedule.of_round(model.round)
    here = population.present[author]
    author = np.concatenate([own, author[here]])
    drawn = _texts_of(model, own)
    key = model.streams.bits("post", author, round_=model.round, index=np.concatenate([drawn, text[here]]))
    text = np.concatenate([own_posts(model, own, drawn), text[here]])  # the key is of what was drawn all the same
    chance = key.copy()
    chance[len(own) :] = np.sort(chance[len(own) :])
    order = np.argsort(chance, kind="stable")
    model.posts.add(author[order], text[order], model.round, POST, NO_PARENT, None, key[order])
    model.counts["posts"] = len(author)


def _texts_of(model: "SocialModel", authors: Rows) -> npt.NDArray[np.int32]:
    """Return what each author posts: of some texts that circulate, the one nearest to its interests."""
    key = model.streams.key("text", model.round, 0)
    current, interests = circulating(model).astype(np.int32), model.population.interests
    writers = authors.astype(np.int32)
    return nearest_texts(key, writers, current, interests, model.topics.vectors, N_TEXTS_CONSIDERED)


def circulating(model: "SocialModel") -> npt.NDArray[np.int64]:
    """Return the texts of the corpus that are talked about in this round.

    All texts stand in a drawn order, of which a window moves on by one text a round, round and round.
    """
    texts = len(model.posts.corpus.texts)
    order = np.argsort(model.streams.bits("circulation", np.arange(texts)))
    places = model.round + np.arange(min(model.params.posts.circulating, texts))
    return np.asarray(order[places % texts], np.int64)


def commit(model: "SocialModel") -> None:
    """Let the round's events reach counters and cascades; the order in which they came about does not matter.

    Replies and reshares become posts, which appear in the next round.
    """
    known = _impressions(model)
    engagements = taken(model)
    _count(model, *engagements[2:])
    _spread(model, *engagements)
    _publish_written(model)
    keep_notes(model)
    _remember(model, known)
    record_engagements(model, *engagements)
    model.events = Events(moves=model.events.moves)


def _impressions(model: "SocialModel") -> list[Rows]:
    """Count impressions, and return who has read, and which root."""
    tick, readers, post = model.events.seen()
    record_impressions(model, tick, readers, post)
    model.counts["impressions"] = len(post)
    return [readers, roots_counted(post, model.posts.root, model.posts.impressions)]


def _count(model: "SocialModel", post: Rows, action: Rows) -> None:
    roots = model.posts.root[post]
    for code, counter in enumerate(COUNTERS):
        if counter == "reshares":
            model.outcomes.count_reshares(model.posts, roots[action == code])
        else:
            model.posts.count(counter, roots[action == code])
        model.counts[counter] = int((action == code).sum())
    model.posts.count_velocity(roots)


def _spread(model: "SocialModel", tick: Rows, agent: Rows, post: Rows, action: Rows) -> None:
    """Let replies and reshares become posts of the next round."""
    posts = model.posts
    kind = _KIND_OF_ACTION[action]
    tick, agent, post, action, kind = (column[kind != POST] for column in (tick, agent, post, action, kind))
    parent = np.bitwise_xor(posts.key[post], kind.astype(np.uint64), dtype=np.uint64)
    key = model.streams.bits("reshare", agent, round_=model.round, tick=tick, index=parent)
    order = np.lexsort((key, tick))
    agent, post, action, kind, key = agent[order], post[order], action[order], kind[order], key[order]
    text_id, words = posts.worded(post, kind, *model.events.words(agent, post, action))
    root = np.where(kind == RESHARE, posts.root[post], NO_PARENT)
    posts.add(agent, text_id, model.round + 1, kind, post, root, key, words, written=model.round)


def _publish_written(model: "SocialModel") -> None:
    """Let what agents have written in scripts and while they thought become posts of the next round.

    A draw about a post depends on its author and on which of the author's posts it is, not on what others wrote.
    """
    if not model.events.written:
        return
    written = sorted(model.events.written, key=lambda entry: entry[0])  # stable: each agent's in its own order
    author = np.array([row for row, _ in written])
    text_id = model.posts.add_texts([text for _, text in written])
    which = np.arange(len(author)) - np.searchsorted(author, author)
    key = model.streams.bits("written", author, round_=model.round, index=which)
    model.posts.add(author, text_id, model.round + 1, POST, NO_PARENT, None, key, written=model.round)


def _remember(model: "SocialModel", known: list[Rows]) -> None:
    """Note who knows a root, having read it or written it this round; let go of roots that can no more be shown.

    `known` holds readers and what they have read. It is emptied: here a round takes the most memory.
    """
    posts = model.posts
    new = np.arange(model.first_of_round, len(posts))
    own = new[posts.root[new] == new]
    roots = np.append(known.pop(), own.astype(np.int32))
    agents = np.append(known.pop(), posts.author[own])
    model.exposure.add(agents, roots)
    shown = np.zeros(len(posts), np.bool_)
    shown[posts.root[posts.first_visible(model.round + 1, model.params.feed.window) :]] = True
    model.exposure.keep(shown)
