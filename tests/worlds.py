"""Small worlds for tests of `prism_mesa.social`, and everything a model holds as plain values."""

import sys
from collections import Counter
from dataclasses import fields
from types import ModuleType

import numpy as np

from prism_mesa.social.model import SocialModel

POST_COLUMNS = (
    "author",
    "text_id",
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
    """A recorder that keeps rows: table -> list of tuples, in the order written."""

    def __init__(self):
        self.tables = {}

    def write(self, table, columns):
        rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
        self.tables.setdefault(table, []).extend(dict(zip(columns, row, strict=True)) for row in rows)


def small(kind=SocialModel, **params):
    """Return a world of 30 agents, or those of a file, with little to do and a recorder, unless told otherwise."""
    made = {} if "network_edges" in params else {"agents_n": 30, "network_mean_degree": 6}
    return kind(**{**made, "posts_n_topics": 8, "recorder": Memory()} | params)


FROM_FILE = {"agents_n": 1000, "network_mean_degree": 20}
"""The defaults, for a world whose network is read from a file: what `small` sets would have no effect."""


def ran(model, rounds=3):
    for _ in range(rounds):
        model.step()
    return model


def named(chart, name="chart_of_a_test"):
    """Return where `statechart.chart` finds a chart that a test has made."""
    module = sys.modules.setdefault("charts_of_tests", ModuleType("charts_of_tests"))
    setattr(module, name, chart)
    return f"charts_of_tests:{name}"


def facts(model):
    """Return all that a model knows after its rounds, as plain Python values."""
    population = model.population
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
        "seen": [sorted(set(model.exposure.of(row).tolist())) for row in range(len(population))],
        "network": (model.network.indptr.tolist(), model.network.indices.tolist()),
    }


def differing(one, other):
    """Return the names of the facts in which two models differ."""
    a, b = facts(one), facts(other)
    return [name for name in a | b if a.get(name) != b.get(name)]
