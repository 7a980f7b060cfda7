"""The views of a run at one moment, each in a card; all read a `Source`, and draw in the browser.

A view works out anew only what has changed since the round before.
"""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from reacton.core import use_memo
from reacton.ipyvuetify import Html
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.errors import PrismError, counted, shortened
from prism_mesa.llm.params import STAND_INS
from prism_mesa.statechart import STATE_COLORS, AgentState
from prism_mesa.view.page.chart_picture import chart_svg
from prism_mesa.view.page.layout import Drawn, drawn_follows, lay_out
from prism_mesa.view.page.source import NOT_THERE, AgentAttribute, AgentOnShow, Follows, OracleOnShow, Source
from prism_mesa.view.page.trees import Tree, largest_cascades, tree_of
from prism_mesa.view.page.widgets import Json, packed, show_answers, show_card, show_graph, show_inputs, show_series

type OnAgent = Callable[[int], None]

MOST_POINTS: Final = 300
"""Rounds that lines are drawn of; of more, means of several."""
_ACTIVE: Final = tuple(state for state in STATE_COLORS if state is not AgentState.IDLE)
_ENGAGEMENT: Final = {
    "likes": STATE_COLORS[AgentState.ENGAGING_LIKE],
    "replies": STATE_COLORS[AgentState.ENGAGING_REPLY],
    "reshares": STATE_COLORS[AgentState.ENGAGING_RESHARE],
}
_GROUP_COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_OTHER: Final = "#8a8a8a"
_SCALE: Final = ("#fde725", "#b5de2b", "#6ece58", "#35b779", "#1f9e89", "#26828e", "#31688e", "#3e4989", "#482878")
"""Of numbers, from low to high: viridis in nine steps."""
_STATE: Final = "state"
_SOURCE_COLORS: Final = {
    "llm": "#0072b2",
    "cache": "#56b4e9",
    "rule": "#009e73",
    "distilled": "#cc79a7",
    "fallback": "#d55e00",
    "budget": "#e69f00",
    "failed": "#b3261e",
}
_LARGEST: Final = "the largest so far"
_CHOICES: Final = 6


@component
def show_views(source: Source, at: int, name: str = "page") -> None:
    """All views of a source at its round `at`; `name` tells two sets of views on one page apart."""
    chosen = use_reactive(_most_followed(source))
    fault = use_reactive("")

    def choose(row: int) -> None:
        fault.value, chosen.value = "", row

    def find(said: str) -> None:
        try:
            choose(source.find_agent(said))
        except PrismError as error:
            fault.value = str(error)

    with Html(tag="div", class_="prism-views"):
        _states_view(source, at)
        _engagement_view(source, at)
        _oracle_view(source, at)
        _network_view(source, at, chosen.value, choose, name)
        _cascade_view(source, at, chosen.value, choose, name)
        _agent_view(source, at, chosen.value, find, fault.value, name)


def _most_followed(source: Source) -> int:
    """Return whom the page shows at first; -1 if nobody is there."""
    followers = np.where(source.states() != NOT_THERE, source.follows().followers, -1)
    return int(followers.argmax()) if len(followers) and followers.max() >= 0 else -1


def _card(title: str, kind: str) -> Any:
    """Return a card with a heading, as a context in which its content is put."""
    return Html(tag="section", class_=f"prism-card {kind}", children=[Html(tag="h2", children=[title])])


