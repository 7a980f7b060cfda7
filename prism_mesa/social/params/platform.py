"""`SocialParams`: all parameters of the platform."""

from collections.abc import Mapping
from datetime import UTC, timedelta
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from prism_mesa.deliberation.params import DeliberationParams
from prism_mesa.params import Params, Seed, merge_values, nest_keys, short_repr
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.social.params.accounts import ACCOUNT, AccountParams, account_attribute
from prism_mesa.social.params.agents import AgentsParams
from prism_mesa.social.params.attributes import (
    COMMUNITY,
    AttributeParams,
    OpinionsParams,
    check_appeal_by,
    check_attributes,
    check_model_by,
    check_opinions,
)
from prism_mesa.social.params.feed import FeedParams, UtilityParams
from prism_mesa.social.params.interventions import InterventionParams
from prism_mesa.social.params.network import NetworkParams
from prism_mesa.social.params.world import ClockParams, FilesParams, PostsParams, RecordsParams
from prism_mesa.social.state.events import Clock
from prism_mesa.statechart.definition import StatechartParams
from prism_mesa.without_effect import OnlyWith


class SocialParams(Params):
    """All parameters of a `SocialModel`."""

    seed: Seed = Field(42, ge=0, lt=2**63, description="seed of all keyed draws; null: draw one and keep it")
    rounds: int = Field(56, ge=1, le=10_000_000, description="number of rounds")
    ticks_per_round: int = Field(
        60, ge=1, le=10_000, description="ticks per round; an agent fires at most one trigger per tick"
    )
    scheduler: Literal["columns", "mesa"] = Field(
        "columns",
        description="mesa: Mesa calls step() of each agent; this is slower and has the same result, except that "
        "limits of the reasoner reach agents in another order",
    )
    threads: int = Field(1, ge=1, le=1024, description="threads that compute a round; they do not change the result")
    content: Literal["none", "template", "llm"] = Field(
        "none",
        description="text of replies and reshares; template: a sentence about the topic, friendly for agreeable "
        "agents, doubting for others; llm: the reasoner's LLM writes these texts and agents' own posts (templates if "
        "kind auto finds no LLM)",
    )
    agents: AgentsParams = Field(default_factory=AgentsParams)
    network: NetworkParams = Field(default_factory=NetworkParams)
    posts: PostsParams = Field(default_factory=PostsParams)
    feed: FeedParams = Field(default_factory=FeedParams)
    utility: Annotated[UtilityParams, OnlyWith("utility.sensitivity")] = Field(default_factory=UtilityParams)
    files: Annotated[FilesParams, OnlyWith("network.edges posts.file agents.profiles")] = Field(
        default_factory=FilesParams
    )
    clock: ClockParams = Field(default_factory=ClockParams)
    statechart: StatechartParams = Field(default_factory=StatechartParams)
    reasoner: ReasonerParams = Field(default_factory=ReasonerParams)
    deliberation: DeliberationParams = Field(default_factory=DeliberationParams)
    records: RecordsParams = Field(default_factory=RecordsParams)
    attributes: dict[str, AttributeParams] = Field(
        default_factory=dict,
        max_length=100,
        description="your own attributes of agents and posts, as name: {of: agent or post, values: [...] or range: "
        "[low, high], ...}",
    )
    accounts: tuple[AccountParams, ...] = Field(
        (),
        max_length=100,
        description="kinds of accounts besides the agents, such as bots: {name: bots, n: 20, engages: {reshare: "
        "\"post.author_account == 'news'\"}}",
    )
    opinions: Annotated[OpinionsParams, OnlyWith("opinions.of")] = Field(default_factory=OpinionsParams)
    interventions: tuple[InterventionParams, ...] = Field(
        (),
        max_length=1000,
        description="acts of the platform during the run: {at: ROUND, until: ROUND, set: {key: value}}, or another act",
    )

    @property
    def has_churn(self) -> bool:
        """Whether agents may join or leave by chance in any round."""
        return self.agents.churn.waiting > 0 or self.has_leavers

    @property
    def has_leavers(self) -> bool:
        """Whether agents may leave by chance or be suspended in any round."""
        acts = self.interventions
        return self.agents.churn.leave > 0 or any(act.set.get("agents.churn.leave", 0) or act.suspend for act in acts)

    @property
    def combined_reasoner(self) -> ReasonerParams:
        """The reasoner's parameters, with every LLM from interventions added."""
        acts = [act for act in self.interventions if "reasoner.model" in act.set]
        reasoners = (self.reasoner, *(self.with_settings(act.set).reasoner for act in acts))
        llms = {llm for params in reasoners for llm in params.llms or (params.single_llm,)}
        return self.reasoner.model_copy(update={"model": dict.fromkeys(llms, 1.0), "model_by": None} if acts else {})

    def for_round(self, round_: int) -> Self:
        """Return the parameters in a round, with the interventions that apply to all agents."""
        settings: dict[str, Any] = {}
        for act in sorted(self.interventions, key=attrgetter("at")):
            settings |= {} if act.is_targeted or not act.applies_in(round_) else act.set
        return self.with_settings(settings) if settings else self

    def with_settings(self, settings: Mapping[str, Any]) -> Self:
        """Return a copy with new values for some keys and the same interventions."""
        values = merge_values(self.model_dump(exclude={"interventions": True}), nest_keys(settings))
        if "reasoner.model" in settings and isinstance(hosts := values["reasoner"]["host"], dict):
            model = values["reasoner"]["model"]  # drop the hosts of LLMs that are no longer used
            names = {*model, *model.values()} if isinstance(model, dict) else {model}
            values["reasoner"]["host"] = {name: host for name, host in hosts.items() if name in names} or None
        return type(self).model_validate(values).model_copy(update={"interventions": self.interventions})

    @model_validator(mode="after")
    def _declare_accounts(self) -> Self:
        names = [account.name for account in self.accounts]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"accounts: two have the name {twice!r}: give each its own")
        declared = self.attributes.get(ACCOUNT)  # a recorded configuration has it
        if names and declared is not None and declared != account_attribute(list(map(str, declared.values or ()))[1:]):
            raise ValueError(f"attributes: {ACCOUNT}: accounts declare this attribute: rename yours")
        if names:
            self.attributes[ACCOUNT] = account_attribute(names)
        return self

    @model_validator(mode="after")
    def _check_attributes(self) -> Self:
        check_attributes(self.attributes)
        agent_attributes = {name: params for name, params in self.attributes.items() if params.of == "agent"}
        time_zone = self.agents.time_zone
        for key, by in (("agents.homophily.by", self.agents.homophily.by), ("agents.time_zone", time_zone)):
            if by is not None and by not in agent_attributes:
                known_names = ", ".join(agent_attributes) or "none"
                raise ValueError(f"{key}: {by!r:.60} is not an attribute of agents ({known_names})")
        zone_attribute = None if time_zone is None else agent_attributes[time_zone]
        for hours in () if zone_attribute is None else zone_attribute.values or zone_attribute.range or ():
            if isinstance(hours, str | bool) or abs(hours) > 24:
                raise ValueError(f"agents.time_zone: {time_zone}: give hours from UTC, -24 to 24, not {hours!r:.60}")
        check_opinions(self.opinions, self.attributes)
        check_appeal_by(self.utility.appeal_by, self.attributes)
        check_model_by(self.reasoner, self.attributes)
        files = {"agent": ("agents.profiles", self.agents.profiles), "post": ("posts.file", self.posts.file)}
        for name, params in self.attributes.items():
            key, file = files[params.of]
            if params.of == "agent" and params.inherits is not None and self.network.kind != "stochastic_block":
                raise ValueError(
                    f"attributes: {name}.inherits: {params.inherits}: agents have a community only with "
                    f"network.kind=stochastic_block, not {self.network.kind}"
                )
            if params.column is not None and file is None:
                raise ValueError(f"attributes: {name}.column: {key} names no file with a column {params.column!r}")
        return self

    @model_validator(mode="after")
    def _check_interventions(self) -> Self:
        names = [act.name for act in self.interventions if act.name is not None]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"interventions: two have the name {twice}: give each its own")
        for index, act in enumerate(self.interventions):
            where = f"interventions: {index}"
            groups = [COMMUNITY] if self.network.kind == "stochastic_block" else []
            groups += [name for name, attribute in self.attributes.items() if attribute.of == "agent"]
            if act.assign is not None and act.assign.by not in groups:
                known = ", ".join(groups) or "none: declare attributes, or take network.kind=stochastic_block"
                raise ValueError(f"{where}: assign.by: {act.assign.by!r:.60} has no groups of agents ({known})")
            if act.at >= self.rounds:
                raise ValueError(f"{where}: at={act.at} is not a round of this run (0 to {self.rounds - 1})")
            if act.until is not None and act.until > self.rounds:
                raise ValueError(f"{where}: until={act.until} is after the last round ({self.rounds - 1})")
            if self.utility.sensitivity == 0 and max(act.log_factors) > 0:
                raise ValueError(f"{where}: label.effect: above 0, it needs utility.sensitivity above 0")
            names = [name for name, attribute in self.attributes.items() if attribute.of == "post"]
            for name in act.post.attributes if act.post is not None else ():
                if name not in names:
                    known = ", ".join(names) or "none"
                    raise ValueError(f"{where}: post.attributes: {name!r:.60} is not an attribute of posts ({known})")
            changed_params = self._params_in_round(index, act.at)
            if (changed_params.utility.sensitivity > 0) != (self.utility.sensitivity > 0):
                raise ValueError(f"{where}: utility.sensitivity cannot go from or to 0 in a run")
            if act.until is not None and act.until < self.rounds:
                self._params_in_round(index, act.until)
        return self

    def _params_in_round(self, index: int, round_: int) -> Self:
        intervention = self.interventions[index]
        targeted = [act for act in self.interventions if act.is_targeted and act.applies_in(round_)]
        try:
            changed_params = self.for_round(round_)
            params_by_act = {id(act): changed_params.with_settings(act.set) for act in targeted}
        except ValidationError as error:
            fault = error.errors()[0]
            key, prefix = ".".join(map(str, fault["loc"])), f"until={round_}: " if round_ == intervention.until else ""
            text, value = fault["msg"].removeprefix("Value error, "), fault["input"]
            text += "" if isinstance(value, Mapping) else f", not {short_repr(value)}"
            raise ValueError(f"interventions: {index}: {prefix}{key and f'{key}: '}{text}") from None
        return params_by_act.get(id(intervention), changed_params)

    @model_validator(mode="after")
    def _check_seeded_posts(self) -> Self:
        seeded, min_rounds = self.posts.seeded, self.posts.seeded.round + self.posts.seeded.count
        if seeded.count and min_rounds > self.rounds:
            raise ValueError(
                f"posts.seeded.count={seeded.count} posts, one a round from posts.seeded.round={seeded.round} on, need "
                f"rounds={min_rounds} or more, not {self.rounds}"
            )
        return self

    @model_validator(mode="after")
    def _check_time(self) -> Self:
        minutes, ticks = self.clock.round_minutes, self.rounds * (self.ticks_per_round + 2)
        if ticks >= _MAX_TICKS:
            raise ValueError(
                f"rounds={self.rounds} of ticks_per_round={self.ticks_per_round} are more than the maximum number of "
                f"ticks ({_MAX_TICKS:,})"
            )
        try:
            Clock(self.clock.start.astimezone(UTC), timedelta(minutes=minutes), self.ticks_per_round).time_at(ticks)
        except OverflowError:
            raise ValueError(
                f"rounds={self.rounds} of clock.round_minutes={minutes:g} from clock.start={self.clock.start} run past "
                "the year 9999: give fewer or shorter rounds, or an earlier start"
            ) from None
        return self


_MAX_TICKS: Final = 2**31
