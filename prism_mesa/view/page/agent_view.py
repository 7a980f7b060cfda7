"""The view of one agent: its actions with reasons, its feed, its chart and its profile."""

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

from prism_mesa.domain import STATE_COLORS, AgentState
from prism_mesa.statechart import Statechart, draw_chart, mermaid
from prism_mesa.view.page.source import ABSENT, AgentDetails, Source, fold_moves
from prism_mesa.view.page.widgets import Json, show_card, view_card


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
    chart = use_memo(lambda: chart_svg(source.chart), [id(source.chart)])
    exists = 0 <= selected < source.n_agents
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
    state = {"state": agent.state.value, "color": STATE_COLORS[agent.state]}
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
