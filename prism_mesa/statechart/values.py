"""The possible values of a field, for the examples of the static checks."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, inf, isfinite
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_USUAL: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_USUAL_WHOLE: Final = (0, 1, 2, 5, 10, 100)


@dataclass(frozen=True)
class Values:
    """The values of a field: any of `names` if there are some, else numbers from `low` to `high`, or texts.

    Attributes:
        low: The lowest number.
        high: The highest number.
        whole: Whether only integers are values.
        names: All values of a field that has few, such as a kind.
    """

    low: float = -inf
    high: float = inf
    whole: bool = False
    names: tuple[str | bool | None, ...] = ()

    def tried(self, constants: Iterable[float | str]) -> npt.NDArray[Any]:
        """Return values to try: the constants of a field's comparisons, values near and between them, and its ends."""
        known = set(constants)
        texts = {constant for constant in known if isinstance(constant, str)}
        if self.names:
            return np.array(self.names, object if None in self.names else None)
        if texts and not self.is_number:
            return np.array(sorted(texts | {"something else"}))
        exact = sorted(constant for constant in known if not isinstance(constant, str))
        beside = {constant + step for constant in exact for step in (-1.0, -0.01, 0.01, 1.0)}
        between = {(low + high) / 2 for low, high in pairwise(exact)}
        ends = {end for end in (self.low, self.high) if isfinite(end)}
        usual = {*(_USUAL_WHOLE if self.whole else _USUAL), *ends, sum(ends) / max(1, len(ends))}
        numbers = self._possible(usual | set(exact) | beside | between)
        often = self._possible(exact)
        return np.array(
            numbers + often * (len(numbers) // max(1, len(often)))
        )  # half of them, because equality is rare

    @property
    def is_number(self) -> bool:
        """Whether the field is known to hold numbers."""
        return self.whole or isfinite(self.low) or isfinite(self.high)

    def _possible(self, numbers: Iterable[float]) -> list[float]:
        if self.whole:
            numbers = {near for number in numbers for near in (floor(number), ceil(number))}
        return sorted(number for number in set(numbers) if self.low <= number <= self.high)


UNKNOWN: Final = Values()
"""Nothing is known of a field."""
