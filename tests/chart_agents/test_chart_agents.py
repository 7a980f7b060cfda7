"""`StatechartAgent` in plain Mesa models: states, ticks, several charts, removal, pickling, and bad input."""

import pickle
import warnings
from copy import deepcopy
from enum import Enum
from types import SimpleNamespace

import mesa
import numpy as np
import pytest
from mesa.discrete_space import CellAgent, OrthogonalMooreGrid

import prism_mesa
from prism_mesa import F, Reasoner, Statechart, Transition
from prism_mesa.chart_agents import (
    StatechartAgent,
    column,
    get_column,
    portray,
    set_column,
    state_counts,
    state_shares,
    tick_all,
    why,
)
from prism_mesa.errors import AgentError, ChartError, ConfigError, DataError, LLMFailureException, PrismWarning
from prism_mesa.llm import Completion
from prism_mesa.statechart import after, rate, when


class Light(Enum):
    OFF = "off"
    ON = "on"


SWITCH = Statechart(
    Light,
    [Transition("press", Light.OFF, Light.ON), Transition("timeout", Light.ON, Light.OFF)],
    Light.OFF,
    timeouts={Light.ON: 3},
)


class Lamp(StatechartAgent, mesa.Agent):
    chart = SWITCH
    power = column(0.0)


class Empty(mesa.Model):
    def __init__(self, rng=1):
        super().__init__(rng=rng)


def test_an_agent_begins_in_the_initial_state_fires_and_times_out():
    lamp = Lamp(Empty())
    assert (lamp.state, lamp.ticks_in_state, lamp.state_history) == (Light.OFF, 0, [])
    assert lamp.fire("press") is Light.ON
    assert [lamp.tick() for _ in range(3)] == [None, None, Light.OFF]
    assert [(entry.trigger, entry.to_state) for entry in lamp.state_history] == [
        ("press", Light.ON),
        ("timeout", Light.OFF),
    ]


def test_a_trigger_that_no_transition_has_is_a_warning_once_and_does_nothing():
    model = Empty()
    lamp, other = Lamp(model), Lamp(model)
    with warnings.catch_warnings(record=True, category=PrismWarning) as caught:
        warnings.simplefilter("default")
        assert [each.fire("pres") for each in (lamp, other)] == [None, None]
    [text] = [str(warning.message) for warning in caught]
    assert "Lamp.fire: 'pres'" in text
    assert "'press'" in text
    lamp.fire("press")
    assert lamp.fire("press") is None  # a known trigger without a transition from this state


def test_the_history_keeps_the_last_changes_with_their_contexts_and_mesas_time():
    class Brief(Lamp):
        max_history_depth = 2

    model = Empty()
    lamp = Brief(model)
    lamp.fire("press", {"by": "Ada"})
    lamp.state = "off"
    model.run_for(5)
    lamp.fire("press", {"by": "Bo"})
    assert [entry.context for entry in lamp.state_history] == [{"by": "Ada"}, {"by": "Bo"}]
    assert (lamp.state_history[1].timestamp - lamp.state_history[0].timestamp).total_seconds() == 5
    [lamp.tick() for _ in range(3)]
    assert [entry.trigger for entry in lamp.state_history] == ["press", "timeout"]


def test_several_charts_tick_in_their_order_and_each_has_its_state():
    rest = Transition(when(lambda agent, _: agent.states["work"] == "busy"), "fresh", "tired")
    work = Statechart(["idle", "busy"], [Transition(after(2), "idle", "busy")], "idle")

    class Worker(StatechartAgent, mesa.Agent):
        charts = {"work": work, "health": Statechart(["fresh", "tired"], [rest], "fresh")}  # noqa: RUF012

    one, other = Worker(model := Empty()), Worker(model)
    for _ in range(2):
        one.tick()
    assert dict(one.states) == {"work": "busy", "health": "tired"}
    assert dict(other.states) == {"work": "idle", "health": "fresh"}
    tick_all([other])
    tick_all([other])
    assert one.states == other.states
    assert state_counts(model, "health") == {"fresh": 0, "tired": 2}
    with pytest.raises(AttributeError, match="states"):
        print(one.state)
    other.states = {"work": "idle"}
    assert other.states["work"] == "idle"


