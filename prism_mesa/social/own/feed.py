"""Feeds of a user's own: an expression over `F`, or a function over columns, that gives each candidate a score."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import BIG_FIVE
from prism_mesa.errors import ConfigError, OwnCodeError, did_you_mean, shortened
from prism_mesa.social.own.objects import load_object
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.social.state.posts import COUNTED
from prism_mesa.social.world.attributes import Columns
from prism_mesa.statechart import Expression
from prism_mesa.statechart.batch import Columns as Held
from prism_mesa.statechart.batch import Reader
from prism_mesa.statechart.checks import near_field
from prism_mesa.statechart.users_code import line_of

type Floats = npt.NDArray[np.float64]

KEY: Final = "feed.mode"
MOST: Final = 1e38
"""Of a score, or less than 0: scores count as float32."""
_OF_PAIRS: Final = ("age", "in_network", "author_followers")
_OF_AGENTS: Final = (
    *("row", *AGENT_FIELDS, "scripted", "low_threshold", "high_threshold"),
    *BIG_FIVE,
)
_OF_POSTS: Final = ("post_id", "relevance", "utility", "kind", *COUNTED, "round", "author", "root", *_OF_PAIRS)


def readable(declared: Attributes) -> tuple[str, ...]:
    """Return what feeds can read of a reader (fields of `agent`) and of a candidate (`post`)."""
    agents = [*_OF_AGENTS, *declared.agents]
    posts = [*_OF_POSTS, *declared.posts, *(f"author_{name}" for name in declared.agents)]
    return (*(f"agent.{name}" for name in agents), *(f"post.{name}" for name in posts))


class OwnFeed:
    """What gives the candidates of feeds their scores.

    Args:
        where: ``module:object`` of a function or an expression.
        declared: The attributes that it can read.

    Raises:
        ConfigError: If it is neither, or the expression reads what there is not.
    """

    def __init__(self, where: str, declared: Attributes) -> None:
        self._where, self._fields = f"{KEY}: {where}", readable(declared)
        scorer, there = load_object(KEY, where, "my_module:score")
        _, _, own_name = where.partition(":")
        self._asked_for = 0
        if isinstance(scorer, Expression):
            for name in sorted(scorer.fields - set(self._fields)):
                raise ConfigError(f"{self._where}: {name} cannot be read.{near_field(name, self._fields)}")
        elif scorer is None:
            raise ConfigError(f"{self._where}: the module has no {own_name!r}.{did_you_mean(own_name, there)}")
        elif not callable(scorer):
            raise ConfigError(f"{self._where}: is neither a function nor an expression over F")
        self._scorer: Expression | Callable[[Columns], object] = scorer

    @property
    def is_expression(self) -> bool:
        """Whether it is one: then several threads may ask it at a time."""
        return isinstance(self._scorer, Expression)

    def scores(self, agents: Held, candidates: Held, n: int) -> Floats:
        """Return the score of each of `n` candidates for its reader; without any, your function is not called.

        Raises:
            OwnCodeError: If it gives anything but a finite number for each, other numbers when it is asked again, or a
                number that depends on what else it is asked about.
        """
        if not n:
            return np.zeros(0)
        found = self._asked(agents, candidates, n)
        self._asked_for += 1
        is_looked_at = self._asked_for & (self._asked_for - 1) == 0  # the 1st time, the 2nd, the 4th, ...
        if n > 1 and is_looked_at and not self.is_expression:
            others = (found < found.max(), found > found.min())  # without the best it shows who goes by the best
            tries = [(np.arange(n), "when it was asked again")]
            tries += [(np.flatnonzero(part)[::-1], "beside other rows") for part in others if part.any()]
            for rows, why in tries:
                if not np.array_equal(found[rows], self._asked(agents.take(rows), candidates.take(rows), len(rows))):
                    raise OwnCodeError(
                        f"{self._where}: gave other scores for the same rows {why}: a score has to come from its own "
                        "row alone"
                    )
        return found

    def read(self, agents: Held, candidates: Held) -> Columns:
        """Return the columns that it reads of candidates, by dotted name: of a function those that it asks for."""
        columns = Columns(columns_by_name(self._fields, agents, candidates))
        if not isinstance(self._scorer, Expression):
            self._scorer(columns)
        names = self._scorer.fields if isinstance(self._scorer, Expression) else columns.read
        return Columns({name: partial(columns.__getitem__, name) for name in sorted(names)})

    def _asked(self, agents: Held, candidates: Held, n: int) -> Floats:
        try:
            if isinstance(self._scorer, Expression):
                with np.errstate(all="ignore"):
                    given = self._scorer.function(Reader(agents), Reader(candidates))
            else:
                given = self._scorer(Columns(columns_by_name(self._fields, agents, candidates)))
        except Exception as error:  # code of a user's own may fail in any way
            at = line_of(error)
            said = f"raised {type(error).__name__}: {' '.join(str(error).split())}{at and f' ({at})'}"
            missing = str(error.args[0]) if isinstance(error, KeyError) and error.args else ""
            if missing.startswith(("agent.", "post.")) and missing not in self._fields:
                said = f"{missing} cannot be read{at and f' ({at})'}.{near_field(missing, self._fields)}"
            raise OwnCodeError(shortened(f"{self._where}: {said}", 400)) from error
        return self._checked(given, n)

    def _checked(self, given: object, n: int) -> Floats:
        try:
            scores = np.array(given, np.float64)
        except (TypeError, ValueError):
            raise OwnCodeError(f"{self._where}: gave {shortened(repr(given), 80)}, no numbers") from None
        if self.is_expression and not scores.ndim:
            scores = np.full(n, scores)
        if scores.shape != (n,):
            told = f"{len(scores):,} scores" if scores.ndim == 1 else "no column of scores"
            raise OwnCodeError(f"{self._where}: gave {told} for {n:,} candidates")
        fine = np.abs(scores) <= MOST
        if not fine.all():
            bad = scores[int(np.flatnonzero(~fine)[0])]
            raise OwnCodeError(f"{self._where}: gave {bad:g}: a score has to be a finite number, at most {MOST:g}")
        return scores


def columns_by_name(names: Iterable[str], agents: Held, candidates: Held) -> dict[str, Callable[[], Any]]:
    """Return what gives columns by dotted name, as arrays of numbers, truth values and texts, when it is asked for."""

    def made(name: str) -> Callable[[], Any]:
        of, _, field = name.partition(".")
        columns = agents if of == "agent" else candidates
        return lambda: _plain(columns.column(field))

    return {name: made(name) for name in names}


def _plain(column: Any) -> npt.NDArray[Any]:
    return column.texts() if hasattr(column, "texts") else np.asarray(column)
