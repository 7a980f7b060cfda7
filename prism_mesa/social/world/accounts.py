"""Draw accounts of several kinds (`accounts`) and whom they follow; no draw of another agent depends on them."""

from dataclasses import replace

import numpy as np

from prism_mesa.arrays import Rows
from prism_mesa.domain import ActionName
from prism_mesa.social.behavior import configure_chart, load_chart, make_account_chart
from prism_mesa.social.params import SocialParams
from prism_mesa.social.params.accounts import ACCOUNT, AccountParams
from prism_mesa.social.state.feeds import read_expression
from prism_mesa.social.state.network import FollowNetwork, from_parts
from prism_mesa.social.state.population import Population
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.attributes import AttributeSource
from prism_mesa.social.world.profiles import draw_interests, draw_profiles
from prism_mesa.statechart import Expression, Statechart
from prism_mesa.streams import Streams


def account_kinds(params: SocialParams) -> Rows:
    """Return the kind of each account, in order of rows: the index in `accounts`."""
    return np.repeat(np.arange(len(params.accounts)), [account.n for account in params.accounts])


def read_conditions(account: AccountParams) -> dict[ActionName, Expression]:
    """Return the expression of each action of `engages`."""
    return {action: read_expression(text) for action, text in account.engages.items()}


def own_chart(params: SocialParams, kind: int) -> Statechart | None:
    """Return the chart that a kind of account has of its own, or None; raises ConfigError if there is no such chart."""
    account = params.accounts[kind]
    if account.engages:
        chart = make_account_chart(read_conditions(account), account.name)
    elif account.chart is not None:
        chart = load_chart(account.chart, f"accounts: {kind}: chart")
    else:
        return None
    return configure_chart(params.statechart, asks_action=False, chart=chart)


def own_charts(params: SocialParams) -> dict[str, Statechart]:
    """Return the charts that kinds of accounts have of their own, by name; see `own_chart`."""
    charts = ((account.name, own_chart(params, kind)) for kind, account in enumerate(params.accounts))
    return {name: chart for name, chart in charts if chart is not None}


def with_accounts(network: FollowNetwork, params: SocialParams, streams: Streams) -> FollowNetwork:
    """Return the network with a row for each account, after all others, and its follows among the other agents."""
    n, kinds = network.n_agents, account_kinds(params)
    mean = round(network.n_edges / n)
    parts: list[tuple[Rows, Rows]] = [network.edges()]
    for row, kind in enumerate(kinds.tolist(), start=n):
        account = params.accounts[kind]
        follows, followers = (mean if k is None else k for k in (account.follows, account.followers))
        followed = _draw_agents(row, follows, n, "account follows", streams)
        following = _draw_agents(row, followers, n, "account followers", streams)
        parts += [(followed, np.full(len(followed), row)), (np.full(len(following), row), following)]
    joined = from_parts(parts, n + len(kinds))
    close_indptr = np.append(network.close_indptr, np.full(len(kinds), network.close_indptr[-1]))
    ties = {"close_indptr": close_indptr, "close_indices": network.close_indices}
    return replace(joined, dropped=network.dropped, notes=network.notes, **ties)


def _draw_agents(row: int, k: int, n: int, purpose: str, streams: Streams) -> Rows:
    if 4 * k >= n:
        return np.argsort(streams.bits(purpose, np.arange(n), index=row))[:k]
    places = np.arange(2 * k + 20)  # so many that k of them differ
    draws = streams.integers(purpose, np.full(len(places), row), n, index=places)
    _, first = np.unique(draws, return_index=True)
    return draws[np.sort(first)[:k]]


def draw_accounts(
    network: FollowNetwork, topics: Topics, source: AttributeSource, params: SocialParams, streams: Streams
) -> Population:
    """Return the accounts as the last agents of a network."""
    kinds = account_kinds(params)
    rows = np.arange(network.n_agents - len(kinds), network.n_agents)
    places = np.concatenate([np.arange(1, account.n + 1) for account in params.accounts])
    ids = [f"{params.accounts[kind].name} {place}" for kind, place in zip(kinds, places, strict=True)]
    people = draw_profiles(rows, ids, draw_interests(rows, topics, streams), params, streams)
    people.attributes = source.agent_values(rows, people, network)
    people.attributes[:, source.schema.agent_attribute(ACCOUNT)[0]] = kinds + 1
    for kind, account in enumerate(params.accounts):
        for name in ("post_rate", "activity"):
            if (rate := getattr(account, name)) is not None:
                getattr(people, name)[kinds == kind] = rate
    return people