def test_reporters_columns_and_portrayals_read_all_agents():
    model = Empty()
    Lamp.create_agents(model, 4)
    for lamp in list(model.agents)[:1]:
        lamp.fire("press")
    assert state_counts(model) == {"off": 3, "on": 1}
    assert state_shares(model.agents) == {"off": 0.75, "on": 0.25}
    set_column(model.agents, "power", np.arange(4.0))
    assert [lamp.power for lamp in model.agents] == [0, 1, 2, 3]
    assert get_column(model.agents, "state").tolist() == [1, 0, 0, 0]
    assert portray(model.agents.to_list()[0]).color == SWITCH.colors[Light.ON]
    collector = mesa.DataCollector({"on": lambda model: state_counts(model)["on"]}, {"state": "state"})
    collector.collect(model)
    assert collector.get_model_vars_dataframe()["on"].tolist() == [1]


def test_rows_of_agents_that_leave_are_used_again_and_their_state_stays_readable():
    model = Empty()
    lamps = [Lamp(model) for _ in range(40)]
    lamps[3].power = 7.0
    lamps[3].fire("press")
    lamps[3].remove()
    newcomer = Lamp(model)
    assert (lamps[3].state, lamps[3].power, len(lamps[3].state_history)) == (Light.ON, 7.0, 1)
    assert (newcomer.state, newcomer.power, newcomer.state_history) == (Light.OFF, 0.0, [])
    assert lamps[3].fire("press") is None
    assert [lamps[3].tick() for _ in range(3)][-1] is Light.OFF
    assert newcomer.state is Light.OFF
    assert len(vars(model)["_chart_agents"].ids) < 100


def test_a_model_pickles_and_goes_on_alike():
    model = Empty()
    for lamp in Lamp.create_agents(model, 30):
        lamp.fire("press")
    tick_all(model.agents)
    copies = [deepcopy(model), pickle.loads(pickle.dumps(model))]
    for _ in range(2):
        for each in (model, *copies):
            tick_all(each.agents)
    assert state_counts(model) == {"off": 30, "on": 0}
    for copied in copies:
        assert state_counts(copied) == state_counts(model)
        assert [str(entry) for lamp in copied.agents for entry in lamp.state_history] == [
            str(entry) for lamp in model.agents for entry in lamp.state_history
        ]


def test_an_agent_that_is_removed_by_another_during_a_tick_takes_no_transition():
    def pushes(agent, _):
        for other in list(agent.model.agents):
            if other is not agent:
                other.remove()
        Pusher(agent.model)

    falls = Statechart(["up", "down"], [Transition(after(1), "up", "down", action=pushes)], "up")

    class Pusher(StatechartAgent, mesa.Agent):
        chart = falls

    model = Empty()
    agents = [Pusher(model) for _ in range(3)]
    tick_all(model.agents)
    assert [agent.state for agent in agents] == ["down", "up", "up"]
    assert state_counts(model) == {"up": 1, "down": 1}


class Customer(StatechartAgent, mesa.Agent):
    chart = Statechart(
        ["browsing", "buying", "leaving"],
        [
            Transition("sees_price", "browsing", "buying", F.context.price < F.agent.budget),
            Transition("sees_price", "browsing", "leaving", F.context.price > 2 * F.agent.budget),
            Transition("sees_price", "browsing", None),
            Transition(after(2), "browsing", "leaving", guard=F.agent.budget > 4),
            Transition(after(2), "browsing", "buying"),
            Transition(after(2), "browsing", None),
        ],
        "browsing",
        name="shop",
    )

    def __init__(self, model, budget):
        super().__init__(model)
        self.budget = budget


def test_open_choices_go_to_the_models_reasoner_and_equal_questions_once():
    asked = []
    model = Empty()
    model.reasoner = Reasoner(lambda prompt: asked.append(prompt) or "buying", role="a customer in a small shop")
    customers = [Customer(model, budget) for budget in (9, 3, 3, 3)]
    assert customers[0].fire("sees_price", {"price": 2}) == "buying"
    assert not asked
    assert customers[1].fire("sees_price", {"price": 5}) == "buying"
    assert len(asked) == 1
    tick_all(model.agents)
    tick_all(model.agents)
    assert [customer.state for customer in customers[2:]] == ["buying", "buying"]
    assert len(asked) == 2
    model.reasoner.close()


def test_without_a_reasoner_the_message_says_what_is_open_and_what_to_write(capsys):
    customer = Customer(Empty(), 3)
    with pytest.raises(ChartError, match=r"sees_price.*buying or leaving.*model\.reasoner"):
        customer.fire("sees_price", {"price": 5})
    why(customer, "sees_price", {"price": 5})
    printed = capsys.readouterr().out
    assert "buying or leaving" in printed
    assert "no reasoner" in printed


