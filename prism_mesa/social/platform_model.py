"""A Mesa model over a platform; the platform's fields are also available on the model."""

from typing import Any, Final

from prism_mesa.domain import Post
from prism_mesa.reasoner import AnyReasoner
from prism_mesa.round_model import PartAttribute, RoundModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.state.events import Clock, Events
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.feeds import Feeds
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.odds import Odds
from prism_mesa.social.state.opinions import Opinions
from prism_mesa.social.state.outcomes import Outcomes
from prism_mesa.social.state.population import History, Population
from prism_mesa.social.state.posts import Posts
from prism_mesa.social.state.relations import Relations
from prism_mesa.social.state.sampling import RecordedAgents
from prism_mesa.streams import Streams

_FIELDS: Final = (
    "params configured streams tables reasoner writer population network first_network drawn_network first_agents "
    "topics attributes feeds schedule seeded archetypes llms odds posts history exposure copies engagements "
    "group_counts relations opinions liked notebook outcomes recorded time_of_day round tick first_of_round clock "
    "hours now events pending leaving counts totals sources written tick_counts agent_ticks row_by_row_guards notes"
).split()
"""Fields of `Platform` that a model exposes."""


class _PlatformField(PartAttribute[Any]):
    """A read-only field of a model's platform."""

    part = "platform"


class PlatformModel(RoundModel):
    """A Mesa model with a `platform`. You can read the platform's fields on the model (see `Platform`)."""

    params: SocialParams
    population: Population
    posts: Posts
    reasoner: AnyReasoner
    round: int
    network: FollowNetwork
    relations: Relations
    odds: Odds
    opinions: Opinions
    feeds: Feeds
    exposure: Exposure
    history: History
    events: Events
    outcomes: Outcomes
    recorded: RecordedAgents
    time_of_day: Clock
    streams: Streams
    _platform: Platform

    @property
    def platform(self) -> Platform:
        """The state of the platform; to continue from a branch, set the branch."""
        return self._platform

    @platform.setter
    def platform(self, platform: Platform) -> None:
        self._platform = platform
        platform.agent_objects = self

    def post(self, post_id: int, reader: int) -> Post | None:
        """Return a post as the agent of row `reader` sees it; None for `NO_POST`."""
        return self.platform.post(post_id, reader)


for _name in _FIELDS:
    _field = _PlatformField()
    _field.__set_name__(PlatformModel, _name)
    setattr(PlatformModel, _name, _field)
