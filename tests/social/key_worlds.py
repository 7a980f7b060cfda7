"""Values for each key, and worlds in which some have no effect."""

import csv
import warnings
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from worlds import named, plain

from prism_mesa import Config, Reasoner
from prism_mesa.errors import DataError, PrismWarning
from prism_mesa.llm import factory
from prism_mesa.params import list_leaves, nest_keys
from prism_mesa.runs.records.in_memory import RowsInMemory
from prism_mesa.runs.social import start_run
from prism_mesa.social.behavior import build_chart, social_chart
from prism_mesa.social.model import SocialModel
from prism_mesa.social.without_effect import KeysWithoutEffect, ModelFacts
from prism_mesa.social.world.build import make_world

ROOT = Path(__file__).parents[2]


NOBODY = "http://127.0.0.1:9"


SMALL = {"agents.n": 30, "rounds": 3, "network.mean_degree": 6, "agents.band": 0.3, "agents.activity": 0.8}


# where the next value by a rule is not allowed, or says nothing; None: it cannot be changed here
ANOTHER = {
    "attributes": {"leaning": {"of": "agent", "range": [-1, 1]}},
    "accounts": [{"name": "bots", "n": 5, "engages": {"like": "post.likes > 0"}}],
    "interventions": [{"at": 2, "set": {"feed.mode": "random"}}],
    "agents.homophily.by": None,
    "agents.churn.leave": 0.3,
    "agents.churn.waiting": 0.5,
    "agents.hours": tuple(range(24)),
    "agents.persistence": 0.5,
    "agents.post_sigma": 0.5,
    "agents.posting": "online",
    "agents.profiles": None,
    "agents.rhythm": 1.0,
    "agents.session": 2.0,
    "agents.time_zone": None,
    "clock.start": "2027-03-01T00:00:00Z",
    "content": "template",
    "feed.attribute": None,
    "feed.mode": "random",
    "feed.size": 2,
    "files.columns": {"src": "from"},
    "files.encoding": "latin-1",
    "feed.velocity_window": 1,
    "feed.window": 1,
    "name": None,
    "network.direction": "src_follows_dst",
    "network.dynamics": "live",
    "network.edges": None,
    "network.kind": "erdos_renyi",
    "network.mutual": 0.8,
    "network.within": 0.5,
    "opinions.by": None,
    "opinions.of": None,
    "opinions.rule": "assimilation_repulsion",
    "opinions.when": "engaged",
    "posts.authors": "rank",
    "posts.dates": "month_first",
    "posts.embedder": "wordllama" if find_spec("wordllama") else None,  # of the extra embeddings
    "posts.file": None,
    "posts.media_share": 0.5,
    "posts.seeded.position": "bridge",
    "posts.seeded.size": "small",
    "reasoner.answer": "probabilities",
    "reasoner.rule.media": 6.0,
    "records.engagements": 0.5,
    "records.impressions": 0.5,
    "records.transitions": 0.5,
    "records.views": 0.5,
    "reasoner.distilled": None,
    "reasoner.cut_prompts": "accept",
    "reasoner.fallback": "rule",
    "reasoner.host": NOBODY,
    "reasoner.kind": None,
    "reasoner.ledger": None,
    "reasoner.ledger_path": None,
    "reasoner.llm_share": None,
    "reasoner.model": "another",
    "reasoner.model_by": None,
    "reasoner.persona": "archetype",
    "reasoner.reason": None,  # not with reasoner.answer: probabilities
    "reasoner.decision_orders": 2,
    "reasoner.spend_on": "followed",
    "scheduler": "mesa",
    "utility.gamma": 0.0,
    "utility.per_source": 4.0,
    "utility.appeal_by.attribute": None,
    "utility.counts": 4.0,
    "agents.returns.online": 300.0,
    "agents.returns.session": -300.0,
    "agents.returns.first": 1,
    "utility.reshared": 3.0,
    "utility.theta": 3.0,
    "statechart.chart": named(build_chart(asks_action=True), "asking"),
    "economy.domain": "trade",
    "economy.first_quarter": "2010Q1",
    "economy.limits.lower_bound": 3.0,
    "economy.limits.highest_rate": 1.0,
    "economy.limits.rate_step": 0.05,
    "economy.macro.demand_lag_1": 1.2,
    "economy.macro.demand_lag_2": -0.5,
    "economy.nations": None,
    "economy.policy": None,
    "economy.prompt_style": "examples",
}


def another(key, value):
    """Return another value of a key, or None if it is left as it is."""
    if key in ANOTHER:
        return ANOTHER[key]
    match value:
        case bool():
            return not value
        case int():
            return value + 3
        case float():
            return value * 1.5 + 0.01 if value > 1 or value * 1.5 + 0.01 <= 1 else value / 2
    return 7


def table(file, columns, rows):
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([columns, *rows])
    return str(file)


def words(i):
    return ("tea", "jazz", "rain")[i % 3]


GIVEN = {"a chart in Python": {"chart": social_chart}, "a reasoner in Python": {"reasoner": lambda: Reasoner(says)}}


def says(prompt):
    return ("composing", "scrolling")[len(prompt) % 2]


@contextmanager
def without_embedded(monkeypatch, world):
    with monkeypatch.context() as patch:
        if "there" in world or world == "distilled in its place":
            patch.setattr(factory, "embedded_fault", lambda path: "is not there")
        yield


def given_in(world):
    own = GIVEN.get(world, {})
    return {name: value() if name == "reasoner" else value for name, value in own.items()}


def outcome(values, world):
    """Return all tables of a run, by name, and its notes."""
    work = start_run(values, **given_in(world))
    records = RowsInMemory(work.tables)
    assert work.run_in_memory(records, "run")["status"] == "done"
    found = {}
    for name in work.tables:
        with suppress(DataError):  # nothing of it was recorded
            found[name] = records.table(name)
    assert len(found["agents"]) == len(work.model.population)
    return found, work.model.notes


def differing_tables(one, other):
    """Return the names of the tables in which two runs differ."""
    return {name for name in one | other if name not in one or not one[name].equals(other.get(name))}


def in_plain_world(values, world):
    """Return a small plain world with values on top (None: not set), without what has no effect beside them."""
    given = {key: value for key, value in (SMALL | values).items() if value is not None}
    made = plain(given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        idle = idle_in(made, world)
    return {key: value for key, value in made.items() if key in given or key not in idle}


def idle_in(values, world):
    """Return the keys that have no effect in a world, whoever sets them, each with the reason."""
    own = given_in(world)
    model = SocialModel(Config.model_validate(nest_keys(values)), **own)
    model.close()
    made = make_world(model.params, model.streams)
    idle = KeysWithoutEffect(
        ModelFacts(model.platform, made, has_own_reasoner="reasoner" in own, has_own_chart="chart" in own)
    )
    return {key: reason for key, _ in list_leaves(Config) if (reason := idle.reason(key))}
