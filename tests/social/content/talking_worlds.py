"""Worlds in which agents say something."""

import numpy as np
from worlds import ran, small

from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.posts import POST

LIVELY = {"agents_activity": 1.0, "agents_threshold_mean": 0.4, "agents_post_rate": 0.4}


def lively(rounds=4, **params):
    return ran(small(**LIVELY | params), rounds)


def said(model):
    """Return all that replies and reshares say: (kind, author, parent, words, text)."""
    posts = model.posts
    children = np.flatnonzero(posts.kind != POST)
    words = ["" if i < 0 else posts.texts[i] for i in posts.words[children].tolist()]
    texts = [posts.texts[i] for i in posts.text_id[children].tolist()]
    columns = (posts.kind, posts.author, posts.parent)
    return list(zip(*(column[children].tolist() for column in columns), words, texts, strict=True))


def view(model, post, reader=0):
    return model.post(int(post), reader)


class Talker(SocialAgent):
    """Replies to and reshares the first post of its feed, in its own words, and does nothing else."""

    texts = ("Not so fast", "Read this")

    def step(self):
        if self.feed and self.model.tick == 1:
            self.reply(self.feed[0], self.texts[0])
            self.reshare(self.feed[0], self.texts[1])


def saying(*texts):
    """Return a class of agents that reply and comment in these words."""
    return type("Saying", (Talker,), {"texts": texts})


def talkers(order, kind=SocialModel, talker=Talker, rounds=3, **params):
    """Return a world in which nobody but a few agents with scripts does anything but post."""
    quiet = {"agents_activity": 0.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.5}
    model = small(kind, **quiet | params)
    for row in order:
        talker(model, row)
    return ran(model, rounds)
