"""A Mesa model over a platform, whose state can be read on the model."""

from collections import Counter, deque
from datetime import datetime

import numpy as np
import numpy.typing as npt

from prism_mesa.deliberation import Notebook
from prism_mesa.domain import Post
from prism_mesa.reasoner import AnyReasoner
from prism_mesa.round_model import Read, RoundModel
from prism_mesa.social.opinions.own import Opinions
from prism_mesa.social.own.feeds import Feeds
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform, Writer
from prism_mesa.social.round.prompt_interests import PromptInterests
from prism_mesa.social.round.walk_tables import WalkTables
from prism_mesa.social.state.engagements import Engagements
from prism_mesa.social.state.events import Clock, Events, PendingAnswers
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.groups import GroupCounts
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.odds import Odds
from prism_mesa.social.state.outcomes import Outcomes
from prism_mesa.social.state.population import History, Population
from prism_mesa.social.state.posts import Posts
from prism_mesa.social.state.relations import Relations
from prism_mesa.social.state.sampling import Recorded
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.archetypes import Archetypes
from prism_mesa.social.world.attributes import AttributeSource
from prism_mesa.social.world.build import Schedule
from prism_mesa.social.world.llms import AgentLLMs
from prism_mesa.social.world.seeded import Seeded
from prism_mesa.streams import Streams


class _Read[T](Read[T]):
    """A field of the platform."""

    part = "platform"


class PlatformModel(RoundModel):
    """A Mesa model with the state of a `platform`, whose fields can be read here too (`Platform` explains them)."""

    _platform: Platform

    params = _Read[SocialParams]()
    streams = _Read[Streams]()
    tables = _Read[WalkTables]()
    reasoner = _Read[AnyReasoner]()
    writer = _Read[Writer]()
    population = _Read[Population]()
    network = _Read[FollowNetwork]()
    first_network = _Read[FollowNetwork]()
    drawn_network = _Read[FollowNetwork]()
    first_agents = _Read[dict[str, int]]()
    topics = _Read[Topics]()
    configured = _Read[SocialParams]()
    attributes = _Read[AttributeSource]()
    feeds = _Read[Feeds]()
    schedule = _Read[Schedule]()
    seeded = _Read[Seeded]()
    archetypes = _Read[Archetypes | None]()
    llms = _Read[AgentLLMs]()
    odds = _Read[Odds]()
    posts = _Read[Posts]()
    prompt_interests = _Read[PromptInterests]()
    history = _Read[History]()
    exposure = _Read[Exposure]()
    copies = _Read[Exposure]()
    met = _Read[Exposure]()
    engagements = _Read[Engagements]()
    group_counts = _Read[GroupCounts]()
    relations = _Read[Relations]()
    opinions = _Read[Opinions]()
    liked = _Read[dict[int, deque[tuple[int, int, int]]]]()
    notebook = _Read[Notebook]()
    outcomes = _Read[Outcomes]()
    recorded = _Read[Recorded]()
    time_of_day = _Read[Clock]()
    round = _Read[int]()
    tick = _Read[int]()
    first_of_round = _Read[int]()
    clock = _Read[int]()
    hours = _Read[float]()
    now = _Read[datetime]()
    events = _Read[Events]()
    pending = _Read[PendingAnswers]()
    leaving = _Read[dict[int, None]]()
    counts = _Read[Counter[str]]()
    totals = _Read[Counter[str]]()
    sources = _Read[Counter[str]]()
    written = _Read[Counter[str]]()
    tick_counts = _Read[npt.NDArray[np.int64]]()
    agent_ticks = _Read[npt.NDArray[np.int64]]()
    row_by_row_guards = _Read[set[str]]()
    notes = _Read[tuple[str, ...]]()

    @property
    def platform(self) -> Platform:
        """All that a round reads and writes; a model that is given another one, such as a branch, goes on from that."""
        return self._platform

    @platform.setter
    def platform(self, platform: Platform) -> None:
        self._platform = platform
        platform.scripts = self

    def post(self, post_id: int, reader: int) -> Post | None:
        """Return a post as the agent of row `reader` sees it; None for `NO_POST`."""
        return self.platform.post(post_id, reader)
