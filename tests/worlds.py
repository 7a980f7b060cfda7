"""Small worlds for tests of `prism_mesa.social`, and everything a model holds as plain values."""

import sys
from collections import Counter
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import numpy as np

from prism_mesa import load_config
from prism_mesa.params import explicit_values, list_leaves
from prism_mesa.social.behavior import social_chart
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.statechart import AgentState, Statechart
from prism_mesa.studies.params import flatten

PLAIN_FILE = Path(__file__).parents[1] / "configs" / "plain.yaml"
PLAIN = explicit_values(load_config(PLAIN_FILE))
"""In what the plain world differs from the default one, by dotted key: every mechanism of the default world is off."""
del PLAIN["name"]


def plain(changes=None):
    """Return the plain world by dotted key, with changes (dotted or nested), without what then has no effect."""
    given = dict(flatten(changes or {}))
    idle = set()
    if given.get("network.edges"):
        idle.add("network.mean_degree")
    if given.get("network.edges") or given.get("network.kind", "configuration") != "configuration":
        idle |= {"network.follower_sigma", "network.followee_sigma", "network.mutual"}
    if given.get("agents.n", 1000) <= PLAIN["network.mean_degree"]:  # all follow all others, as by default
        idle.add("network.mean_degree")
    made = PLAIN | given
    if made.get("clock.round_minutes", 60) % (24 * 60) == 0:
        idle.add("agents.hours")
    if made["agents.activity_sigma"] == 0 and not (made["agents.post_sigma"] and made["agents.post_rate"]):
        idle.add("agents.popularity")
    if not made["agents.post_rate"]:
        idle |= {"agents.post_sigma"} if made.get("agents.profiles") else {"agents.post_sigma", "agents.posting"}
    if not (made["agents.activity"] or made.get("agents.profiles")):
        idle |= {"agents.hours", "agents.persistence"}
    if sum(made[f"agents.{action}"] > 0 for action in ("like", "reply", "reshare")) == 1:
        idle.add("agents.propensity_sigma")
    return {key: value for key, value in made.items() if key in given or key not in idle}


def plain_group(name):
    """Return the keys of a group of the plain world."""
    return {key.removeprefix(f"{name}."): value for key, value in PLAIN.items() if key.startswith(f"{name}.")}


def plain_keywords(**given):
    """Return the plain world by the names of a model's keywords, with what is given: keywords of any kind."""
    names = {key.replace(".", "_"): key for key, _ in list_leaves(SocialParams)}
    own = {names[name]: value for name, value in given.items() if name in names and value.__class__ is not dict}
    return {key.replace(".", "_"): value for key, value in plain(own).items()} | given


POST_COLUMNS = (
    "author",
    "text_id",
    "wording",
    "words",
    "round",
    "written",
    "kind",
    "parent",
    "root",
    "likes",
    "replies",
    "reshares",
    "impressions",
    "velocity",
)


class Memory:
    """A recorder that keeps rows: table -> list of dicts, in the order written; they are made when first asked for."""

    def __init__(self):
        self._rows, self._written = {}, []

    def write(self, table, columns):
        kept = {name: column.copy() if isinstance(column, np.ndarray) else column for name, column in columns.items()}
        self._written.append((table, kept))

    @property
    def tables(self):
        for table, columns in self._written:
            rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
            self._rows.setdefault(table, []).extend(dict(zip(columns, row, strict=True)) for row in rows)
        self._written.clear()
        return self._rows

    @tables.setter
    def tables(self, tables):
        self._rows, self._written = tables, []


def small(kind=SocialModel, **params):
    """Return a plain world of 30 agents, or those of a file, with a recorder, unless told otherwise."""
    made = {} if "network_edges" in params else {"agents_n": 30, "network_mean_degree": 6}
    return kind(**plain_keywords(**{**made, "posts_n_topics": 8, "recorder": Memory()} | params))


def ran(model, rounds=3):
    for _ in range(rounds):
        model.step()
    return model


def staying():
    """Return the default chart, but that agents do not leave when they have read their feeds."""
    transitions = [t for t in social_chart.transitions if t.trigger != "feed_done"]
    return Statechart(AgentState, transitions, AgentState.IDLE, timeouts=social_chart.timeouts)


def named(chart, name="chart_of_a_test"):
    """Return where `statechart.chart` finds a chart that a test has made."""
    module = sys.modules.setdefault("charts_of_tests", ModuleType("charts_of_tests"))
    setattr(module, name, chart)
    return f"charts_of_tests:{name}"


def facts(model):
    """Return all that a model knows after its rounds, as plain Python values."""
    population, posts = model.population, model.posts
    can_be_shown = {*posts.root[posts.first_visible(model.round + 1, model.params.feed.window) :].tolist()}
    columns = {field.name: getattr(population, field.name) for field in fields(population)}
    errors = Counter()
    for text, n in model.chart.guard_errors.items():
        errors[text.split(": ")[0]] += n  # the first message stands for all: whose it is depends on the order
    return {
        **{name: c.tolist() if isinstance(c, np.ndarray) else list(c) for name, c in columns.items()},
        **{f"posts.{name}": getattr(model.posts, name).tolist() for name in POST_COLUMNS},
        "texts": list(model.posts.texts),
        "history": [model.history.entries(row) for row in range(len(population))],
        "history.count": model.history.count.tolist(),
        "rounds": model.datacollector.get_model_vars_dataframe().to_dict("list"),
        "ticks": model.datacollector.get_table_dataframe("ticks").to_dict("list"),
        "totals": dict(model.totals),
        "answers": sum(model.sources.values()),
        "guard errors": dict(errors),
        "records": (model.recorder.tables, model.recorded.n_engaged.tolist()),
        "seen": [sorted({*model.platform.roots_read(row).tolist()} & can_be_shown) for row in range(len(population))],
        "relations": (model.relations.hidden.tolist(), dict(model.relations.counts)),
        "network": (model.network.indptr.tolist(), model.network.indices.tolist()),
    }


def differing(one, other):
    """Return the names of the facts in which two models differ."""
    a, b = facts(one), facts(other)
    return [name for name in a | b if a.get(name) != b.get(name)]
