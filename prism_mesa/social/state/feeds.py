"""Feeds: the settings that apply to each agent (interventions may target some agents), and feeds of your own."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from prism_mesa.arrays import Floats, Mask, Rows
from prism_mesa.domain import BIG_FIVE
from prism_mesa.errors import ConfigError, OwnCodeError, did_you_mean, shorten
from prism_mesa.social.params import FeedParams, InterventionParams, SocialParams
from prism_mesa.social.state.act_state import ActState
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.attributes import Attribute, Attributes
from prism_mesa.social.state.groups import MAX_GROUPS, n_groups
from prism_mesa.social.state.posts import POST_COUNTERS
from prism_mesa.social.user_objects import load_object
from prism_mesa.social.world.attributes import Columns
from prism_mesa.statechart import Columns as Fields
from prism_mesa.statechart import Expression, column_values, parse_expression
from prism_mesa.statechart.batch import ColumnReader
from prism_mesa.statechart.checks import suggest_field
from prism_mesa.statechart.users_code import user_code_line

MODE_KEY: Final = "feed.mode"
FEED_ACTS: Final = ("remove", "suspend", "filter", "downrank")
"""Kinds of interventions that change which posts feeds show, or their scores."""
MAX_SCORE: Final = 1e38
"""Largest absolute value of a score, because scores are stored as float32."""
_AGENT_FIELDS: Final = ("row", *AGENT_FIELDS, "scripted", "low_threshold", "high_threshold", *BIG_FIVE)
_POST_FIELDS: Final = (
    *("post_id", "relevance", "utility", "kind", *POST_COUNTERS, "round", "author", "root"),
    *("age", "age_hours", "in_network", "author_followers", "expected_utility"),
)


def readable_fields(declared: Attributes) -> tuple[str, ...]:
    """Return the fields of readers (`agent`) and of candidate posts (`post`) that feeds can read."""
    agents = [*_AGENT_FIELDS, *declared.agents]
    posts = [*_POST_FIELDS, *declared.posts, *(f"author_{name}" for name in declared.agents)]
    return (*(f"agent.{name}" for name in agents), *(f"post.{name}" for name in posts))


class UserFeed:
    """A feed of your own, which scores candidates: an expression over `F`, or a function of columns.

    Args:
        object_name: ``module:object``.
        declared: The attributes that the feed can read.

    Raises:
        ConfigError: If the object is neither, or the expression reads an unknown field.
    """

    def __init__(self, object_name: str, declared: Attributes) -> None:
        self._prefix, self._fields, self._calls = f"{MODE_KEY}: {object_name}", readable_fields(declared), 0
        scorer, module = load_object(MODE_KEY, object_name, "my_module:score")
        name = object_name.partition(":")[2]
        if isinstance(scorer, Expression):
            for field in sorted(scorer.fields - set(self._fields)):
                raise ConfigError(f"{self._prefix}: {field} cannot be read.{suggest_field(field, self._fields)}")
        elif scorer is None:
            raise ConfigError(f"{self._prefix}: the module has no {name!r}.{did_you_mean(name, module)}")
        elif not callable(scorer):
            raise ConfigError(f"{self._prefix}: is neither a function nor an expression over F")
        self._scorer: Expression | Callable[[Columns], object] = scorer

    @property
    def is_expression(self) -> bool:
        """Whether the feed is an expression, which several threads may evaluate at once."""
        return isinstance(self._scorer, Expression)

    def scores(self, agents: Fields, candidates: Fields, n: int) -> Floats:
        """Return the score of each of `n` candidates for its reader; without candidates, your function is not called.

        Raises:
            OwnCodeError: If a score is not a number (-inf takes a post out), or depends on other rows or earlier calls.
        """
        if not n:
            return np.zeros(0)
        scores = self._evaluate(agents, candidates, n)
        self._calls += 1
        is_checked = self._calls & (self._calls - 1) == 0  # the 1st call, the 2nd, the 4th, ...
        if n > 1 and is_checked and not self.is_expression:
            subsets = (scores < scores.max(), scores > scores.min())  # scores relative to the best or worst row change
            checks = [(np.arange(n), "in a second call")]
            checks += [(np.flatnonzero(part)[::-1], "beside other rows") for part in subsets if part.any()]
            for rows, condition in checks:
                repeated_scores = self._evaluate(agents.take(rows), candidates.take(rows), len(rows))
                if not np.array_equal(scores[rows], repeated_scores):
                    problem = f"returned other scores for the same rows {condition}: score each row alone"
                    raise OwnCodeError(f"{self._prefix}: {problem}")
        return scores

    def read(self, agents: Fields, candidates: Fields) -> Columns:
        """Return the columns that the feed reads, by dotted name."""
        columns = Columns(columns_by_name(self._fields, agents, candidates))
        if not isinstance(self._scorer, Expression):
            self._scorer(columns)
        names = self._scorer.fields if isinstance(self._scorer, Expression) else columns.names_read
        return Columns({name: partial(columns.__getitem__, name) for name in sorted(names)})

    def _evaluate(self, agents: Fields, candidates: Fields, n: int) -> Floats:
        try:
            if isinstance(self._scorer, Expression):
                with np.errstate(all="ignore"):
                    values = self._scorer.function(ColumnReader(agents), ColumnReader(candidates))
            else:
                values = self._scorer(Columns(columns_by_name(self._fields, agents, candidates)))
        except Exception as error:  # user code may raise anything
            line = user_code_line(error)
            where = f" ({line})" if line else ""
            problem = f"raised {type(error).__name__}: {' '.join(str(error).split())}{where}"
            missing_field = str(error.args[0]) if isinstance(error, KeyError) and error.args else ""
            if missing_field.startswith(("agent.", "post.")) and missing_field not in self._fields:
                problem = f"{missing_field} cannot be read{where}.{suggest_field(missing_field, self._fields)}"
            raise OwnCodeError(shorten(f"{self._prefix}: {problem}", 400)) from error
        return self._check_scores(values, n)

    def _check_scores(self, values: object, n: int) -> Floats:
        try:
            scores = np.array(values, np.float64)
        except (TypeError, ValueError):
            raise OwnCodeError(f"{self._prefix}: returned {shorten(repr(values), 80)}, not numbers") from None
        if self.is_expression and not scores.ndim:
            scores = np.full(n, scores)
        if scores.shape != (n,):
            shape = f"{len(scores):,} scores" if scores.ndim == 1 else "not a column of scores"
            raise OwnCodeError(f"{self._prefix}: returned {shape} for {n:,} candidates")
        for bad in scores[~((np.abs(scores) <= MAX_SCORE) | (scores == -np.inf))]:
            allowed = f"scores must be numbers of at most {MAX_SCORE:g}, or -inf for posts that are not shown"
            raise OwnCodeError(f"{self._prefix}: returned {bad:g}: {allowed}")
        return scores


def columns_by_name(names: Iterable[str], agents: Fields, candidates: Fields) -> dict[str, Callable[[], Any]]:
    """Return functions that read columns, by dotted name; columns hold strings, numbers or booleans."""

    def read(name: str) -> Any:
        owner, _, field = name.partition(".")
        column = (agents if owner == "agent" else candidates).column(field)
        return column.texts() if hasattr(column, "texts") else np.asarray(column)

    return {name: partial(read, name) for name in names}


class Feeds:
    """The feeds of a round.

    Args:
        configured: The parameters of the run.
        params: The parameters of this round for all agents.
        round_: The round.
        declared: The declared attributes.

    Raises:
        ConfigError: If a feed of your own cannot be used.
    """

    def __init__(self, configured: SocialParams, params: SocialParams, round_: int, declared: Attributes) -> None:
        self._configured, self._params, self._declared = configured, params, declared
        self._feeds_by_acts: dict[tuple[int, ...], tuple[FeedParams, UserFeed | None]] = {}
        interventions = configured.interventions
        for act in interventions:  # report an unusable feed now, not in its first round
            self._user_feed(str(act.set.get("feed.mode", "")))
        in_order = sorted(enumerate(interventions), key=lambda numbered: numbered[1].at)
        self._active_acts = {i: act for i, act in in_order if act.applies_in(round_)}
        self._feed(())
        for attribute in {configured.feed.attribute, *(act.set.get("feed.attribute") for act in interventions)}:
            self._group_attribute(attribute)
        self._attribute = self._group_attribute(params.feed.attribute)

    def assign(
        self, rows: Rows, agents: Fields, act_state: ActState
    ) -> Iterator[tuple[Rows, FeedParams, UserFeed | None]]:
        """Yield each feed that applies to some of `rows`, with these rows; `agents` holds the columns of `rows`."""
        parts: list[tuple[Mask, tuple[int, ...]]] = [(np.ones(len(rows), np.bool_), ())]
        for i, act in self._active_acts.items():
            if act.set and act.is_targeted:
                is_target = select_targets(act, rows, agents, act_state)
                pairs = [((mask & is_target, (*acts, i)), (mask & ~is_target, acts)) for mask, acts in parts]
                parts = [part for pair in pairs for part in pair if part[0].any()]
        for mask, acts in parts:
            yield rows[mask], *self._feed(acts)

    @property
    def show_only_followed(self) -> bool:
        """Whether the feeds used so far show only posts by authors that the reader follows."""
        return not any(feed.shows_unfollowed for feed, _ in self._feeds_by_acts.values())

    @property
    def n_groups(self) -> int:
        """The number of groups of agents that feeds distinguish, or 0."""
        return 0 if self._attribute is None else n_groups(self._attribute)

    def is_bridging(self, round_: int) -> bool:
        """Return whether a bridging feed has been active by a round; before that, groups are not counted."""
        modes = [str(act.set.get("feed.mode", "")) for act in self._configured.interventions if act.at <= round_]
        return "bridging" in (self._configured.feed.mode, *modes)

    def _group_attribute(self, name: object) -> Attribute | None:
        agent_attributes = self._declared.agents
        if name is None:
            return None
        if name not in agent_attributes:
            names = ", ".join(agent_attributes) or "none is declared (attributes)"
            near = did_you_mean(str(name), agent_attributes)
            raise ConfigError(f"feed.attribute: {name!r} is not an attribute of agents ({names}).{near}")
        attribute = agent_attributes[str(name)]
        if n_groups(attribute) > MAX_GROUPS:
            raise ConfigError(
                f"feed.attribute: {name} has {n_groups(attribute)} values; feeds distinguish up to {MAX_GROUPS} groups"
            )
        return attribute

    def _feed(self, acts: tuple[int, ...]) -> tuple[FeedParams, UserFeed | None]:
        """Return the feed of the agents that these interventions target; later interventions override earlier ones."""
        if acts not in self._feeds_by_acts:
            settings: dict[str, object] = {}
            for i, act in self._active_acts.items():
                settings |= act.set if not act.is_targeted or i in acts else {}
            feed = self._configured.with_settings(settings).feed if acts else self._params.feed
            self._feeds_by_acts[acts] = feed, self._user_feed(feed.mode)
        return self._feeds_by_acts[acts]

    def _user_feed(self, mode: str) -> UserFeed | None:
        return UserFeed(mode, self._declared) if ":" in mode else None


@lru_cache(maxsize=1024)
def read_expression(text: str) -> Expression:
    """Return an expression from its text."""
    return parse_expression(text)


def is_true(text: str, n: int, posts: Fields, agents: Fields | None = None) -> Mask:
    """Return in which of `n` rows an expression is true; an expression over agents alone needs no `posts`.

    Raises:
        ConfigError: If it has no truth value.
    """
    values = column_values(read_expression(text), posts if agents is None else agents, posts, n)
    if values is None:
        raise ConfigError(f"{text}: is neither true nor false")
    return np.asarray(values != 0)


def select_targets(act: InterventionParams, rows: Rows, agents: Fields, act_state: ActState) -> Mask:
    """Return which of `rows`, with the columns `agents`, an intervention applies to."""
    if act.share is not None:
        return act_state.is_treated(str(act.name), rows)
    return np.ones(len(rows), np.bool_) if act.agents is None else is_true(act.agents, len(rows), agents)