def thinned(
    rounds: np.ndarray[Any, Any], columns: Mapping[str, np.ndarray[Any, Any]]
) -> tuple[list[int], dict[str, Any]]:
    """Return rounds and columns of at most `MOST_POINTS` rows: the first round and the means of as many each."""
    step = -(-len(rounds) // MOST_POINTS) if len(rounds) else 1
    starts = np.arange(0, len(rounds), step)
    many = np.diff(np.append(starts, len(rounds)))
    kept = {
        name: [float(f"{v:.5g}") for v in (np.add.reduceat(column, starts) / many if len(starts) else column).tolist()]
        for name, column in columns.items()
    }
    return [int(number) for number in rounds[starts]], kept


@component
def _states_view(source: Source, at: int) -> None:
    columns = source.round_columns()
    shares = {state: columns.get(f"share_{state.value}", np.zeros(0)) for state in _ACTIVE}
    rounds, kept = thinned(columns.get("round", np.zeros(0)), {state.value: shares[state] for state in _ACTIVE})
    idle = columns.get("share_idle", np.zeros(0))
    rest = f"; the rest is idle ({100 * idle[-1]:.1f} %)" if len(idle) else ""
    with _card("What agents do", "view-states short"), Html(tag="div", class_="prism-grow"):
        show_series(
            label=f"Shares of agent-ticks in each state by round, up to round {at}",
            unit=f"share of agent-ticks{rest}",
            rounds=rounds,
            series=[{"name": s.value, "color": STATE_COLORS[s], "values": kept[s.value]} for s in reversed(_ACTIVE)],
            span=_span(source, at),
            stacked=True,
            percent=True,
            least=0.01,
        )


@component
def _engagement_view(source: Source, at: int) -> None:
    columns = source.round_columns()
    rounds, kept = thinned(
        columns.get("round", np.zeros(0)), {name: columns.get(name, np.zeros(0)) for name in _ENGAGEMENT}
    )
    read = columns.get("impressions", np.zeros(0))
    per = (
        f"; {sum(columns[n][-1] for n in _ENGAGEMENT) / read[-1]:.2%} of impressions" if len(read) and read[-1] else ""
    )
    with _card("Engagement", "view-engagement short"), Html(tag="div", class_="prism-grow"):
        show_series(
            label=f"Likes, replies and reshares by round, up to round {at}",
            unit=f"per round{per}",
            rounds=rounds,
            series=[{"name": name, "color": color, "values": kept[name]} for name, color in _ENGAGEMENT.items()],
            span=_span(source, at),
            stacked=False,
            percent=False,
            least=4,
        )


def _span(source: Source, at: int) -> int:
    """Return how many rounds an axis has: all, but of a long run some more than there are so far."""
    return min(source.rounds, max(30, 2 * (at + 1)))


@component
def _oracle_view(source: Source, at: int) -> None:
    oracle, columns = source.oracle(), source.round_columns()
    counts = {name: columns.get(name, np.zeros(0)) for name in ("open", "fallback")}
    rounds, kept = thinned(columns.get("round", np.zeros(0)), counts)
    colors = {"open": _SOURCE_COLORS["llm"], "fallback": _SOURCE_COLORS["fallback"]}
    names = {"open": "open choices", "fallback": "fallbacks"}
    with _card("Oracle: who decides what is open", "view-oracle short"):
        show_answers(
            label=oracle.label,
            sources=_answer_shares(oracle),
            spent=[_spent_row(one.what, one.spent, one.limit) for one in oracle.spent],
            reasons=[f"{reason} ({n:,})" for reason, n in oracle.reasons.items()],
            notes=list(oracle.notes),
        )
        with Html(tag="div", class_="prism-grow"):
            show_series(
                label=f"Open choices and fallbacks by round, up to round {at}",
                unit="per round",
                rounds=rounds,
                series=[{"name": names[n], "color": colors[n], "values": kept[n]} for n in counts],
                span=_span(source, at),
                stacked=False,
                percent=False,
                least=4,
            )


def _answer_shares(oracle: OracleOnShow) -> list[Json]:
    counts = {name: n for name, n in (oracle.sources or {}).items() if n}
    total = sum(counts.values())
    order = sorted(counts, key=lambda name: (name in STAND_INS, -counts[name]))
    return [
        {
            "name": name,
            "n": counts[name],
            "share": f"{counts[name] / total:.1%}",
            "color": _SOURCE_COLORS.get(name, _OTHER),
        }
        for name in order
    ]


def _spent_row(what: str, spent: float, limit: float | None) -> Json:
    number = "{:,.0f}" if spent >= 100 or spent == int(spent) else "{:,.1f}"
    return {"what": what, "spent": number.format(spent), "limit": "no limit" if limit is None else f"of {limit:,g}"}


@component
def _network_view(source: Source, at: int, chosen: int, choose: OnAgent, name: str) -> None:
    by = use_reactive(_STATE)
    attributes = source.attributes()
    follows = source.follows()
    drawn = use_memo(lambda: lay_out(follows), [id(source), source.n_agents])
    nodes = use_memo(lambda: _network_nodes(source, drawn, follows), [drawn, follows])
    pairs = use_memo(lambda: drawn_follows(drawn, follows), [drawn, follows])
    links = use_memo(lambda: packed(np.stack(pairs, axis=1), np.int32), [pairs])
    colour = by.value if by.value in attributes else _STATE
    codes, legend = _network_colors(source, attributes, colour)
    note = _network_note(source, drawn, len(pairs[0]), len(follows.src))
    with _card("Who follows whom", "view-network tall"):
        item = {"group": "", "key": "by", "label": "coloured by", "kind": "select", "value": colour}
        show_inputs(
            name=f"{name}-network",
            items=[{**item, "choices": [_STATE, *attributes]}],
            inline=True,
            event_change=lambda change: by.set(change["value"]),
        )
        with Html(tag="div", class_="prism-grow"):
            show_graph(
                label=f"The network of {counted(len(drawn.agents), 'agent')} after round {at}, coloured by {colour}",
                nodes=nodes,
                links=links,
                colors=packed(codes[drawn.agents], np.uint8),
                palette=[color for _, color in legend],
                legend=[{"name": said, "color": color} for said, color in legend],
                note=note,
                selected=chosen,
                axis=None,
                square=True,
                curved=False,
                event_pick=lambda picked: choose(int(picked["id"])),
            )


def _network_nodes(source: Source, drawn: Drawn, follows: Follows) -> Json:
    followers = follows.followers[drawn.agents]
    least = 1.6 if len(drawn.agents) > 1000 else 2.4
    size = least + 9 * np.sqrt(followers / max(1, int(followers.max(initial=0))))
    return {
        "key": "network",
        "x": packed(drawn.where[:, 0], np.float32),
        "y": packed(drawn.where[:, 1], np.float32),
        "size": packed(size, np.float32),
        "ids": packed(drawn.agents, np.int32),
        "names": [
            f"{source.agent_name(row)} ({row}), {n:,} followers"
            for row, n in zip(drawn.agents.tolist(), followers.tolist(), strict=True)
        ],
    }


def _network_colors(
    source: Source, attributes: Mapping[str, AgentAttribute], by: str
) -> tuple[np.ndarray[Any, Any], list[tuple[str, str]]]:
    """Return a code for each agent, and what the codes stand for: name and colour."""
    states = source.states()
    if by == _STATE:
        place = np.full(256, NOT_THERE, np.uint8)
        for rank, state in enumerate(STATE_COLORS):
            place[state.code] = rank
        return place[states], [(state.value, color) for state, color in STATE_COLORS.items()]
    own = attributes[by]
    values = own.values
    known = np.isfinite(values) & (states != NOT_THERE)
    codes = np.full(len(values), NOT_THERE, np.uint8)
    if own.names:
        common = np.argsort(-np.bincount(values[known].astype(np.int64), minlength=len(own.names)), kind="stable")
        few = np.sort(common[: len(_GROUP_COLORS)])
        place = np.full(len(own.names), len(few), np.uint8)
        place[few] = np.arange(len(few))
        codes[known] = place[values[known].astype(np.int64)]
        legend = [(shortened(own.names[i], 30), _GROUP_COLORS[at]) for at, i in enumerate(few.tolist())]
        return codes, legend + ([("others", _OTHER)] if len(own.names) > len(few) else [])
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 1.0)
    part = (values[known] - low) / max(high - low, 1e-12) * len(_SCALE)
    codes[known] = np.clip(part, 0, len(_SCALE) - 1).astype(np.uint8)
    ends = [f"{low:.3g}", *[""] * (len(_SCALE) - 2), f"{high:.3g} {own.unit}".strip()]
    return codes, list(zip(ends, _SCALE, strict=True))