def test_why_prints_guards_question_and_answer_and_changes_nothing(capsys):
    model = Empty()
    model.reasoner = Reasoner(lambda prompt: "leaving", role="a customer in a small shop")
    customer = Customer(model, 3)
    why(customer, "sees_price", {"price": 5})
    printed = capsys.readouterr().out
    for words in ("context.price < agent.budget]: false", "agent.budget = 3", "a customer in a small shop", "leaving"):
        assert words in printed
    why(customer, "sees_price", {"price": 1})
    assert "so buying" in capsys.readouterr().out
    assert customer.state == "browsing"
    why(customer)
    assert "leaving" not in capsys.readouterr().out
    customer.fire("sees_price", {"price": 5})
    model.reasoner.close()
    why(customer)
    printed = capsys.readouterr().out
    for words in ("browsing --sees_price--> buying or leaving", "price: 5", "the answer: leaving"):
        assert words in printed


def test_the_seed_is_the_int_given_or_one_drawn_from_mesas_generator():
    decay = Statechart(["whole", "decayed"], [Transition(rate(0.3), "whole", "decayed")], "whole")

    class Atom(StatechartAgent, mesa.Agent):
        chart = decay

    def decayed(rng):
        model = Empty(rng)
        Atom.create_agents(model, 200)
        tick_all(model.agents)
        return [agent.state for agent in model.agents]

    assert decayed(3) == decayed(3) != decayed(4)
    assert decayed(np.random.default_rng(3)) == decayed(np.random.default_rng(3)) != decayed(np.random.default_rng(4))
    assert decayed(3) != decayed(np.random.default_rng(3))
    assert decayed(None) != decayed(None)


def test_agents_of_the_platform_count_as_chart_agents():
    from prism_mesa import SocialModel

    agent = SocialModel(agents_n=20).agent(0)
    assert isinstance(agent, StatechartAgent)
    assert agent.chart is agent.model.chart
    assert agent.states[""] is agent.state
    assert not isinstance(mesa.Agent(Empty()), StatechartAgent)


def define_state():
    class Person(StatechartAgent, mesa.Agent):
        chart = SWITCH
        state = "off"


def wrong_order():
    class Person(mesa.Agent, StatechartAgent):
        chart = SWITCH


def no_chart():
    class Person(StatechartAgent, mesa.Agent):
        pass

    Person(Empty())


def before_init():
    class Person(StatechartAgent, mesa.Agent):
        chart = SWITCH

        def __init__(self, model):
            self.state = "on"
            super().__init__(model)

    Person(Empty())


def column_before_init():
    class Person(StatechartAgent, mesa.Agent):
        chart, power = SWITCH, column(0.0)

        def __init__(self, model):
            self.power = 2.0

    Person(Empty())


def read_before_init():
    class Person(StatechartAgent, mesa.Agent):
        chart = SWITCH

        def __init__(self, model):
            print(self.state)

    Person(Empty())


def strangers(*kinds):
    model = Empty()
    for kind in kinds:
        kind(model)
    return model.agents


class Twin(StatechartAgent, mesa.Agent):
    charts = {"day": SWITCH, "night": SWITCH}  # noqa: RUF012


def no_timeout():
    class Person(StatechartAgent, mesa.Agent):
        chart = Statechart(["a", "b"], [Transition("timeout", "a", "b")], "a")

    Person(Empty()).tick()


