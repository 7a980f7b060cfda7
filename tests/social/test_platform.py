"""A platform without Mesa: built, stepped, copied and compared."""

import subprocess
import sys
import threading
from collections import deque
from copy import deepcopy

import numpy as np
import pytest
from echo_agents import Echo
from own_charts import SCROLLING
from worlds import plain, ran, small

from prism_mesa.errors import AgentError
from prism_mesa.params import nest_keys
from prism_mesa.social.agent import add_row
from prism_mesa.social.behavior import IDLE
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.platform_agent import PlainAgents, PlatformAgent
from prism_mesa.social.round import publish
from prism_mesa.social.round.run_round import run_round
from prism_mesa.social.start import start_platform
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.statechart import Statechart, Transition

OUTSIDE = ("agent_objects", "recorder", "writer", "reasoner", "tables_by_kind", "walk_buffers")
"""What a platform talks to, what is made of its chart, and memory: no state of its own."""


def started(**params):
    return start_platform(SocialParams(**nest_keys(plain({"agents.n": 60, "network.mean_degree": 8, **params}))))


def differing(one, other, name="platform", known=()):
    """Yield the names of all that differs between two values, and between what they hold."""
    if id(one) in known or callable(one):
        return
    parts = _parts(one), _parts(other)
    if None in parts:
        if not np.array_equal(one, other):
            yield name
    elif parts[0].keys() != parts[1].keys():
        yield name
    else:
        for key, value in parts[0].items():
            yield from differing(value, parts[1][key], f"{name}.{key}", {*known, id(one)})


def _parts(value):
    """Return what a value holds, by name; None for one that is compared itself."""
    if isinstance(value, Platform):
        return {name: own for name, own in vars(value).items() if name not in OUTSIDE}
    if isinstance(value, Exposure):
        return value.snapshot()  # without its memory
    if isinstance(value, Statechart):
        return {"guard_errors": value.guard_errors, "transitions": len(value.transitions)}
    if isinstance(value, dict):
        return value
    if isinstance(value, list | tuple | deque):
        return dict(enumerate(value))
    return getattr(value, "__dict__", None)


def test_a_platform_is_built_stepped_and_compared():
    one, other = started(), started()
    assert [run_round(one) for _ in range(3)] == [run_round(other) for _ in range(3)]
    assert not list(differing(one, other))
    assert one.totals["likes"] > 0
    run_round(other)
    assert {"platform.round", "platform.posts.impressions"} & set(differing(one, other))


def test_it_needs_no_mesa():
    code = (
        "import sys; from prism_mesa.social.params import SocialParams; from prism_mesa.social.start import "
        "start_platform; from prism_mesa.social.round.run_round import run_round; "
        "run_round(start_platform(SocialParams(agents={'n': 30}))); sys.exit('mesa' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_where_the_rule_decides_nothing_is_loaded_of_those_who_are_asked():
    others = ["llm.client", "llm.ledger", "deliberation.turn", "reasoner.reasoner"]
    unused = [f"prism_mesa.{name}" for name in others] + ["pyarrow.parquet", "sqlite3"]
    code = (
        "import sys; from prism_mesa.social.params import SocialParams; from prism_mesa.social.start import "
        "start_platform; from prism_mesa.social.round.run_round import run_round; "
        f"run_round(start_platform(SocialParams(agents={{'n': 30}}))); print(sorted(set({unused}) & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


class Own:
    """A recorder that notes which thread it is called in, as one with a connection to a database minds."""

    def __init__(self):
        self.threads = set()

    def write(self, table, columns):
        self.threads.add((table, threading.get_ident()))


def test_a_recorder_is_called_in_the_thread_that_runs_the_round(monkeypatch):
    monkeypatch.setattr(publish, "_MIN_AGENTS_FOR_THREADS", 1)
    platform = started(threads=2, network={"dynamics": "live", "mean_degree": 8})
    platform.recorder = Own()
    for _ in range(6):
        run_round(platform)
    tables = {table for table, _ in platform.recorder.threads}
    assert {"impressions", "engagements", "follows"} <= tables
    assert platform.recorder.threads == {(table, threading.get_ident()) for table in tables}


@pytest.mark.parametrize("params", [{}, {"scheduler": "mesa", "feed": {"mode": "x_algo"}}])
def test_with_mesa_it_lives_as_it_does_without(params):
    alone, model = started(**params), SocialModel(started(**params).params)
    for _ in range(3):
        row = run_round(alone)
        model.step()
        assert model.round_row == row
    assert not list(differing(alone, model.platform))


def test_a_copy_is_a_branch_that_goes_on_like_the_original():
    trunk = started()
    run_round(trunk)
    branch, untouched = deepcopy(trunk), deepcopy(trunk)
    assert [run_round(trunk) for _ in range(2)] == [run_round(branch) for _ in range(2)]
    assert not list(differing(trunk, branch))
    assert untouched.round == 0
    assert branch.agent_objects.agent(3).to_dict() == trunk.agent_objects.agent(3).to_dict()


def test_a_branch_of_a_run_leaves_the_run_and_its_folder_alone():
    model = small()
    model.step()
    branch, rows = deepcopy(model.platform), len(model.recorder.tables["rounds"])
    assert (branch.recorder, type(branch.agent_objects)) == (None, PlainAgents)
    rows_of_branch = [run_round(branch) for _ in range(2)]
    assert (model.round, len(model.recorder.tables["rounds"])) == (0, rows)
    ran(model, 2)
    assert model.round_row == rows_of_branch[-1]


def test_agents_with_scripts_are_copied_with_their_model_only():
    model = small(agents_n=20)
    Echo(model, 3)
    with pytest.raises(AgentError, match="cannot copy agents with scripts"):
        deepcopy(model.platform)
    other = deepcopy(model)
    assert (other.platform.agent_objects, type(other.agent(3))) == (other, Echo)
    model.step()
    other.step()
    assert other.round_row == model.round_row


def test_guards_and_actions_in_python_are_handed_agents_without_mesa():
    met = []

    def meets(agent, post):
        met.append((agent, post))

    begins = Transition("feed_ready", IDLE, SCROLLING, guard=lambda agent, _: agent.row < 5, action=meets)
    chart = Statechart([IDLE, SCROLLING], [begins], IDLE)
    platform = start_platform(SocialParams(**nest_keys(plain({"agents.n": 20, "agents.activity": 1.0}))), chart=chart)
    run_round(platform)
    assert [agent.row for agent, _ in met] == list(range(5))
    assert all(type(agent) is PlatformAgent and agent.state is SCROLLING for agent, _ in met)


def test_who_comes_is_there_in_the_next_round_and_who_left_is_gone():
    platform = started()
    row = add_row(platform, follows=[0, 1], followers=[2])
    platform.leaving[7] = None
    assert platform.agent_objects.agent(7).has_left
    run_round(platform)
    assert (row, len(platform.population), platform.population.present[7]) == (60, 61, False)
    with pytest.raises(AgentError, match="row 7 holds no agent"):
        add_row(platform, follows=[7], followers=[])
