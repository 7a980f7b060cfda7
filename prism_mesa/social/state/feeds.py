"""The feed of each agent: one for all, or others for the agents that an intervention names; and feeds of your own."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import BIG_FIVE
from prism_mesa.errors import ConfigError, OwnCodeError, did_you_mean, shortened
from prism_mesa.social.params import FeedParams, SocialParams
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.attributes import Attribute, Attributes
from prism_mesa.social.state.groups import MOST_GROUPS, n_groups
from prism_mesa.social.state.population import Rows
from prism_mesa.social.state.posts import COUNTED
from prism_mesa.social.user_objects import load_object
from prism_mesa.social.world.attributes import Columns
from prism_mesa.statechart import Columns as Fields
from prism_mesa.statechart import Expression, column_values, parse_expression
from prism_mesa.statechart.batch import Reader
from prism_mesa.statechart.checks import near_field
from prism_mesa.statechart.users_code import users_line

type Floats = npt.NDArray[np.float64]

KEY: Final = "feed.mode"
LARGEST_SCORE: Final = 1e38
"""Scores count as float32."""
_AGENT_FIELDS: Final = ("row", *AGENT_FIELDS, "scripted", "low_threshold", "high_threshold", *BIG_FIVE)
_POST_FIELDS: Final = (
    *("post_id", "relevance", "utility", "kind", *COUNTED, "round", "author", "root"),
    *("age", "in_network", "author_followers"),
)


def readable(declared: Attributes) -> tuple[str, ...]:
    """Return the fields of readers (`agent`) and candidates (`post`) that feeds can read."""
    agents = [*_AGENT_FIELDS, *declared.agents]
    posts = [*_POST_FIELDS, *declared.posts, *(f"author_{name}" for name in declared.agents)]
    return (*(f"agent.{name}" for name in agents), *(f"post.{name}" for name in posts))


class UserFeed:
    """A feed of your own: an expression over `F`, or a function over columns, that scores candidates.

    Args:
        where: ``module:object``.
        declared: The attributes that it can read.

    Raises:
        ConfigError: If it is neither, or the expression reads an unknown field.
    """

    def __init__(self, where: str, declared: Attributes) -> None:
        self._where, self._fields, self._calls = f"{KEY}: {where}", readable(declared), 0
        scorer, module = load_object(KEY, where, "my_module:score")
        name = where.partition(":")[2]
        if isinstance(scorer, Expression):
            for field in sorted(scorer.fields - set(self._fields)):
                raise ConfigError(f"{self._where}: {field} cannot be read.{near_field(field, self._fields)}")
        elif scorer is None:
            raise ConfigError(f"{self._where}: the module has no {name!r}.{did_you_mean(name, module)}")
        elif not callable(scorer):
            raise ConfigError(f"{self._where}: is neither a function nor an expression over F")
        self._scorer: Expression | Callable[[Columns], object] = scorer

    @property
    def is_expression(self) -> bool:
        """Whether it is an expression, which several threads may evaluate at once."""
        return isinstance(self._scorer, Expression)

    def scores(self, agents: Fields, candidates: Fields, n: int) -> Floats:
        """Return the score of each of `n` candidates for its reader. Without candidates, your function is not called.

        Raises:
            OwnCodeError: If a score is not finite, or depends on other rows or on the number of the call.
        """
        if not n:
            return np.zeros(0)
        scores = self._evaluate(agents, candidates, n)
        self._calls += 1
        is_checked = self._calls & (self._calls - 1) == 0  # the 1st call, the 2nd, the 4th, ...
        if n > 1 and is_checked and not self.is_expression:
            others = (scores < scores.max(), scores > scores.min())  # scores relative to the best or worst row change
            tries = [(np.arange(n), "when it was asked again")]
            tries += [(np.flatnonzero(part)[::-1], "beside other rows") for part in others if part.any()]
            for rows, why in tries:
                again = self._evaluate(agents.take(rows), candidates.take(rows), len(rows))
                if not np.array_equal(scores[rows], again):
                    problem = f"gave other scores for the same rows {why}: score each row alone"
                    raise OwnCodeError(f"{self._where}: {problem}")
        return scores

    def read(self, agents: Fields, candidates: Fields) -> Columns:
        """Return the columns of candidates that it reads, by dotted name."""
        columns = Columns(columns_by_name(self._fields, agents, candidates))
        if not isinstance(self._scorer, Expression):
            self._scorer(columns)
        names = self._scorer.fields if isinstance(self._scorer, Expression) else columns.read
        return Columns({name: partial(columns.__getitem__, name) for name in sorted(names)})

    def _evaluate(self, agents: Fields, candidates: Fields, n: int) -> Floats:
        try:
            if isinstance(self._scorer, Expression):
                with np.errstate(all="ignore"):
                    values = self._scorer.function(Reader(agents), Reader(candidates))
            else:
                values = self._scorer(Columns(columns_by_name(self._fields, agents, candidates)))
        except Exception as error:  # user code may raise anything
            line = users_line(error)
            where = f" ({line})" if line else ""
            problem = f"raised {type(error).__name__}: {' '.join(str(error).split())}{where}"
            missing = str(error.args[0]) if isinstance(error, KeyError) and error.args else ""
            if missing.startswith(("agent.", "post.")) and missing not in self._fields:
                problem = f"{missing} cannot be read{where}.{near_field(missing, self._fields)}"
            raise OwnCodeError(shortened(f"{self._where}: {problem}", 400)) from error
        return self._checked(values, n)

    def _checked(self, values: object, n: int) -> Floats:
        try:
            scores = np.array(values, np.float64)
        except (TypeError, ValueError):
            raise OwnCodeError(f"{self._where}: gave {shortened(repr(values), 80)}, no numbers") from None
        if self.is_expression and not scores.ndim:
            scores = np.full(n, scores)
        if scores.shape != (n,):
            shape = f"{len(scores):,} scores" if scores.ndim == 1 else "no column of scores"
            raise OwnCodeError(f"{self._where}: gave {shape} for {n:,} candidates")
        for bad in scores[~(np.abs(scores) <= LARGEST_SCORE)]:
            raise OwnCodeError(f"{self._where}: gave {bad:g}: a score is finite and at most {LARGEST_SCORE:g}")
        return scores


def columns_by_name(names: Iterable[str], agents: Fields, candidates: Fields) -> dict[str, Callable[[], Any]]:
    """Return functions that read columns, by dotted name; texts are texts, all else numbers and truth values."""

    def read(name: str) -> Any:
        owner, _, field = name.partition(".")
        column = (agents if owner == "agent" else candidates).column(field)
        return column.texts() if hasattr(column, "texts") else np.asarray(column)

    return {name: partial(read, name) for name in names}


class Feeds:
    """The feeds of a round.

    Args:
        configured: The parameters of the run.
        params: The parameters of the round for all agents.
        round_: The round.
        declared: The attributes that the configuration declares.

    Raises:
        ConfigError: If an intervention names agents by an unknown field, or a feed of your own cannot be used.
    """

    def __init__(self, configured: SocialParams, params: SocialParams, round_: int, declared: Attributes) -> None:
        self._configured, self._params, self._declared = configured, params, declared
        self._made: dict[tuple[int, ...], tuple[FeedParams, UserFeed | None]] = {}
        interventions = configured.interventions
        self._named = {i: _expression(act.agents) for i, act in enumerate(interventions) if act.agents is not None}
        fields = [name for name in readable(declared) if name.startswith("agent.")]
        for i, expression in self._named.items():
            for name in sorted(expression.fields - set(fields)):
                raise ConfigError(f"interventions: {i}: agents: {name} cannot be read.{near_field(name, fields)}")
        for act in interventions:  # a feed that cannot be used is an error now, not in its round
            self._user_feed(str(act.set.get("feed.mode", "")))
        self._active = {i: act for i, act in enumerate(interventions) if act.holds_in(round_)}
        self._feed(())
        for attribute in {configured.feed.attribute, *(act.set.get("feed.attribute") for act in interventions)}:
            self._grouping(attribute)
        self._attribute = self._grouping(params.feed.attribute)

    def assign(self, rows: Rows, agents: Fields) -> Iterator[tuple[Rows, FeedParams, UserFeed | None]]:
        """Yield the agents of `rows` by their feed, with that feed; `agents` are their columns."""
        parts: list[tuple[Rows, tuple[int, ...]]] = [(np.arange(len(rows)), ())]
        for i in [i for i in self._named if i in self._active]:
            is_named = self.named(i, agents, len(rows))
            split = [p for at, acts in parts for p in ((at[is_named[at]], (*acts, i)), (at[~is_named[at]], acts))]
            parts = [part for part in split if len(part[0])]
        for at, acts in parts:
            yield rows[at] if len(parts) > 1 else rows, *self._feed(acts)

    @property
    def longest_window(self) -> int:
        """Rounds that the feeds used so far look back at most."""
        return max(feed.window for feed, _ in self._made.values())

    @property
    def are_of_followed(self) -> bool:
        """Whether the feeds used so far show only posts by authors that a reader follows."""
        return not any(feed.has_others for feed, _ in self._made.values())

    @property
    def n_groups(self) -> int:
        """The number of groups of agents that feeds distinguish; 0: none."""
        return 0 if self._attribute is None else n_groups(self._attribute)

    def is_bridging(self, round_: int) -> bool:
        """Return whether a bridging feed has begun by a round. Before, impressions by group are not counted."""
        begun = [str(act.set.get("feed.mode", "")) for act in self._configured.interventions if act.at <= round_]
        return "bridging" in (self._configured.feed.mode, *begun)

    def _grouping(self, name: object) -> Attribute | None:
        known = self._declared.agents
        if name is None:
            return None
        if name not in known:
            have = ", ".join(known) or "none is declared (attributes)"
            near = did_you_mean(str(name), known)
            raise ConfigError(f"feed.attribute: {name!r} is no attribute of agents ({have}).{near}")
        attribute = known[str(name)]
        if n_groups(attribute) > MOST_GROUPS:
            raise ConfigError(
                f"feed.attribute: {name} has {n_groups(attribute)} values; feeds go by {MOST_GROUPS} groups at most"
            )
        return attribute

    def named(self, intervention: int, agents: Fields, n: int) -> npt.NDArray[np.bool_]:
        """Return which of `n` agents, with these columns, an intervention names.

        Raises:
            ConfigError: If its expression is neither true nor false.
        """
        expression = self._named[intervention]
        values = column_values(expression, agents, agents, n)
        if values is None:
            raise ConfigError(f"interventions: {intervention}: agents: {expression}: is true or false of no agent")
        return np.asarray(values != 0)

    def _feed(self, acts: tuple[int, ...]) -> tuple[FeedParams, UserFeed | None]:
        """Return the feed of the agents that these interventions name; later interventions override earlier ones."""
        if acts not in self._made:
            settings: dict[str, object] = {}
            for i, act in self._active.items():
                settings |= act.set if act.agents is None or i in acts else {}
            feed = self._configured.changed_by(settings).feed if acts else self._params.feed
            self._made[acts] = feed, self._user_feed(feed.mode)
        return self._made[acts]

    def _user_feed(self, mode: str) -> UserFeed | None:
        return UserFeed(mode, self._declared) if ":" in mode else None


@lru_cache(maxsize=1024)
def _expression(text: str) -> Expression:
    return parse_expression(text)
