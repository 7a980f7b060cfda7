"""Parameters of interventions: what the platform does during a run, from when on, and for which agents."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import exp, inf, log1p
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from prism_mesa.domain import ACTIONS, ActionName
from prism_mesa.errors import did_you_mean
from prism_mesa.params import LogOdds, Params, Share, flatten, list_leaves
from prism_mesa.social.params.agents import ChurnParams, HomophilyParams, ReturnsParams
from prism_mesa.social.params.attributes import COMMUNITY, Value
from prism_mesa.social.params.feed import FeedParams, UtilityParams
from prism_mesa.social.params.network import NetworkRatesParams
from prism_mesa.statechart import parse_expression

_ARRAY_SIZE_KEYS: Final = {"size", "window", "velocity_window", "repeats"}
"""Keys of feeds that determine array shapes."""

CHANGEABLE: Final = (
    *(f"feed.{key}" for key, _ in list_leaves(FeedParams) if key not in _ARRAY_SIZE_KEYS),
    *(f"utility.{key}" for key, _ in list_leaves(UtilityParams)),
    *(f"network.rates.{key}" for key, _ in list_leaves(NetworkRatesParams)),
    *(f"opinions.{key}" for key in ("when", "rate", "confidence", "repulsion")),
    *(f"agents.{key}" for key in ("band", "persistence", "hours", "session", "session_sigma")),
    *(f"agents.homophily.{key}" for key, _ in list_leaves(HomophilyParams)),
    *(f"agents.churn.{key}" for key, _ in list_leaves(ChurnParams) if key != "waiting"),
    *(f"agents.returns.{key}" for key, _ in list_leaves(ReturnsParams) if key != "first"),
    "reasoner.model",
)
"""Keys that can change during a run; all other keys are fixed when the run starts."""

_GROUPS: Final = ("feed", "utility", "network.rates", "agents.homophily", "agents.churn", "agents.returns")
_UNIFORM_KEYS: Final = ("feed.glances", "feed.attribute")
TARGETABLE_KEYS: Final = tuple(key for key in CHANGEABLE if key.startswith("feed.") and key not in _UNIFORM_KEYS)
"""Keys that can change for only some of the agents."""


@dataclass(frozen=True)
class Act:
    """Marks a field of `InterventionParams` as an act of the platform.

    To add an act, add a field with this mark. The notes of a run and the ODD protocol describe the act by its text.

    Attributes:
        text: Function that returns a phrase for a value of the field.
        is_for_agents: Whether the act can apply to only some of the agents.
    """

    text: Callable[[Any], str]
    is_for_agents: bool = True


def _check_expression(text: str) -> str:
    parse_expression(text)
    return text


def draft_expression(text: str) -> str:
    """Return an expression over ``draft.<attribute>`` as one over the attributes of a post.

    >>> draft_expression("draft.toxicity > 0.5")
    'post.toxicity > 0.5'

    Raises:
        ValueError: If it reads anything else, or is not an expression.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        raise ValueError("cannot be read as an expression") from None
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.Name)]:
        if node.id != "draft":
            raise ValueError(f"{node.id}: use only attributes of the draft, such as draft.toxicity")
        node.id = "post"
    return _check_expression(ast.unparse(tree))


PostExpression = Annotated[str, Field(min_length=1), AfterValidator(_check_expression)]


class DelayParams(Params):
    """A random delay in hours, with a lognormal distribution."""

    median: float = Field(gt=0, le=1e6, description="median in hours")
    sigma: float = Field(1.0, ge=0, le=5, description="standard deviation of its logarithm")

    def __str__(self) -> str:
        return f"{self.median:g} hours in the median"