def _network_note(source: Source, drawn: Drawn, n_pairs: int, n_follows: int) -> str:
    n = len(drawn.agents)
    agents = f"{n:,} of {source.n_agents:,} agents, drawn evenly" if n < source.n_agents else counted(n, "agent")
    share = f"{n_pairs:,} of {n_follows:,} follows" if n_pairs < n_follows else counted(n_follows, "follow")
    return f"{agents}; {share} as lines; the larger a dot, the more followers; colour: the most it did in the round."


@component
def _cascade_view(source: Source, at: int, chosen: int, choose: OnAgent, name: str) -> None:
    wanted = use_reactive(-1)
    posts = source.posts()
    best = largest_cascades(posts, _CHOICES)
    roots = [root for root, _ in best]
    root = wanted.value if wanted.value in roots else roots[0] if roots else -1
    with _card("Cascades: who reshared whose post", "view-cascade tall"):
        if root < 0:
            Html(tag="p", class_="prism-hint", children=["No post has been reshared yet."])
            return
        told = {f"{place}: {size:,} posts, root {own}": own for place, (own, size) in enumerate(best, 1)}
        item = {"group": "", "key": "cascade", "label": "cascade", "kind": "select", "choices": [_LARGEST, *told]}
        value = _LARGEST if wanted.value not in roots else next(said for said, own in told.items() if own == root)
        show_inputs(
            name=f"{name}-cascade",
            items=[{**item, "value": value}],
            inline=True,
            event_change=lambda change: wanted.set(told.get(change["value"], -1)),
        )
        tree = tree_of(posts, root)
        rounds = posts.round[tree.posts]
        author = source.agent_name(int(posts.author[root]))
        said = f"{author} wrote in round {int(rounds[0])}: “{shortened(source.post_text(root), 160)}”"
        Html(tag="p", class_="prism-note", children=[said])
        first, last = int(rounds[0]), max(int(rounds[0]) + 1, at + 1, int(rounds.max()))
        x = 2 * (rounds - first) / (last - first) - 1
        depth = np.minimum(tree.depth, len(_SCALE) - 1)
        with Html(tag="div", class_="prism-grow"):
            show_graph(
                label=f"A cascade of {counted(len(tree.posts), 'post')} as a tree, from round {first} to {at}",
                nodes=_tree_nodes(source, tree, x, posts.author[tree.posts], rounds),
                links=packed(np.stack([tree.parent[1:], np.arange(1, len(tree.posts))], axis=1), np.int32),
                colors=packed(len(_SCALE) - 1 - depth, np.uint8),
                palette=list(_SCALE),
                legend=[
                    {"name": f"depth {d}{' or more' if d == len(_SCALE) - 1 else ''}", "color": _SCALE[-1 - d]}
                    for d in range(int(depth.max()) + 1)
                ],
                note=_tree_note(tree, rounds, at),
                selected=chosen,
                axis={
                    "name": "round in which it appeared",
                    "ticks": [
                        {"at": 2 * (r - first) / (last - first) - 1, "text": str(r)} for r in range(first, last + 1)
                    ],
                },
                square=False,
                curved=True,
                event_pick=lambda picked: choose(int(picked["id"])),
            )


