"""The view of one agent: its actions with reasons, its feed, its chart and its profile."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Final

import matplotlib
import numpy as np
from reacton.core import use_effect, use_memo
from reacton.ipyvuetify import Html
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.statechart import STATE_COLORS, AgentState, Statechart, draw_chart, mermaid
from prism_mesa.view.page.source import NOT_THERE, AgentOnShow, Source, folded_moves
from prism_mesa.view.page.widgets import Json, show_card, view_card

type TellSoon = Callable[[int, Callable[[], None]], Callable[[], None]]
"""Takes an agent and a callback for when its round is explained; returns a function that cancels it."""


def most_followed(source: Source) -> int:
    """Return the most followed agent, which the page shows first; -1 if no agent is present."""
    followers = np.where(source.states() != NOT_THERE, source.follows().followers, -1)
    return int(followers.argmax()) if len(followers) and followers.max() >= 0 else -1


@component
def agent_view(
    source: Source,
    at: int,
    chosen: int,
    find: Callable[[str], None],
    fault: str,
    name: str,
    ask: Callable[[int], None] = lambda row: None,
    others_at: int | None = None,
    go: Callable[[int], None] = lambda round_: None,
    tell_soon: TellSoon = lambda row, on_told: lambda: None,
) -> None:
    """Show one agent, or how to choose one; a click on "why" calls `ask`.

    If the other views show another round, `others_at`, the card says so and offers to call `go`. It calls `tell_soon`
    with its agent, which calls back when the source knows more about that agent.
    """
    version = use_reactive(0)
    chart = use_memo(lambda: chart_svg(source.chart), [id(source.chart)])
    there = 0 <= chosen < source.n_agents
    card = use_memo(
        lambda: _agent_json(source.agent(chosen)) if there else None, [id(source), at, chosen, version.value]
    )
    more = lambda: version.set(version.peek() + 1)  # noqa: E731
    use_effect(lambda: tell_soon(chosen, more) if there else None, [id(source), at, chosen])
    aside = f"This is round {at}, in which it wrote the post; all other views are of round {others_at}."
    with (
        view_card("One agent" + (f", in round {at}" if at >= 0 else ""), "view-agent"),
        Html(tag="div", class_="prism-grow"),
    ):
        show_card(
            name=name,
            card=card,
            chart=chart,
            suggested=_suggested(source),
            fault=fault,
            aside="" if others_at in (None, at) else aside,
            event_find=lambda text: find(str(text)),
            event_ask=lambda row: ask(int(row)),
            event_follow=lambda _: go(at),
        )


def _agent_json(agent: AgentOnShow) -> Json:
    return {
        "row": agent.row,
        "name": agent.name,
        "id": agent.agent_id,
        "state": agent.state.value,
        "color": STATE_COLORS[agent.state],
        "profile": [list(pair) for pair in agent.profile],
        "why": list(agent.why),
        "whyNote": agent.why_note,
        "ask": agent.ask,
        "feedNote": agent.feed_note,
        "feed": [
            {name: getattr(post, name) for name in ("place", "author", "text", "kind", "told", "did")}
            | {"read": post.was_read}
            for post in agent.feed
        ],
        "moves": [
            {
                "ticks": ticks,
                "times": times,
                "trigger": ", ".join(dict.fromkeys(move.trigger for move in part)),
                "states": [part[0].source.value, *(move.target.value for move in part)],
                "open": part[0].is_open,
            }
            for ticks, part, times in folded_moves(agent.moves)
        ],
    }


def _suggested(source: Source) -> Sequence[Json]:
    """Return agents to suggest: the most followed, and one for each kind of engagement in the round."""
    states, followers = source.states(), source.follows().followers
    rows = {"most followed": most} if (most := most_followed(source)) >= 0 else {}
    acts = {"reshared": AgentState.ENGAGING_RESHARE, "replied": AgentState.ENGAGING_REPLY}
    for text, state in (acts | {"liked": AgentState.ENGAGING_LIKE}).items():
        agents = np.flatnonzero(states == state.code)
        if len(agents):
            rows[text] = int(agents[np.argmax(followers[agents])])
    return [{"text": text, "row": row} for text, row in rows.items()]


_MOST_KEPT: Final = 8
_kept: dict[str, str] = {}  # by the chart as text: placing its arrows takes a second


def chart_svg(chart: Statechart) -> str:
    """Return a chart as an `svg` element. matplotlib escapes the names in it."""
    key = mermaid(chart)
    if key not in _kept:
        if len(_kept) >= _MOST_KEPT:
            del _kept[next(iter(_kept))]
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "prism"}):
            out = StringIO()
            draw_chart(chart).savefig(out, format="svg", metadata={"Date": None})
        _kept[key] = out.getvalue()[out.getvalue().index("<svg") :]
    return _kept[key]
