"""A rule of influence of a user's own, and what stances were like before the first round."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from prism_mesa.errors import OwnCodeError
from prism_mesa.snapshot import Restorable
from prism_mesa.social.params import OpinionsParams
from prism_mesa.social.state.attributes import Attribute, Attributes, Floats
from prism_mesa.social.world.attributes import Columns, OwnFunction

KEY: Final = "opinions.rule"
type ColumnsOf = Callable[[Any], Columns]


class OwnRule:
    """A function that says what readers hold once they have read a post.

    Args:
        where: ``module:function``.
        stance: The attribute that moves.

    Raises:
        ConfigError: If there is no such function.
    """

    def __init__(self, where: str, stance: Attribute) -> None:
        self._where = f"{KEY}: {where}"
        self._function = OwnFunction(stance, where, KEY)
        self._asked_for = 0

    def __call__(self, columns: ColumnsOf, n: int) -> Floats:
        """Return what each of `n` readers holds.

        Args:
            columns: Returns the columns of some of the rows.
            n: Rows.

        Raises:
            ConfigError: If it raises, gives anything but a stance for each row, or one that depends on what else it is
                asked about.
        """
        found = self._function(columns(np.arange(n)), n)
        self._asked_for += 1
        is_looked_at = self._asked_for & (self._asked_for - 1) == 0  # the 1st time, the 2nd, the 4th, ...
        some = np.arange(n)[::-2]
        if is_looked_at and not np.array_equal(found[some], self._function(columns(some), len(some))):
            raise OwnCodeError(
                f"{self._where}: gave other values for the same rows beside other rows: a stance has to come from its "
                "own row alone"
            )
        return found


class Opinions(Restorable):
    """What opinions have besides the attribute that moves.

    Attributes:
        first: Mean, standard deviation and bimodality before the first round; 0 before the run began.
        own: The rule, if it is one of a user's own.
    """

    changes = ("first",)

    def __init__(self, params: OpinionsParams, known: Attributes) -> None:
        self.first = np.zeros(3)
        self.own = None if params.user_rule is None else OwnRule(params.user_rule, known.agents[str(params.of)])
