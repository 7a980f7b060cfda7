"""Which feed which agent has: one for all, or others for those whom an intervention names."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import ConfigError
from prism_mesa.social.own.feed import OwnFeed, readable
from prism_mesa.social.params import FeedParams, SocialParams
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.social.state.population import Rows
from prism_mesa.statechart import Columns, Expression, column_values, expression_of
from prism_mesa.statechart.checks import near_field


class Feeds:
    """The feeds of a round.

    Args:
        configured: The parameters of the run.
        params: Those of the round, for all agents.
        round_: The round.
        declared: The attributes that there are.

    Raises:
        ConfigError: If an intervention names agents by what they do not have, or a feed of a user's own cannot be used.
    """

    def __init__(self, configured: SocialParams, params: SocialParams, round_: int, declared: Attributes) -> None:
        self._params, self._declared = params, declared
        self._made: dict[tuple[int, ...], tuple[FeedParams, OwnFeed | None]] = {}
        some = [(place, one) for place, one in enumerate(configured.interventions) if one.agents is not None]
        known = [name for name in readable(declared) if name.startswith("agent.")]
        for place, one in some:
            for name in sorted(expression_of(one.agents or "").fields - set(known)):
                raise ConfigError(f"interventions: {place}: agents: {name} cannot be read.{near_field(name, known)}")
        self._some = [(place, expression_of(one.agents or ""), one.set) for place, one in some if one.holds_in(round_)]
        self._feed(())

    def of(self, rows: Rows, agents: Columns) -> Iterator[tuple[Rows, FeedParams, OwnFeed | None]]:
        """Yield agents of `rows` who have the same feed, with it; `agents` are their columns."""
        if not self._some:
            yield rows, *self._feed(())
            return
        which = np.zeros(len(rows), np.int64)
        for bit, (place, expression, _) in enumerate(self._some):
            which |= self._held(place, expression, agents, len(rows)) << bit
        for code in np.unique(which).tolist():
            yield rows[which == code], *self._feed(tuple(i for i in range(len(self._some)) if code >> i & 1))

    def _held(self, place: int, expression: Expression, agents: Columns, n: int) -> npt.NDArray[np.int64]:
        values = column_values(expression, agents, agents, n)
        if values is None:
            raise ConfigError(f"interventions: {place}: agents: {expression}: is true or false of no agent")
        return values

    def _feed(self, which: tuple[int, ...]) -> tuple[FeedParams, OwnFeed | None]:
        """Return the feed of agents for whom some of the interventions hold, later ones on top."""
        if which not in self._made:
            settings: dict[str, object] = {}
            for i in which:
                settings |= self._some[i][2]
            feed = self._params.changed_by(settings).feed if settings else self._params.feed
            self._made[which] = feed, OwnFeed(feed.mode, self._declared) if ":" in feed.mode else None
        return self._made[which]
