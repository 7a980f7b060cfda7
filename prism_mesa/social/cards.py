"""Cards of agents and models in notebooks."""

from typing import Any, Final

from prism_mesa.domain import Post
from prism_mesa.markup import bar_of, card_of, chip_of, facts_of, fold_of, note_of, shown_or_plain, table_of
from prism_mesa.statechart import STATE_COLORS

_POSTS: Final = 8
"""Posts of a feed that are shown."""
_MIN_SHARE: Final = 0.005
"""The smallest share for which a state is named."""
_TOTALS: Final = ("posts", "impressions", "likes", "replies", "reshares", "open")


def _post_row(post: Post) -> tuple[object, ...]:
    author = post.author_name if post.kind == "post" else f"{post.author_name} ({post.kind})"
    return post.post_id, author, f"{post.utility:.2f}", post.likes + post.replies + post.reshares, post.text


class AgentCard:
    """Shows an agent in a notebook."""

    @shown_or_plain
    def _repr_html_(self: Any) -> str:
        ticks, state, current = self.ticks_in_state, self.state, self.current_post
        at = "" if current is None else f" on post {current.post_id}"
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.propensities.items())
        facts = {
            "state": chip_of(STATE_COLORS[state], f"{state.value}{at}, for {ticks} tick{'' if ticks == 1 else 's'}"),
            "likes to read of": ", ".join(self.interests),
            "personality": self.personality,
            "asks within": f"{self.low_threshold:.3f} to {self.high_threshold:.3f} of utility",
            "each round": f"online with probability {self.activity:.2g}, posts with {self.post_rate:.2g}",
            "engages by": shares,
        }
        feed = self.feed
        table = table_of(("post", "by", "utility", "engagements", "text"), map(_post_row, feed[:_POSTS]))
        unread = fold_of(f"feed: {len(feed)} unread", table) if feed else "nothing unread in its feed"
        away = ", not there" if self.has_left else ""
        return card_of("agent", self.name, facts_of(facts), unread, about=f"row {self.row}, id {self.agent_id}{away}")


class ModelCard:
    """Shows a model in a notebook."""

    @shown_or_plain
    def _repr_html_(self: Any) -> str:
        params, row, totals = self.params, self.round_row, self.totals
        shares = [(state.value, color, row.get(f"share_{state.value}", 0.0)) for state, color in STATE_COLORS.items()]
        active = ", ".join(f"{name} {share:.1%}" for name, _, share in shares if share >= _MIN_SHARE)
        last = (bar_of(shares), note_of(f"agent-ticks of round {self.round}: {active}")) if row else ()
        facts = {
            "feed": params.feed.ranking,
            "follows": f"{self.network.n_edges:,}, {params.network.kind}, {params.network.dynamics}",
            "decided by": self.reasoner.label,
            "so far": ", ".join(f"{totals[name]:,} {name}" for name in _TOTALS) + " choices" if row else "no round yet",
        }
        about = f"{int(self.population.present.sum()):,} agents, seed {params.seed}"
        return card_of("model", f"{self.round + 1} of {params.rounds} rounds", *last, facts_of(facts), about=about)
