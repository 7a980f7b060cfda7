"""What a platform needs from outside: somebody who keeps its records, and somebody who has its agents as objects."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy.typing as npt
import pandas as pd


class RoundRecorder(Protocol):
    """Where a platform's records go.

    One with a method ``wants(table) -> bool`` is asked by it which tables it wants: no rows are made of `rounds`,
    `ticks`, `transitions`, `impressions`, `engagements`, `follows` and `churn` that it does not.
    """

    def write(self, table: str, columns: Mapping[str, npt.NDArray[Any] | pd.Categorical]) -> None:
        """Append rows to a table of `social.tables`, with its columns in their order."""
        ...


class Scripts(Protocol):
    """The agents as objects: what guards and actions in Python are handed, and what acts by a script of its own."""

    @property
    def has_scripts(self) -> bool:
        """Whether any agent acts by a script."""
        ...

    def agent(self, row: int) -> Any:
        """Return the agent of a row."""
        ...

    def for_copy(self, platform: Any) -> "Scripts":
        """Return who has the agents of a copy of the platform."""
        ...

    def have_moved(self, rows: Sequence[int]) -> None:
        """Take in that the agents of some rows have come or gone."""
        ...

    def step_scripts(self) -> None:
        """Let the agents that act by scripts do their tick."""
        ...
