"""Agents and models as a notebook shows them."""

from typing import Any, Final

from prism_mesa.domain import Post
from prism_mesa.markup import bar_html, card_html, chip_html, facts_html, fold_html, html_or_repr, note_html, table_html
from prism_mesa.statechart import STATE_COLORS

_POSTS: Final = 8
"""Posts of a feed that are shown."""
_LEAST: Final = 0.005
"""Shares from which on a state is named."""
_TOTALS: Final = {
    **{what: what for what in ("posts", "impressions", "likes", "replies", "reshares")},
    "open": "open choices",
}


def _author(post: Post) -> str:
    return post.author_name if post.kind == "post" else f"{post.author_name} ({post.kind})"


class AgentCard:
    """How a notebook shows an agent."""

    @html_or_repr
    def _repr_html_(self: Any) -> str:
        ticks, state, current = self.ticks_in_state, self.state, self.current_post
        at = "" if current is None else f" on post {current.post_id}"
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.propensities.items())
        facts = {
            "state": chip_html(STATE_COLORS[state], f"{state.value}{at}, for {ticks} tick{'' if ticks == 1 else 's'}"),
            "likes to read of": ", ".join(self.interests),
            "personality": self.personality,
            "asks within": f"{self.low_threshold:.3f} to {self.high_threshold:.3f} of utility",
            "each round": f"online with probability {self.activity:.2g}, posts with {self.post_rate:.2g}",
            "engages by": shares,
        }
        feed = self.feed
        rows = [
            (post.post_id, _author(post), f"{post.utility:.2f}", post.likes + post.replies + post.reshares, post.text)
            for post in feed[:_POSTS]
        ]
        table = table_html(("post", "by", "utility", "engagements", "text"), rows)
        unread = fold_html(f"feed: {len(feed)} unread", table) if rows else "nothing unread in its feed"
        away = "" if not self.has_left else ", not there"
        return card_html(
            "agent", self.name, facts_html(facts.items()), unread, remark=f"row {self.row}, id {self.agent_id}{away}"
        )


class ModelCard:
    """How a notebook shows a model."""

    @html_or_repr
    def _repr_html_(self: Any) -> str:
        params, row, totals = self.params, self.round_row, self.totals
        shares = [(state.value, color, row.get(f"share_{state.value}", 0.0)) for state, color in STATE_COLORS.items()]
        active = ", ".join(f"{name} {share:.1%}" for name, _, share in shares if share >= _LEAST)
        last = (bar_html(shares), note_html(f"agent-ticks of round {self.round}: {active}")) if row else ()
        facts = {
            "feed": params.feed.ranking,
            "follows": f"{self.network.n_edges:,}, {params.network.kind}, {params.network.dynamics}",
            "decided by": self.reasoner.label,
            "so far": ", ".join(f"{totals[what]:,} {label}" for what, label in _TOTALS.items())
            if row
            else "no round has been run",
        }
        remark = f"{int(self.population.present.sum()):,} agents, seed {params.seed}"
        return card_html(
            "model", f"{self.round + 1} of {params.rounds} rounds", *last, facts_html(facts.items()), remark=remark
        )
