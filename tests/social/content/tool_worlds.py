"""Worlds whose agents have tools, and their toolboxes."""

import numpy as np
from minds import Mind, asked
from worlds import ran, small

from prism_mesa.social.content.tools import PlatformTools
from prism_mesa.social.content.writer import write_words
from prism_mesa.social.round import run_round as round_module
from prism_mesa.social.state.posts import REPLY, RESHARE

TALKING = {
    "content": "llm",
    "agents_activity": 1.0,
    "agents_activity_sigma": 0.5,
    "agents_threshold_mean": 0.5,
    "agents_band": 0.0,
    "agents_post_rate": 0.5,
    "network_mean_degree": 10,
}


KINDS = {"reply": REPLY, "reshare": RESHARE}


def talking(mind=None, rounds=0, **params):
    return ran(small(**TALKING | params, reasoner=asked(mind or Mind())), rounds)


def step_with(monkeypatch, model, *activities):
    """Run a round, and before replies get their words do some things with `model`; return what each returned."""
    results = []

    def then_write(platform):
        results.extend(activity(model) for activity in activities)
        write_words(platform)

    monkeypatch.setattr(round_module, "write_words", then_write)
    model.step()
    monkeypatch.setattr(round_module, "write_words", write_words)
    return results


def toolbox(model, row):
    return PlatformTools(model.platform, row, tick=3).registry(acts=True)


def feed_of(model, row):
    return model.population.feed[row, : model.population.n_feed[row]].tolist()


def untouched(model):
    """Return an agent with a feed of several posts, none of which it has engaged with, and most of them unread."""
    engaged = set(model.events.all_engagements()[1].tolist())
    left = model.population.n_feed.astype(int) - model.population.n_read
    return next(row for row in np.argsort(-left).tolist() if row not in engaged and left[row] > 0)


def rows_of(model, table, **where):
    rows = model.recorder.tables.get(table, [])
    return [row for row in rows if all(row[name] == value for name, value in where.items())]