class PostActParams(Params):
    """An act on roots, which it meets when the expression becomes true."""

    posts: PostExpression | None = Field(None, description="expression that selects roots; null: all roots")
    coverage: Share | None = Field(
        None, description="share of the posts met that the act covers, drawn at random; the others are its control"
    )
    delay: DelayParams | Annotated[float, Field(ge=0, le=1e6)] = Field(
        0.0, description="hours from the post's birth to the act: a number, or {median, sigma} of a lognormal draw"
    )

    @property
    def posts_text(self) -> str:
        """Which posts the act covers, and when, as a phrase."""
        share = "" if self.coverage is None else f"{self.coverage:.4g} of "
        posts = f"{share}posts with {self.posts}" if self.posts else f"{share}all posts"
        delay = f"{self.delay:g} hours" if isinstance(self.delay, float) else str(self.delay)
        return f"{posts}{f', {delay} after their birth' if self.delay else ''}"


class LabelParams(PostActParams):
    """A label on posts."""

    effect: dict[ActionName, LogOdds] | None = Field(
        default_factory=dict,
        description="log of the factor on the chance of each action per impression; null: the LLM reads the label and "
        "decides",
    )
    text: str = Field("", max_length=300, description="the text of the label, which an LLM that decides reads")


class FrictionParams(PostActParams):
    """A prompt before an action."""

    on: ActionName = Field(description="the action that is interrupted")
    abandon: Share = Field(0.0, description="probability that the agent gives up the action")
    draft: Annotated[str, AfterValidator(lambda text: draft_expression(text) and text)] | None = Field(
        None, description="expression over draft.<attribute>: only such replies are interrupted; null: all actions"
    )
    milder: Share = Field(
        0.0, description="probability that the agent sets the attributes in draft to their mildest values"
    )

    @model_validator(mode="before")
    @classmethod
    def _read_on(cls, values: Any) -> Any:
        """Rename the key True: YAML reads the key `on` as true."""
        pairs = values.items() if isinstance(values, Mapping) else ()
        return {"on" if key is True else key: value for key, value in pairs} or values

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.draft is not None and self.on != "reply":
            raise ValueError("draft: only replies have attributes of their own (on: reply)")
        if self.milder and self.draft is None:
            raise ValueError("milder: give draft, an expression over draft.<attribute>")
        if self.abandon + self.milder > 1:
            raise ValueError("abandon, milder: these probabilities add up to more than 1")
        return self


class LikeParams(PostActParams):
    """Likes that the platform adds to posts."""

    n: int = Field(ge=1, le=1_000_000, description="number of likes added to each post")


class CapParams(Params):
    """A maximum number of actions on a root."""

    reshares: int = Field(ge=0, le=1_000_000_000, description="maximum number of reshares of one root, by all agents")

    @field_validator("reshares")
    @classmethod
    def _check_reshares(cls, value: int) -> int:
        if not value:
            raise ValueError("0 forbids all reshares: write friction: {on: reshare, abandon: 1}")
        return value


class SuspendParams(Params):
    """The suspension of accounts."""

    accounts: PostExpression = Field(description="expression that selects accounts, such as agent.bot == True")
    posts: Literal["keep", "remove"] = Field("keep", description="whether their posts stay or go while it lasts")


class FilterParams(Params):
    """Posts that feeds do not show."""

    posts: PostExpression = Field(description="expression that selects the posts, as shown to their reader")


class DownrankParams(FilterParams):
    """A change of the scores of posts."""

    score: float = Field(ge=-1e6, le=1e6, description="number added to the score of these posts")


class PlatformPostParams(Params):
    """Posts that the platform lets accounts publish."""

    by: PostExpression = Field(description="expression that selects the authors")
    text: str = Field(min_length=1, max_length=5000, description="text of the post")
    attributes: dict[str, Value] = Field(default_factory=dict, description="attributes of the post, by name")
    every: int | None = Field(None, ge=1, description="rounds from one post to the next; null: post once")


class AssignParams(Params):
    """How agents are assigned to a random share."""

    by: str = Field(
        COMMUNITY,
        min_length=1,
        max_length=100,
        description="assign whole groups: community (of network.kind: stochastic_block), or an attribute of agents",
    )


def _label_text(label: LabelParams) -> str:
    if label.effect is None:
        return f"labels {label.posts_text}; the LLM decides what readers make of it"
    factors = ", ".join(f"{action} x {exp(effect):.3g}" for action, effect in label.effect.items())
    return f"labels {label.posts_text}{factors and f' ({factors})'}"


