"""What is known of a model when it starts, and decides whether a key that was set has an effect."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prism_mesa.reasoner import asks_llm, is_distilled
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.world.build import StartingWorld


@dataclass(frozen=True)
class Known:
    """What decides whether a key has an effect.

    Attributes:
        p: The parameters; `said` what was said of each key that was set.
        kind: Who decides, as in `reasoner.kind`; `given`: an object was given for it.
        choices: Whether the chart leaves anything open that is asked about.
        scores: Whether the LLM gives scores, from which the rule makes chances.
        answer: In which form it is asked; `persona`: as whom.
        unlearned: Whether the rule decides what a distilled model has not learned.
        writes: Whether an LLM writes.
        own_chart: Whether the chart is not the default one; `chart_given`: it was given as an object.
        authors: Whether the posts have authors; so `labels`, `media`.
        profiled: Columns of profiles that are given for every agent.
        close: Whether somebody has close ties; `active`: ever comes online; `posts`: ever posts of its own accord.
        n: Number of agents.
    """

    p: SocialParams
    said: Mapping[str, Any]
    kind: str
    given: bool
    choices: bool
    scores: bool
    answer: str
    persona: str
    unlearned: bool
    writes: bool
    own_chart: bool
    chart_given: bool
    authors: bool
    labels: bool
    media: bool
    profiled: frozenset[str]
    close: bool
    active: bool
    posts: bool
    n: int

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are read, as `files` says."""
        named = (self.p.network.edges, self.p.posts.file, self.p.agents.profiles)
        return tuple(file for file in named if file is not None)

    @property
    def asks(self) -> bool:
        """Whether an LLM that the parameters name decides."""
        return self.choices and not self.given and self.kind not in ("rule", "distilled")

    @property
    def idle_llm(self) -> bool:
        """Whether no LLM is asked about anything."""
        return not self.given and not self.asks and not self.writes

    @property
    def weighs_posting(self) -> bool:
        """Whether rates of posting are drawn whose mean is weighted by activity."""
        own = self.p.agents
        shared = own.post_sigma is None or own.popularity > 0
        return own.posting == "online" and shared and "post_rate" not in self.profiled

    @property
    def draws_posting(self) -> bool:
        """Whether the draw of activity serves posting."""
        return self.p.agents.post_sigma is None and "post_rate" not in self.profiled


def known_of(
    platform: Platform, world: StartingWorld, said: Mapping[str, Any], *, given: bool, chart_given: bool
) -> Known:
    """Return what is known of a platform that was made from a world, and of which keys this was said.

    Args:
        platform: The platform.
        world: What it was made from.
        said: What was said of each key that was set.
        given: Whether a reasoner was given for it in Python.
        chart_given: Whether a chart was.
    """
    asked, corpus = platform.reasoner, world.corpus
    llm = asked if asks_llm(asked) else None
    left = [options for options in platform.tables.option_sets if len(options) > 1]
    distilled = asked.batch_reasoner if is_distilled(asked.batch_reasoner) else None
    return Known(
        p=platform.params,
        said=said,
        kind=asked.kind,
        given=given,
        choices=bool(left),
        scores=llm is not None and "answer" not in llm.oracle.decoding,
        answer=str(llm.params.answer if llm is not None else ""),
        persona=str(llm.params.persona if llm is not None else ""),
        unlearned=distilled is not None and any(options not in distilled.model.by_options for options in left),
        writes=platform.writer is not None,
        own_chart=chart_given or platform.params.statechart.chart is not None,
        chart_given=chart_given,
        authors=corpus.authors is not None,
        labels=any(corpus.labels),
        media=any(corpus.media_types),
        profiled=world.profiled,
        close=bool(len(platform.drawn_network.close_indices)),
        active=bool(platform.population.activity.any()),
        posts=bool(platform.population.post_rate.any()),
        n=len(platform.population),
    )
