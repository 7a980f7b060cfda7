"""Which feed which agent has: one for all, or others for those whom an intervention names."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import ConfigError, did_you_mean
from prism_mesa.social.own.feed import OwnFeed, readable
from prism_mesa.social.params import FeedParams, SocialParams
from prism_mesa.social.state.attributes import Attribute, Attributes
from prism_mesa.social.state.groups import MOST_GROUPS, n_groups
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
        self._configured, self._params, self._declared = configured, params, declared
        self._made: dict[tuple[int, ...], tuple[FeedParams, OwnFeed | None]] = {}
        known = [name for name in readable(declared) if name.startswith("agent.")]
        named = {place: one.agents for place, one in enumerate(configured.interventions) if one.agents is not None}
        self._named = {place: _expression(text) for place, text in named.items()}
        for place, expression in self._named.items():
            for name in sorted(expression.fields - set(known)):
                raise ConfigError(f"interventions: {place}: agents: {name} cannot be read.{near_field(name, known)}")
        for mode in {str(one.set.get("feed.mode", "")) for one in configured.interventions}:
            self._own(mode)  # so that one which cannot be used is no surprise in its round
        self._holding = {place: one for place, one in enumerate(configured.interventions) if one.holds_in(round_)}
        self._feed(())
        named_here = {one.set["feed.attribute"] for one in configured.interventions if "feed.attribute" in one.set}
        for name in {configured.feed.attribute, *named_here}:
            self._grouping(name)
        self._attribute = self._grouping(params.feed.attribute)

    def of(self, rows: Rows, agents: Columns) -> Iterator[tuple[Rows, FeedParams, OwnFeed | None]]:
        """Yield agents of `rows` who have the same feed, with it; `agents` are their columns."""
        naming = [place for place in self._named if place in self._holding]
        if not naming:
            yield rows, *self._feed(())
            return
        groups: list[tuple[Rows, tuple[int, ...]]] = [(np.arange(len(rows)), ())]
        for place in naming:
            held = self.named(place, agents, len(rows))
            split = [part for of, which in groups for part in ((of[held[of]], (*which, place)), (of[~held[of]], which))]
            groups = [part for part in split if len(part[0])]
        for of, which in groups:
            yield rows[of], *self._feed(which)

    @property
    def longest_window(self) -> int:
        """Rounds that the feeds that have been asked for look back at most."""
        return max(feed.window for feed, _ in self._made.values())

    @property
    def are_of_followed(self) -> bool:
        """Whether nothing is in the feeds that have been asked for but posts of authors whom a reader follows."""
        return not any(feed.has_others for feed, _ in self._made.values())

    @property
    def n_groups(self) -> int:
        """How many groups of agents there are by which feeds go; 0: none."""
        return 0 if self._attribute is None else n_groups(self._attribute)

    def is_bridging(self, round_: int) -> bool:
        """Return whether a bridging feed has begun by a round: what is read before it counts for none."""
        begun = [str(one.set.get("feed.mode", "")) for one in self._configured.interventions if one.at <= round_]
        return "bridging" in (self._configured.feed.mode, *begun)

    def _grouping(self, name: str | None) -> Attribute | None:
        """Return the attribute of a name, by whose groups feeds go.

        Raises:
            ConfigError: If agents do not have it, or it makes too many groups.
        """
        known = self._declared.agents
        if name is None:
            return None
        if name not in known:
            have = ", ".join(known) or "none is declared (attributes)"
            raise ConfigError(
                f"feed.attribute: {name!r} is no attribute of agents ({have}).{did_you_mean(name, known)}"
            )
        if n_groups(known[name]) > MOST_GROUPS:
            raise ConfigError(
                f"feed.attribute: {name} has {n_groups(known[name])} values; feeds go by {MOST_GROUPS} groups at most"
            )
        return known[name]

    def named(self, place: int, agents: Columns, n: int) -> npt.NDArray[np.bool_]:
        """Return whether an intervention that names agents, by its place, names each of `n`; these are their columns.

        Raises:
            ConfigError: If its expression is neither true nor false.
        """
        values = column_values(self._named[place], agents, agents, n)
        if values is None:
            said = f"{self._named[place]}: is true or false of no agent"
            raise ConfigError(f"interventions: {place}: agents: {said}")
        return np.asarray(values != 0)

    def _feed(self, which: tuple[int, ...]) -> tuple[FeedParams, OwnFeed | None]:
        """Return the feed of agents whom these interventions name: of all that hold for them a later one counts."""
        if which not in self._made:
            settings: dict[str, object] = {}
            for place, one in self._holding.items():
                settings |= one.set if one.agents is None or place in which else {}
            feed = self._configured.changed_by(settings).feed if which else self._params.feed
            self._made[which] = feed, self._own(feed.mode)
        return self._made[which]

    def _own(self, mode: str) -> OwnFeed | None:
        return OwnFeed(mode, self._declared) if ":" in mode else None


@lru_cache(maxsize=1024)
def _expression(text: str) -> Expression:
    return expression_of(text)
