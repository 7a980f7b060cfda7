"""What enters the table of posts, and when: the first and the fifth step of a round."""

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.posts import nearest_texts, roots_counted
from prism_mesa.records import ACTIONS
from prism_mesa.social.collect import COUNTERS, record_engagements, record_impressions
from prism_mesa.social.moves import Events
from prism_mesa.social.population import Rows
from prism_mesa.social.posts import NO_PARENT, POST, REPLY, RESHARE

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
    text = np.concatenate([_texts_of(model, own), text[here]])
    key = model.streams.bits("post", author, round_=model.round, index=text)
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
    posts, events = model.posts, model.events
    tick, agent, post, action = events.engaged()
    roots = posts.root[post]
    at, readers, seen = events.seen()
    record_impressions(model, at, readers, seen)
    read = roots_counted(seen, posts.root, posts.impressions)
    model.counts["impressions"] = len(read)
    for code, counter in enumerate(COUNTERS):
        posts.count(counter, roots[action == code])
        model.counts[counter] = int((action == code).sum())
    posts.count_velocity(roots)
    spreads = np.flatnonzero(_KIND_OF_ACTION[action] != POST)
    kind = _KIND_OF_ACTION[action[spreads]]
    parent = np.bitwise_xor(posts.key[post[spreads]], kind.astype(np.uint64), dtype=np.uint64)
    key = model.streams.bits("reshare", agent[spreads], round_=model.round, tick=tick[spreads], index=parent)
    by_time = np.lexsort((key, tick[spreads]))
    order, kind, key = spreads[by_time], kind[by_time], key[by_time]
    own_root = np.where(kind == RESHARE, roots[order], NO_PARENT)
    posts.add(agent[order], posts.text_id[post[order]], model.round + 1, kind, post[order], own_root, key)
    if events.written:
        written = sorted(events.written, key=lambda entry: entry[0])  # stable: each agent's in its own order
        author = np.array([row for row, _ in written])
        text_id = posts.add_texts([text for _, text in written])
        key = model.streams.bits("written", author, round_=model.round, index=np.arange(len(author)))
        posts.add(author, text_id, model.round + 1, POST, NO_PARENT, None, key)
    shown = np.zeros(len(posts), np.bool_)
    shown[posts.root[posts.first_visible(model.round + 1, model.params.feed.window) :]] = True
    own = np.arange(model.first_of_round, len(posts))
    own = own[posts.root[own] == own]
    readers, read = np.append(readers, posts.author[own]), np.append(read, own)
    model.seen.update(readers, read, shown)
    record_engagements(model, tick, agent, post, action)
    model.events = Events(moves=events.moves)