@pytest.mark.parametrize(
    ("does", "error", "names"),
    [
        (define_state, ChartError, r"Person\.state"),
        (wrong_order, ChartError, r"StatechartAgent, mesa\.Agent"),
        (no_chart, ChartError, "Person.*chart = "),
        (before_init, ChartError, r"super\(\).__init__"),
        (column_before_init, ChartError, r"Person.*super\(\).__init__"),
        (read_before_init, ChartError, r"Person.*super\(\).__init__"),
        (lambda: tick_all(strangers(Lamp, mesa.Agent)), AgentError, r"agents_by_type\[Lamp\]"),
        (lambda: tick_all(strangers(mesa.Agent, Lamp)), AgentError, r"agents_by_type\[Lamp\]"),
        (lambda: portray(mesa.Agent(Empty())), ChartError, "Agent has no chart.*AgentPortrayalStyle"),
        (lambda: portray(Twin(Empty())), ChartError, "Twin.*'day', 'night'"),
        (lambda: state_counts(strangers(Twin)), ChartError, "'day' or 'night'"),
        (lambda: state_counts(strangers(Twin), "dya"), ChartError, "dya.*'day' or 'night'"),
        (lambda: state_counts(strangers(Lamp), "day"), ChartError, "single chart"),
        (lambda: Statechart(["a"], [], "a", strickt=True), TypeError, r"Statechart\(\).*strickt"),
        (lambda: prism_mesa.why(Lamp(Empty()), "press"), DataError, r"chart_agents\.why"),
        (no_timeout, ChartError, "timeouts="),
        (lambda: setattr(Lamp(Empty()), "state", "broken"), ChartError, "Lamp.state.*'broken'"),
        (lambda: column("text"), AgentError, "'text'"),
        (lambda: set_column([Lamp(Empty())], "weight", 1), AgentError, "'weight'"),
        (lambda: get_column([Twin(Empty())], "state"), AgentError, "'day' or 'night'"),
        (lambda: tick_all([mesa.Agent(Empty())]), AgentError, "Agent"),
        (lambda: tick_all([Lamp(Empty()), Lamp(Empty())]), AgentError, "same model"),
    ],
)
def test_bad_input_is_one_line_that_says_where_and_what_to_write(does, error, names):
    with pytest.raises(error, match=names):
        does()


class Grid(mesa.Model):
    def __init__(self, n=30, rng=None):
        super().__init__(rng=rng)
        self.grid = OrthogonalMooreGrid((6, 6), random=self.random)
        for _ in range(n):
            Walker(self).cell = self.grid.select_random_empty_cell()
        self.datacollector = mesa.DataCollector({"tired": count_tired})

    def step(self):
        self.agents.shuffle_do("step")
        self.datacollector.collect(self)


class Walker(StatechartAgent, CellAgent):
    chart = Statechart(["fresh", "tired"], [Transition(rate(F.agent.crowd * 0.1), "fresh", "tired")], "fresh")

    @property
    def crowd(self):
        return len(list(self.cell.neighborhood.agents))

    def step(self):
        self.tick()
        if self.state == "fresh":
            self.cell = self.cell.neighborhood.select_random_cell()


def count_tired(model):
    return state_counts(model)["tired"]


def test_agents_walk_on_a_grid_and_batch_run_collects_their_states():
    seeds = [mesa.batch_run(Grid, {"n": [30]}, rng=[seed], max_steps=5, display_progress=False) for seed in (1, 1, 2)]
    tired = [[row["tired"] for row in rows] for rows in seeds]
    assert tired[0] == tired[1]
    assert 0 < tired[0][-1] < 30


def test_solara_draws_agents_in_the_colours_of_their_states():
    visualization = pytest.importorskip("mesa.visualization")
    solara, colors = pytest.importorskip("solara"), pytest.importorskip("matplotlib.colors")
    model = Grid(rng=1)
    for agent, state in zip(model.agents, ["fresh", "tired"] * 15, strict=True):
        agent.state = state
    renderer = visualization.SpaceRenderer(model, backend="matplotlib").setup_agents(portray)
    drawn = {colors.to_hex(face) for part in renderer.draw_agents().collections for face in part.get_facecolor()}
    assert drawn == {Walker.chart.colors[state] for state in Walker.chart.ordered_states}
    _, page = solara.render(visualization.SolaraViz(model, renderer), handle_error=False)
    page.close()


def test_an_agent_that_removes_itself_by_its_action_changes_no_other_agent():
    leaves = Transition("bell", "in", "out", action=lambda agent, _: agent.remove())

    class Guest(StatechartAgent, mesa.Agent):
        chart = Statechart(["in", "out"], [leaves], "in")

    model = Empty()
    guests = [Guest(model) for _ in range(3)]
    guests[2].fire("bell")
    assert [guest.state for guest in guests] == ["in", "in", "out"]
    assert state_counts(model) == {"in": 2, "out": 0}


def nope(agent, _):
    return agent.nope