def _tree_nodes(source: Source, tree: Tree, x: Any, authors: Any, rounds: Any) -> Json:
    high = max(1.0, float(tree.row.max()))
    y = 1 - 2 * tree.row / high if len(tree.posts) > 1 else np.zeros(len(tree.posts))
    size = np.full(len(tree.posts), 3.2 if len(tree.posts) > 300 else 4.5)
    size[0] = 7.5
    return {
        "key": f"cascade {int(tree.posts[0])}",
        "x": packed(x, np.float32),
        "y": packed(y, np.float32),
        "size": packed(size, np.float32),
        "ids": packed(authors, np.int32),
        "names": [
            f"{source.agent_name(row)} ({row}), round {round_}"
            for row, round_ in zip(authors.tolist(), rounds.tolist(), strict=True)
        ],
    }


def _tree_note(tree: Tree, rounds: Any, at: int) -> str:
    new = int((rounds == at).sum())
    return (
        f"{counted(len(tree.posts) - 1, 'reshare')}, {int(tree.depth.max())} deep, {new:,} new in round {at}; "
        "each dot is a post at its round, under the one that it passes on. Click it for its author."
    )


@component
def _agent_view(source: Source, at: int, chosen: int, find: Callable[[str], None], fault: str, name: str) -> None:
    chart = use_memo(lambda: chart_svg(source.chart), [id(source.chart)])
    there = 0 <= chosen < source.n_agents
    card = use_memo(lambda: _agent_json(source.agent(chosen)) if there else None, [id(source), at, chosen])
    with _card("One agent", "view-agent"), Html(tag="div", class_="prism-grow"):
        show_card(
            name=name,
            card=card,
            chart=chart,
            suggested=_suggested(source),
            fault=fault,
            event_find=lambda said: find(str(said)),
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
        "feedNote": agent.feed_note,
        "feed": [
            {
                "place": post.place,
                "author": post.author,
                "text": post.text,
                "kind": post.kind,
                "told": post.told,
                "read": post.was_read,
                "did": post.did,
            }
            for post in agent.feed
        ],
        "moves": [
            {
                "tick": move.tick,
                "trigger": move.trigger,
                "source": move.source.value,
                "target": move.target.value,
                "open": move.is_open,
            }
            for move in agent.moves
        ],
    }


def _suggested(source: Source) -> Sequence[Json]:
    """Return agents that are worth a look: the most followed, and one of each engagement in the round."""
    states, followers = source.states(), source.follows().followers
    most = _most_followed(source)
    found = {"most followed": most} if most >= 0 else {}
    for state in (AgentState.ENGAGING_RESHARE, AgentState.ENGAGING_REPLY, AgentState.ENGAGING_LIKE):
        rows = np.flatnonzero(states == state.code)
        if len(rows):
            found[{"engaging_reshare": "reshared", "engaging_reply": "replied"}.get(state.value, "liked")] = int(
                rows[np.argmax(followers[rows])]
            )
    return [{"text": said, "row": row} for said, row in found.items()]
