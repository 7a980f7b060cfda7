"""A Mesa model over a platform, whose state is also available on the model."""

from collections.abc import Callable
from typing import Any, cast

from prism_mesa.domain import Post
from prism_mesa.round_model import Read, RoundModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform


class PlatformField[T](Read[T]):
    """A field of the platform that can be read on the model."""

    part = "platform"

    def __init__(self, get: Callable[[Platform], T]) -> None:
        self._get = get

    def __get__(self, model: Any, owner: type) -> T:
        return cast(T, self) if model is None else self._get(model.platform)


class PlatformModel(RoundModel):
    """A Mesa model with a `platform`. You can read the platform's fields on the model (see `Platform`)."""

    _platform: Platform

    params = PlatformField[SocialParams](lambda p: p.params)
    streams = PlatformField(lambda p: p.streams)
    tables = PlatformField(lambda p: p.tables)
    reasoner = PlatformField(lambda p: p.reasoner)
    writer = PlatformField(lambda p: p.writer)
    population = PlatformField(lambda p: p.population)
    network = PlatformField(lambda p: p.network)
    first_network = PlatformField(lambda p: p.first_network)
    drawn_network = PlatformField(lambda p: p.drawn_network)
    first_agents = PlatformField(lambda p: p.first_agents)
    topics = PlatformField(lambda p: p.topics)
    configured = PlatformField(lambda p: p.configured)
    attributes = PlatformField(lambda p: p.attributes)
    feeds = PlatformField(lambda p: p.feeds)
    schedule = PlatformField(lambda p: p.schedule)
    seeded = PlatformField(lambda p: p.seeded)
    archetypes = PlatformField(lambda p: p.archetypes)
    llms = PlatformField(lambda p: p.llms)
    odds = PlatformField(lambda p: p.odds)
    posts = PlatformField(lambda p: p.posts)
    history = PlatformField(lambda p: p.history)
    exposure = PlatformField(lambda p: p.exposure)
    copies = PlatformField(lambda p: p.copies)
    met = PlatformField(lambda p: p.met)
    engagements = PlatformField(lambda p: p.engagements)
    group_counts = PlatformField(lambda p: p.group_counts)
    relations = PlatformField(lambda p: p.relations)
    opinions = PlatformField(lambda p: p.opinions)
    liked = PlatformField(lambda p: p.liked)
    notebook = PlatformField(lambda p: p.notebook)
    outcomes = PlatformField(lambda p: p.outcomes)
    recorded = PlatformField(lambda p: p.recorded)
    time_of_day = PlatformField(lambda p: p.time_of_day)
    round = PlatformField(lambda p: p.round)
    tick = PlatformField(lambda p: p.tick)
    first_of_round = PlatformField(lambda p: p.first_of_round)
    clock = PlatformField(lambda p: p.clock)
    hours = PlatformField(lambda p: p.hours)
    now = PlatformField(lambda p: p.now)
    events = PlatformField(lambda p: p.events)
    pending = PlatformField(lambda p: p.pending)
    leaving = PlatformField(lambda p: p.leaving)
    counts = PlatformField(lambda p: p.counts)
    totals = PlatformField(lambda p: p.totals)
    sources = PlatformField(lambda p: p.sources)
    written = PlatformField(lambda p: p.written)
    tick_counts = PlatformField(lambda p: p.tick_counts)
    agent_ticks = PlatformField(lambda p: p.agent_ticks)
    row_by_row_guards = PlatformField(lambda p: p.row_by_row_guards)
    notes = PlatformField(lambda p: p.notes)

    @property
    def platform(self) -> Platform:
        """Everything that a round reads and writes; set another platform, such as a branch, to continue from it."""
        return self._platform

    @platform.setter
    def platform(self, platform: Platform) -> None:
        self._platform = platform
        platform.scripts = self

    def post(self, post_id: int, reader: int) -> Post | None:
        """Return a post as the agent of row `reader` sees it; None for `NO_POST`."""
        return self.platform.post(post_id, reader)
