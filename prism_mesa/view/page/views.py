"""All views of a run at one round; each reads a `Source` and draws a card in the browser."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable, Sequence
from io import StringIO

import matplotlib
import numpy as np
from reacton.core import use_effect, use_memo
from reacton.ipyvuetify import Html
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.errors import PrismError
from prism_mesa.statechart import AgentState, Statechart, draw_chart, mermaid
from prism_mesa.view.page.cascade_view import cascade_view
from prism_mesa.view.page.network_view import network_view
from prism_mesa.view.page.rounds_views import engagement_view, oracle_view, states_view
from prism_mesa.view.page.source import ABSENT, AgentDetails, Source, fold_moves
from prism_mesa.view.page.widgets import Json, show_card, view_card


@component
def show_views(
    source: Source,
    page_round: int,
    name: str = "page",
    go_to_round: Callable[[int], None] = lambda round_: None,
    compared: Sequence[Source] = (),
) -> None:
    """Show all views of a source at its round `page_round`.

    After a click on a post, its author is shown in the round in which it was written. `name` distinguishes the
    sets of views on one page, `go_to_round` changes the page's round, and the runs in `compared` share the axes.
    """
    selected, fault = use_reactive(most_followed(source)), use_reactive("")
    click = use_reactive((page_round, -1))  # the page's round at the click, and the round of the clicked post
    round_ = click.value[1] if click.value[0] == page_round and click.value[1] >= 0 else page_round
    agent_source = use_memo(lambda: source.at_round(round_), [id(source), page_round, round_])

    def select(row: int, post: int = -1) -> None:
        fault.value, selected.value = "", row
        click.value = page_round, int(source.posts().round[post]) if post >= 0 else -1

    def find_agent(text: str) -> None:
        try:
            select(source.find_agent(text))
        except PrismError as error:
            fault.value = str(error)

    with Html(tag="div", class_="prism-views"):
        states_view(source, page_round, compared)
        engagement_view(source, page_round, compared)
        oracle_view(source, page_round, compared)
        network_view(source, page_round, selected.value, select, name)
        cascade_view(source, page_round, selected.value, select, name)
        agent_view(agent_source, page_round, selected.value, find_agent, fault.value, name, go_to_round)


def most_followed(source: Source) -> int:
    """Return the most followed agent, which the page shows first; -1 if no agent is present."""
    followers = np.where(source.states() != ABSENT, source.follows().followers, -1)
    return int(followers.argmax()) if len(followers) and followers.max() >= 0 else -1


@component
def agent_view(
    source: Source,
    page_round: int,
    selected: int,
    find_agent: Callable[[str], None],
    fault: str,
    name: str,
    go_to_round: Callable[[int], None],
) -> None:
    """Show an agent, or how to choose one; if the page shows another round, offer to go there (`go_to_round`)."""
    version = use_reactive(0)
    exists = 0 <= selected < source.n_agents
    statechart = source.chart(selected if exists else 0)
    chart = use_memo(lambda: chart_svg(statechart), [id(statechart)])
    card = use_memo(
        lambda: _agent_json(source.agent(selected)) if exists else None,
        [id(source), source.round, selected, version.value],
    )
    refresh = lambda: version.set(version.peek() + 1)  # noqa: E731
    use_effect(lambda: source.explain_soon(selected, refresh) if exists else None, [id(source), source.round, selected])
    aside = f"In round {source.round}, the agent wrote the post; the other views show round {page_round}."
    title = "One agent" + (f", in round {source.round}" if source.round >= 0 else "")
    with view_card(title, "view-agent"), Html(tag="div", class_="prism-grow"):
        show_card(
            name=name,
            card=card,
            chart=chart,
            suggested=_suggested_agents(source),
            fault=fault,
            aside="" if source.round == page_round else aside,
            event_find=lambda text: find_agent(str(text)),
            event_ask=lambda row: source.explain_now(int(row), refresh),
            event_follow=lambda _: go_to_round(source.round),
        )


def _agent_json(agent: AgentDetails) -> Json:
    moves = [
        {
            "ticks": ticks,
            "times": times,
            "trigger": ", ".join(dict.fromkeys(move.trigger for move in cycle)),
            "states": [cycle[0].source.value, *(move.target.value for move in cycle)],
            "open": cycle[0].is_open,
        }
        for ticks, cycle, times in fold_moves(agent.moves)
    ]
    state = {"state": agent.state.value, "color": agent.state.color}
    return {**vars(agent), **state, "feed": [vars(post) for post in agent.feed], "moves": moves}


def _suggested_agents(source: Source) -> Sequence[Json]:
    """Return agents to suggest: the most followed, and one for each kind of engagement in the round."""
    states, followers = source.states(), source.follows().followers
    rows = {"most followed": row} if (row := most_followed(source)) >= 0 else {}
    engagements = {"reshared": AgentState.ENGAGING_RESHARE, "replied": AgentState.ENGAGING_REPLY}
    for text, state in (engagements | {"liked": AgentState.ENGAGING_LIKE}).items():
        agents = np.flatnonzero(states == state.code)
        if len(agents):
            rows[text] = int(agents[np.argmax(followers[agents])])
    return [{"text": text, "row": row} for text, row in rows.items()]


_svg_cache: dict[str, str] = {}  # by the chart's Mermaid text, because drawing a chart takes a second


def chart_svg(chart: Statechart) -> str:
    """Return a chart as an `svg` element, in which matplotlib has escaped all names."""
    key = mermaid(chart)
    if key not in _svg_cache:
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "prism"}):
            svg = StringIO()
            draw_chart(chart).savefig(svg, format="svg", metadata={"Date": None})
        _svg_cache[key] = svg.getvalue()[svg.getvalue().index("<svg") :]
    return _svg_cache[key]
