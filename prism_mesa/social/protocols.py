"""What a platform needs from outside: a recorder, and its agents as objects."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy.typing as npt
import pandas as pd


class RoundRecorder(Protocol):
    """Takes a platform's records.

    If it has a method ``wants(table) -> bool``, no rows of `rounds`, `ticks`, `transitions`, `impressions`,
    `engagements`, `follows` and `churn` are made that it does not want.
    """

    def write(self, table: str, columns: Mapping[str, npt.NDArray[Any] | pd.Categorical]) -> None:
        """Append rows to a table of `social.tables`, with its columns in order."""
        ...


class Scripts(Protocol):
    """The agents as objects: arguments of guards and actions in Python, and agents that act by a script."""

    @property
    def has_scripts(self) -> bool:
        """Whether any agent acts by a script."""
        ...

    def agent(self, row: int) -> Any:
        """Return the agent of a row."""
        ...

    def for_copy(self, platform: Any) -> "Scripts":
        """Return the agents of a copy of the platform."""
        ...

    def have_moved(self, rows: Sequence[int]) -> None:
        """Update after the agents of some rows have come or gone."""
        ...

    def step_scripts(self) -> None:
        """Run the tick of the agents that act by scripts."""
        ...