def _friction_text(friction: FrictionParams) -> str:
    drafts = "" if friction.draft is None else f" if {friction.draft}"
    milder = f", {friction.milder:.4g} write a milder one" if friction.milder else ""
    outcome = f"{friction.abandon:.4g} of the agents give up{milder}"
    return f"asks before a {friction.on} on {friction.posts_text}{drafts}; {outcome}"


class InterventionParams(Params):
    """One act of the platform, from a given round on, for all agents, some agents, or a random share of these."""

    name: str | None = Field(
        None,
        pattern="^[a-z][a-z0-9_]{0,39}$",
        description="name of the intervention, a column of table agents; needed with share and coverage",
    )
    at: int = Field(ge=0, description="first round of the intervention")
    until: int | None = Field(None, ge=1, description="first round without it; null: it stays")
    agents: str | None = Field(
        None,
        min_length=1,
        description="expression that selects the agents that it applies to, such as agent.leaning > 0.5; null: all",
    )
    share: Share | None = Field(
        None, description="share of the agents that is treated at random, the others are its control; null: all of them"
    )
    assign: AssignParams | None = Field(None, description="assign whole groups of agents; null: agent by agent")
    set: Annotated[
        dict[str, Any], Act(lambda settings: ", ".join(f"{key}={value}" for key, value in settings.items()))
    ] = Field(default_factory=dict, description="dotted key: value")
    label: Annotated[LabelParams | None, Act(_label_text)] = Field(None, description="label posts")
    friction: Annotated[FrictionParams | None, Act(_friction_text)] = Field(
        None, description="ask agents before an action; some give it up"
    )
    cap: Annotated[CapParams | None, Act(lambda act: f"allows up to {act.reshares} reshares of each root")] = Field(
        None, description="limit the reshares of each root"
    )
    remove: Annotated[PostActParams | None, Act(lambda act: f"removes {act.posts_text}")] = Field(
        None, description="remove posts with everything under them"
    )
    suspend: Annotated[
        SuspendParams | None,
        Act(
            lambda act: f"suspends accounts with {act.accounts}{' and removes their posts' * (act.posts == 'remove')}",
            is_for_agents=False,
        ),
    ] = Field(None, description="suspend accounts")
    filter: Annotated[FilterParams | None, Act(lambda act: f"feeds leave out posts with {act.posts}")] = Field(
        None, description="leave posts out of feeds"
    )
    downrank: Annotated[
        DownrankParams | None, Act(lambda act: f"adds {act.score:g} to the score of posts with {act.posts}")
    ] = Field(None, description="change the scores of posts in feeds")
    hide: Annotated[
        tuple[Literal["likes", "replies", "reshares"], ...],
        Act(lambda names: f"hides the numbers of {', '.join(names)}"),
    ] = Field((), description="numbers that agents no longer see (an LLM; utility.counts)")
    like: Annotated[
        LikeParams | None, Act(lambda act: f"adds {act.n} likes to {act.posts_text}", is_for_agents=False)
    ] = Field(None, description="add likes to posts")
    post: Annotated[
        PlatformPostParams | None,
        Act(
            lambda act: (
                f"agents with {act.by} post {act.text!r:.40}{f' every {act.every} rounds' if act.every else ''}"
            ),
            is_for_agents=False,
        ),
    ] = Field(None, description="let accounts publish a post")

    @property
    def kind(self) -> str:
        """The key of the act."""
        return next(key for key in acts_by_key() if getattr(self, key))

    @property
    def post_act(self) -> PostActParams | None:
        """The act if it is on roots (label, friction, remove, like)."""
        value = getattr(self, self.kind)
        return value if isinstance(value, PostActParams) else None

    @property
    def log_factors(self) -> tuple[float, ...]:
        """Logs of the factors of a label or friction on the chance of each action; 0 for drafts, which are reviewed."""
        effects = (self.label.effect or {}) if self.label is not None else {}
        if self.friction is not None and self.friction.draft is None:
            effects = {self.friction.on: log1p(-self.friction.abandon) if self.friction.abandon < 1 else -inf}
        return tuple(effects.get(action, 0.0) for action in ACTIONS)

    @property
    def meets_all(self) -> bool:
        """Whether it is a friction that applies to all roots at once, so that nothing needs to be stored."""
        act = self.friction
        return act is not None and act.posts is None and act.coverage is None and not act.delay

    @property
    def is_targeted(self) -> bool:
        """Whether the intervention may apply to only some of the agents."""
        return self.agents is not None or self.share is not None

    def applies_in(self, round_: int) -> bool:
        """Return whether the intervention applies in a round."""
        return self.at <= round_ and (self.until is None or round_ < self.until)

    @property
    def text(self) -> str:
        """The act, rounds and agents of the intervention as text."""
        act = acts_by_key()[self.kind].text(getattr(self, self.kind))
        when = f"from round {self.at} on" if self.until is None else f"in rounds {self.at} to {self.until - 1}"
        agents = f"agents with {self.agents}" if self.agents else "the agents"
        if self.share is not None:
            agents = f"a random {self.share:.4g} of {agents}" + (f", by {self.assign.by}" if self.assign else "")
        return f"{when}: {act}{f' for {agents}' if self.is_targeted else ''}"

    @field_validator("set", mode="before")
    @classmethod
    def _flatten_settings(cls, settings: object) -> object:
        if not isinstance(settings, Mapping):
            return settings
        flat: dict[str, Any] = {}
        for key, value in flatten(settings):
            if key in flat:
                raise ValueError(f"{key} is set twice")
            flat[key] = value
        return flat

    @field_validator("set")
    @classmethod
    def _check_keys(cls, settings: dict[str, Any]) -> dict[str, Any]:
        for key in settings:
            if key not in CHANGEABLE:
                keys = [name for name in CHANGEABLE if not name.startswith(tuple(f"{group}." for group in _GROUPS))]
                allowed = ", ".join((*(f"{group}.*" for group in _GROUPS), *keys))
                advice = did_you_mean(key, CHANGEABLE) or " Set it in another run, and use prism compare"
                raise ValueError(f"{key} cannot change during a run ({allowed} can).{advice}")
        return settings

    @field_validator("agents")
    @classmethod
    def _check_fields(cls, text: str | None) -> str | None:
        for name in parse_expression(text).fields if text is not None else ():
            if not name.startswith("agent."):
                raise ValueError(f"{name}: use only fields of agents here")
        return text

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.until is not None and self.until <= self.at:
            raise ValueError(f"until={self.until} is not after at={self.at}")
        acts = [key for key in acts_by_key() if getattr(self, key)]
        if len(acts) != 1:
            fault = f"it has {' and '.join(acts)}: write an intervention for each" if acts else ""
            raise ValueError(f"{fault or 'the intervention does nothing'} (acts: {', '.join(acts_by_key())})")
        for key in () if self.name is not None else ("share", "assign"):
            if getattr(self, key) is not None:
                raise ValueError(f"{key}: give the intervention a name, which its draws and its column of agents have")
        if self.name is None and self.post_act is not None and self.post_act.coverage is not None:
            raise ValueError("coverage: give the intervention a name, which its draws and its column of posts have")
        if self.assign is not None and self.share is None:
            raise ValueError("assign: give a share, which is treated")
        if self.is_targeted and not acts_by_key()[self.kind].is_for_agents:
            raise ValueError(f"{self.kind}: applies to the whole platform: leave out agents and share")
        for key in self.set if self.is_targeted else ():
            if key not in TARGETABLE_KEYS:
                exceptions = " and ".join(_UNIFORM_KEYS)
                raise ValueError(f"{key} cannot change for some agents (feed.* can, except {exceptions})")
        return self


@cache
def acts_by_key() -> dict[str, Act]:
    """Return the acts of interventions, by key."""
    fields = InterventionParams.model_fields.items()
    return {name: mark for name, field in fields for mark in field.metadata if isinstance(mark, Act)}