@pytest.mark.parametrize(
    ("trigger", "guard"),
    [("go", F.agent.zz > 1), ("go", F.model.zz > 1), ("go", nope), (when(F.agent.zz > 1), None), (when(nope), None)],
)
@pytest.mark.parametrize("at_once", [False, True])
def test_a_guard_or_condition_that_raises_warns_once(trigger, guard, at_once):
    chart = Statechart(["a", "b"], [Transition(trigger, "a", "b", guard), Transition(after(1), "b", "a")], "a")
    if at_once and guard is not None:
        chart = Statechart(["a", "b"], [Transition(rate(1.0), "a", "b", guard)], "a")

    class Person(StatechartAgent, mesa.Agent):
        pass

    Person.chart = chart

    def step_twice(people):
        for _ in range(2):
            if at_once:
                tick_all(people)
            else:
                people.do("fire", "go") if guard is not None else people.do("tick")

    Person.create_agents(model := Empty(), 3)
    with pytest.warns(PrismWarning, match=r"--> b.*(zz|nope).*strict") as caught:
        step_twice(model.agents)
    assert len(caught) == 1
    assert sum(chart.guard_errors.values()) == 6

    silent = Statechart(["a", "b"], [Transition("go", "a", "b", nope)], "a")
    assert silent.fire(SimpleNamespace(state="a", max_history_depth=0, state_history=[]), "go") is None
    assert sum(silent.guard_errors.values()) == 1  # the platform's models warn by themselves


def test_a_rate_or_description_with_wrong_arguments_has_a_note_on_its_place():
    class Atom(StatechartAgent, mesa.Agent):
        chart = Statechart(["a", "b"], [Transition(rate(lambda agent: 1.0), "a", "b")], "a", name="decay")

    for tick in (lambda atom: atom.tick(), lambda atom: tick_all([atom])):
        with pytest.raises(TypeError) as caught:
            tick(Atom(Empty()))
        assert "agent 1, a on rate" in caught.value.__notes__[0]
    model = Empty()
    model.reasoner = Reasoner(lambda prompt: "buying", describe=lambda agent: "")
    with pytest.raises(TypeError) as caught:
        Customer(model, 3).fire("sees_price", {"price": 5})
    assert "describe" in caught.value.__notes__[0]


def shop(client, n=60, **options):
    """Return a shop in which customers with different budgets have asked a client."""
    model = Empty()
    with Reasoner(client, role="a customer", describe=lambda agent, _: str(agent.budget), **options) as model.reasoner:
        for i in range(n):
            Customer(model, 3 + i / n / 2).fire("sees_price", {"price": 5})
    return model


@pytest.mark.parametrize("method", [False, True])
def test_an_oracle_that_always_raises_ends_the_run_after_twenty_questions_with_one_traceback(method, caplog):
    class Client:
        name, decoding = "broken", {}

        async def chat(self, prompt, schema=None, attempt=0):
            raise ValueError("no key")

    def function(prompt):
        raise ValueError("no key")

    with pytest.raises(LLMFailureException, match=r"first 20 .*ValueError: no key"):
        shop(Client() if method else function)
    assert sum(record.exc_info is not None for record in caplog.records) == 1
    assert len(caplog.records) < 20


class Talker:
    """A client as own-model.md describes it; a wrong one returns a string, or is not async."""

    name, decoding = "talker", {}

    async def chat(self, prompt, schema, attempt):
        return Completion('{"next_state": "buying"}')


class Textual(Talker):
    async def chat(self, prompt, schema, attempt):
        return "buying"


class Blocking(Talker):
    def chat(self, prompt, schema, attempt):
        return Completion("buying")


def test_a_client_is_an_object_with_name_decoding_and_an_async_chat_that_returns_a_completion():
    assert state_counts(shop(Talker(), 3))["buying"] == 3
    for kind, fault in ((Textual, "'buying'.*Completion"), (Blocking, "async")):
        with pytest.raises(ConfigError, match=f"talker.*{fault}"):
            shop(kind())


def test_a_description_of_an_unknown_state_is_refused_at_the_first_question():
    with pytest.raises(ChartError, match=r"'buyng'.*'buying'"):
        shop(Talker(), descriptions={"buyng": "Buy it"})
    shop(Talker(), descriptions={"browsing": "Look around"})

    model = Empty()
    Lamp(model)
    with Reasoner(Talker(), descriptions={"on": "Light", "buying": "Buy it"}) as model.reasoner:  # of two charts
        assert Customer(model, 3).fire("sees_price", {"price": 5}) == "buying"


@pytest.mark.parametrize("members", [{"chart": "light"}, {"charts": [SWITCH]}, {"charts": {"lamp": None}}])
def test_what_is_no_chart_is_refused_by_the_name_of_the_class(members):
    lamp = type("Lamp", (StatechartAgent, mesa.Agent), members)
    with pytest.raises(ChartError, match="Lamp"):
        lamp(mesa.Model(rng=1))
